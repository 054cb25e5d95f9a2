//! Which tools the model sees in full, and why.
//!
//! Two decisions, one function each: [`Activation::decide`] says whether a conversation defers at
//! all, [`verdict`] says what becomes of one tool. Both return their reason, and `explain`, logs and
//! tests print that same reason.

mod activation;
mod activation_reason;
mod globs;
mod hot_list;
mod rules;
mod verdict;

pub use activation::{Activation, ActivationInputs, ActivationMode, Decision, Deferral};
pub use activation_reason::{ActivationReason, ThresholdSource};
pub use globs::Globs;
pub use hot_list::hot_list;
pub use rules::{Glob, Rules};
pub use verdict::{Verdict, VerdictInputs, VerdictReason, verdict};
