//! Which tools the model sees in full, and why.
//!
//! There are two decisions, and each is made by one function: `Activation::decide` decides whether a conversation
//! defers tools, and `verdict` decides how one tool is shown. Both functions also return the reason, which `explain`,
//! logs and tests print.

mod activation;
mod activation_reason;
mod globs;
mod hot_list;
mod rules;
mod search_loss;
mod verdict;

pub(crate) use activation::ActivationInputs;
pub use activation::{Activation, ActivationMode, Decision, Deferral};
pub use activation_reason::{ActivationReason, ThresholdSource};
pub use globs::Globs;
pub use hot_list::hot_list;
pub use rules::{Glob, Rules};
pub use search_loss::search_loss;
pub use verdict::{Verdict, VerdictReason};
pub(crate) use verdict::{VerdictInputs, verdict};
