//! Maps each API to its implementation. This is the only module that depends on all four implementations.

use crate::api::Api;
use crate::chat::ChatDialect;
use crate::dialect::Dialect;
use crate::gemini::GeminiDialect;
use crate::messages::MessagesDialect;
use crate::responses::ResponsesDialect;
use crate::toolset::Toolset;
use crate::toolset_plan::ToolsetPlan;

pub(crate) fn of(api: Api) -> &'static dyn Dialect {
    match api {
        Api::Chat => &ChatDialect,
        Api::Responses => &ResponsesDialect,
        Api::Messages => &MessagesDialect,
        Api::Gemini => &GeminiDialect,
    }
}

impl Toolset {
    /// Creates the toolset for a request's `tools`.
    pub fn new(plan: ToolsetPlan, input: &str) -> Self {
        let write = of(plan.api).tools_writer();
        Self::with_writer(write, plan, input)
    }
}
