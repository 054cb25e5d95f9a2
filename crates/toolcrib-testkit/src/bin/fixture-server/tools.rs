//! The list of all tools, and the dispatch of calls.

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Tool};
use rmcp::service::RequestContext;

use crate::changes::Change;
use crate::definition::Definition;
use crate::input_rounds::{self, ClientInput, RoundResult};
use crate::resources::WATCHED;
use crate::server::Fixture;
use crate::{content, input_tools, notifications, tasks};

/// Tools that change a list or a resource of the server.
const TRIGGERS: &[Definition] = &[
    Definition::plain("test_trigger_tool_change", "Adds a tool, or takes it away again."),
    Definition::plain("test_trigger_prompt_change", "Adds a prompt, or takes it away again."),
    Definition::plain("test_trigger_resource_change", "Updates the watched resource."),
];

/// The tool that `test_trigger_tool_change` adds and removes.
const EXTRA: Definition = Definition::plain("test_extra_tool", "Is here only at times.");

/// Returns the tools in a fixed order. If `extra`, the last one is the tool that can be added and removed.
pub(crate) fn list(extra: bool) -> Vec<Tool> {
    let fixed = [content::TOOLS, notifications::TOOLS, input_tools::TOOLS, tasks::TOOLS, TRIGGERS];
    let extra = extra.then_some(&EXTRA);
    fixed.into_iter().flatten().chain(extra).map(Definition::tool).collect()
}

pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(answer) = fixture.shared.tasks.call(&request, context).await {
        return answer;
    }
    let name = request.name.as_ref();
    let arguments = request.arguments.unwrap_or_default();
    if let Some(result) = content::call(name, &arguments) {
        return Ok(result.into());
    }
    if let Some(step) = input_tools::find(name) {
        let input = ClientInput { answers: request.input_responses, state: request.request_state };
        return Ok(match input_rounds::run_rounds(context, &arguments, input, step).await? {
            RoundResult::Done(result) => result.into(),
            RoundResult::InputRequired(result) => result.into(),
        });
    }
    if let Some(result) = notifications::call(fixture, name, context).await {
        return Ok(result?.into());
    }
    trigger(fixture, name).map(Into::into)
}

fn trigger(fixture: &Fixture, name: &str) -> Result<CallToolResult, ErrorData> {
    let changes = &fixture.shared.changes;
    match name {
        "test_trigger_tool_change" => changes.make(Change::Tools),
        "test_trigger_prompt_change" => changes.make(Change::Prompts),
        "test_trigger_resource_change" => changes.make(Change::Resource(WATCHED.into())),
        "test_extra_tool" if changes.extra_tool() => {}
        _ => return Err(ErrorData::invalid_params(format!("unknown tool: `{name}`"), None)),
    }
    Ok(CallToolResult::success(vec![ContentBlock::text("It is done.")]))
}
