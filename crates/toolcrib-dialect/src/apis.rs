//! The four APIs, by name: the one place that knows all of their implementations.

use crate::api::Api;
use crate::chat::Chat;
use crate::dialect::Dialect;
use crate::gemini::Gemini;
use crate::messages::Messages;
use crate::responses::Responses;
use crate::toolset::{Plan, Toolset};

/// The implementation of an API.
pub(crate) fn of(api: Api) -> &'static dyn Dialect {
    match api {
        Api::Chat => &Chat,
        Api::Responses => &Responses,
        Api::Messages => &Messages,
        Api::Gemini => &Gemini,
    }
}

impl Toolset {
    /// Makes a toolset of a request's `tools`.
    pub fn new(plan: Plan, input: &str) -> Self {
        let write = of(plan.api).write_tools();
        Self::written_by(write, plan, input)
    }
}
