//! Which tools the model sees in full, and why.
//!
//! There are two decisions, each made by one function: `Activation::decide` decides whether a conversation defers
//! tools, `verdict` how one tool is shown. Both return their reason, and `explain`, logs and tests print it.

mod activation;
mod activation_reason;
mod globs;
mod hot_list;
mod rules;
mod verdict;

pub(crate) use activation::ActivationInputs;
pub use activation::{Activation, ActivationMode, Decision, Deferral};
pub use activation_reason::{ActivationReason, ThresholdSource};
pub use globs::Globs;
pub use hot_list::hot_list;
pub use rules::{Glob, Rules};
pub use verdict::{Verdict, VerdictReason};
pub(crate) use verdict::{VerdictInputs, verdict};
