//! Searches, describes and calls tools.
//!
//! A tool that is listed in full is called directly. All other calls go through the engine, which resolves the name
//! within the client's scope and checks the arguments against the real schema. In both cases the current scope applies,
//! even if it was different when the client fetched its list.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, ErrorData};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_core::call::RefusalCode;
use toolcrib_core::disclosure::{DESCRIBE, OwnToolKind, SEARCH, SEARCH_REGEX};
use toolcrib_core::reply::{ReplyFormat, UnavailableServer};
use toolcrib_core::{CallOutcome, Conversation, Refusal, Reply, Tool, ToolId};
use toolcrib_text::json::Fields;
use toolcrib_text::shorten;

use super::client::Client;
use super::forward_error::ForwardError;
use super::operation::{Operation, RetryInputs};
use super::protocol_result::tool_error;
use super::startup_wait::SearchWait;
use super::tool_arguments::{ArgumentError, arguments_for_server};
use super::{Gateway, VisibleSnapshot};
use crate::raw_arguments::RawArguments;
use crate::snapshot::{ClientView, added_tools_hint};
use crate::upstream::{CONNECTING, ServerPhase, ServerStatus};

/// The result of `tools/call`.
pub(super) struct ToolCallResult {
    pub(super) result: Value,
    /// The tools whose schemas the result contains.
    pub(super) found_tools: Vec<String>,
}

impl From<Value> for ToolCallResult {
    fn from(result: Value) -> Self {
        Self { result, found_tools: Vec::new() }
    }
}

impl Gateway {
    /// Answers `tools/call`.
    pub(super) async fn call_tool(
        &self,
        params: CallToolRequestParams,
        arguments: Option<RawArguments>,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<ToolCallResult, ErrorData> {
        let inputs = RetryInputs { responses: params.input_responses, state: params.request_state };
        let name = &*params.name;
        match name {
            SEARCH | SEARCH_REGEX => {
                return self.search(name, input(arguments.as_ref()), client, profile).await;
            }
            DESCRIBE => return self.describe(input(arguments.as_ref()), client, profile),
            _ => {}
        }
        let visible = self.visible_to(client.viewer(profile), client.session_kind())?;
        if let Some(id) = visible.view.listed_tool(name) {
            let run = self.run_tool(&visible, id, arguments, client, inputs, profile).await;
            return run.map(ToolCallResult::from);
        }
        let turn = visible.view.turn();
        let input = input(arguments.as_ref());
        let settings = visible.view.crib.settings();
        let is_bridge = settings.own_names.kind_of(name).is_some_and(|kind| {
            kind.runs_tools() && (settings.split_calls || kind == OwnToolKind::Call)
        });
        match visible.view.crib.handle(&turn, &mut Conversation::new(), name, input) {
            CallOutcome::Run(call) => {
                let arguments = Some(call.arguments.into());
                let mut result =
                    self.run_tool(&visible, call.id, arguments, client, inputs, profile).await?;
                if is_bridge && result.get("inputRequests").is_none() {
                    let meta = visible.view.crib.catalog().tool(call.id).app_meta();
                    add_app_meta(&mut result, meta.as_deref());
                }
                Ok(result.into())
            }
            CallOutcome::Answer(reply) => Ok(self.reply_result(&visible, client, reply)),
            // If the client itself calls an unknown tool, that is a protocol error. If a model names an unknown tool in
            // a call of `tool_call`, `tool_read` or `tool_write`, the model gets a text to read.
            CallOutcome::Refused(refusal) if !is_bridge && refusal.tool.is_none() => {
                let data = json!({"nearest": refusal.nearest, "hint": refusal.hint});
                Err(ErrorData::invalid_params(refusal.message, Some(data)))
            }
            CallOutcome::Refused(refusal) => {
                let id = refusal
                    .tool
                    .as_deref()
                    .and_then(|tool| visible.snapshot.crib.catalog().find(tool));
                if let Some(id) = id {
                    let server =
                        visible.snapshot.crib.catalog().tool(id).server().unwrap_or_default();
                    self.hub().metrics().refused(server);
                }
                // Like a search, a refusal that contains a tool's schema reveals the tool.
                let shows_schema = refusal.code == RefusalCode::InvalidArguments;
                let found_tools =
                    refusal.tool.clone().filter(|_| shows_schema).into_iter().collect();
                Ok(ToolCallResult { result: self.refusal_result(&visible, refusal), found_tools })
            }
        }
    }

    /// Runs a tool on its server.
    async fn run_tool(
        &self,
        visible: &VisibleSnapshot,
        id: ToolId,
        arguments: Option<RawArguments>,
        client: &Client,
        inputs: RetryInputs,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let tool = visible.snapshot.crib.catalog().tool(id);
        let server = tool.server().unwrap_or_default();
        let name = tool.declared_name().into_owned();
        let started = Instant::now();
        let upstream = match self.visible_upstream(visible, server, client.identified()) {
            Some(Ok(upstream)) => upstream,
            Some(Err(full)) => {
                return Ok(tool_error(&format!("`{server}` is not available: {full}")));
            }
            None => {
                return Ok(tool_error(&format!(
                    "`{server}` is not available: it was removed from the config"
                )));
            }
        };
        let change = visible.snapshot.tool_override(server, &name);
        let arguments = match change {
            Some(change) => {
                match arguments_for_server(change, arguments, upstream.client_environment()) {
                    Ok(arguments) => arguments,
                    Err(error) => return Ok(self.argument_refusal(visible, id, &error)),
                }
            }
            None => arguments,
        };
        let renamed_from = change.filter(|change| change.name.is_some()).map(|_| name.clone());
        let must_run_as_task = self.polls_tasks() && runs_only_as_task(tool);
        let operation = Operation::Tool { name, arguments, must_run_as_task };
        let answer = self.forward(upstream, operation, client, inputs, profile).await;
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(ForwardError::Rpc(_)) => "refused",
            Err(ForwardError::Failed(_)) => "failed",
        };
        tracing::info!(
            tool = tool.name(),
            renamed_from,
            server,
            outcome,
            ms = started.elapsed().as_millis(),
            "call"
        );
        match answer {
            Ok(answer) => Ok(answer),
            Err(ForwardError::Failed(reason)) => Ok(tool_error(&reason)),
            Err(error) => Err(error.into_error_data(client.uses_newer_protocol)),
        }
    }

    /// Refuses a call because of the parameters that the config hides or fills in.
    fn argument_refusal(
        &self,
        visible: &VisibleSnapshot,
        id: ToolId,
        error: &ArgumentError,
    ) -> Value {
        let server = visible.snapshot.crib.catalog().tool(id).server().unwrap_or_default();
        self.hub().metrics().refused(server);
        match error {
            ArgumentError::Hidden(parameter) => {
                let conversation = &mut Conversation::new();
                let refusal = visible.view.crib.refuse_parameter(conversation, id, parameter);
                self.refusal_result(visible, refusal)
            }
            ArgumentError::NotAnObject => tool_error("the arguments are not a JSON object"),
            ArgumentError::Default(problem) => {
                tool_error(&format!("`{server}` cannot be called: {problem}"))
            }
        }
    }

    /// Answers a search. The search may wait for servers that have never answered, see [`SearchWait`].
    async fn search(
        &self,
        name: &str,
        input: &str,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<ToolCallResult, ErrorData> {
        let mut snapshots = self.hub().subscribe();
        let deadline = Instant::now() + self.search_wait();
        loop {
            snapshots.mark_unchanged();
            let visible = self.visible_to(client.viewer(profile), client.session_kind())?;
            let awaited: Vec<String> = visible
                .snapshot
                .awaited_servers()
                .filter(|server| visible.view.can_see_server(server))
                .map(ToString::to_string)
                .collect();
            let awaits_servers = !awaited.is_empty();
            let reply = match search_tools(&visible.view, name, input, awaited).await? {
                CallOutcome::Answer(reply) => reply,
                CallOutcome::Refused(refusal) => {
                    return Ok(self.refusal_result(&visible, refusal).into());
                }
                // This cannot happen, because a server's tool cannot have the name of one of our own tools.
                CallOutcome::Run(_) => {
                    return Err(ErrorData::internal_error(
                        "unexpected tool call in a search",
                        None,
                    ));
                }
            };
            let until = match SearchWait::for_reply(&reply) {
                _ if !awaits_servers => None,
                SearchWait::No => None,
                SearchWait::Once => {
                    self.startup_deadline(&visible, |waits| waits.search(self.search_wait()))
                }
                SearchWait::EachTime => Some(deadline),
            };
            let has_changed = match until {
                None => false,
                Some(until) => tokio::select! {
                    changed = snapshots.changed() => changed.is_ok(),
                    () = tokio::time::sleep_until(until.min(deadline)) => false,
                    () = client.abandoned.cancelled() => false,
                },
            };
            if has_changed {
                continue;
            }
            self.hub().metrics().searched(reply.hits.len());
            tracing::info!(hits = reply.hits.len(), loaded = reply.loaded.len(), "search");
            return Ok(self.reply_result(&visible, client, reply));
        }
    }

    fn describe(
        &self,
        input: &str,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<ToolCallResult, ErrorData> {
        let visible = self.visible_to(client.viewer(profile), client.session_kind())?;
        let turn = visible.view.turn();
        self.hub().metrics().described();
        match visible.view.crib.handle(&turn, &mut Conversation::new(), DESCRIBE, input) {
            CallOutcome::Answer(reply) => Ok(self.reply_result(&visible, client, reply)),
            CallOutcome::Refused(refusal) => Ok(self.refusal_result(&visible, refusal).into()),
            CallOutcome::Run(_) => {
                Err(ErrorData::internal_error("unexpected tool call in a description", None))
            }
        }
    }

    /// Converts a reply to a tool result. The result also contains the instructions of the hits' servers, and reports
    /// which servers are unavailable.
    fn reply_result(
        &self,
        visible: &VisibleSnapshot,
        client: &Client,
        mut reply: Reply,
    ) -> ToolCallResult {
        self.add_instructions(&mut reply, client);
        let UnavailableServers { connecting, unavailable, reasons } =
            self.unavailable_servers(visible);
        for hit in &mut reply.hits {
            hit.unavailable = hit.server.as_ref().and_then(|server| reasons.get(server)).cloned();
        }
        (reply.connecting, reply.unavailable_servers) = (connecting, unavailable);
        let added = !reply.loaded.is_empty();
        let mut hint = added_tools_hint(visible.view.crib.settings()).filter(|_| added);
        // Our own format has a field for notes, so the hint about added tools becomes a note. The format of a preset
        // must not change, so there the hint is a separate text.
        if reply.format == ReplyFormat::Json {
            reply.notes.extend(hint.take().map(str::to_owned));
        }
        let text = reply.for_model();
        let texts = [Some(&*text), hint].into_iter().flatten();
        let content: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({ "content": content });
        // If the text is JSON, `structuredContent` is the same document.
        if reply.format.is_json()
            && let Ok(structured) = serde_json::from_str(&text)
        {
            result["structuredContent"] = structured;
        }
        ToolCallResult { result, found_tools: reply.loaded }
    }
}

/// The servers that a client may see but that are unavailable now.
#[derive(Default)]
struct UnavailableServers {
    connecting: Vec<String>,
    unavailable: Vec<UnavailableServer>,
    /// Why each server is unavailable, by the server's name.
    reasons: HashMap<String, String>,
}

/// Maximum length of the reason why a server is unavailable, in characters.
const SHORT_REASON_CHARS: usize = 100;

/// Returns why a server is unavailable, for replies to the model. Every reply repeats the reason, so it is short.
/// `doctor`, `ps` and the log print the complete reason, with the end of the server's stderr.
fn short_reason(status: &ServerStatus) -> String {
    let reason = status.unavailable_reason();
    let first_clause = reason.split("; ").next().unwrap_or(&reason);
    shorten(first_clause, SHORT_REASON_CHARS).into_owned()
}

impl Gateway {
    fn unavailable_servers(&self, visible: &VisibleSnapshot) -> UnavailableServers {
        let mut unavailable = UnavailableServers::default();
        for upstream in self.hub().upstreams() {
            let status = upstream.status();
            // A server that has just answered counts as unavailable until its tools are in the snapshot.
            let is_arriving =
                status.phase == ServerPhase::Up && !visible.snapshot.has_answered(&upstream.name);
            let is_available =
                matches!(status.phase, ServerPhase::Up | ServerPhase::Idle | ServerPhase::Off)
                    && !is_arriving;
            if is_available || !visible.view.can_see_server(&upstream.name) {
                continue;
            }
            let server = upstream.name.to_string();
            let reason = if is_arriving { CONNECTING.to_owned() } else { short_reason(&status) };
            unavailable.reasons.insert(server.clone(), reason.clone());
            if is_arriving || status.is_first_attempt() {
                unavailable.connecting.push(server);
            } else {
                unavailable.unavailable.push(UnavailableServer { server, reason });
            }
        }
        unavailable
    }

    /// Converts a refusal to a tool result. If the requested tool was not found, the result also reports which servers
    /// are unavailable, because one of them may have the tool.
    fn refusal_result(&self, visible: &VisibleSnapshot, mut refusal: Refusal) -> Value {
        if refusal.tool.is_none() {
            let unavailable = self.unavailable_servers(visible);
            (refusal.connecting, refusal.unavailable_servers) =
                (unavailable.connecting, unavailable.unavailable);
        }
        tool_error(&refusal.text())
    }
}

/// Whether a tool's definition says that the tool runs only as a task.
fn runs_only_as_task(tool: &Tool) -> bool {
    let definition = Fields::read(tool.definition());
    let execution = definition.as_ref().and_then(|fields| Fields::read(fields.get("execution")?));
    execution.and_then(|fields| fields.string("taskSupport")).is_some_and(|it| it == "required")
}

/// Adds to the result of a tool what the tool's definition says about its user interface. The host called the bridge,
/// so it cannot find these fields in the tool list. Fields that the server sent itself stay.
fn add_app_meta(result: &mut Value, app_meta: Option<&RawValue>) {
    let fields = app_meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
    let fields: serde_json::Map<String, Value> = fields.unwrap_or_default();
    let Some(result) = result.as_object_mut().filter(|_| !fields.is_empty()) else { return };
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        for (key, value) in fields {
            meta.entry(key).or_insert(value);
        }
    }
}

/// Lets the engine answer a search. Embedding a long request takes tens of milliseconds, so this does not run on a thread
/// that also serves other requests.
async fn search_tools(
    view: &Arc<ClientView>,
    name: &str,
    input: &str,
    awaited: Vec<String>,
) -> Result<CallOutcome, ErrorData> {
    let (view, name, input) = (Arc::clone(view), name.to_owned(), input.to_owned());
    let search = move || {
        let turn = view.turn().with_connecting(&awaited);
        view.crib.handle(&turn, &mut Conversation::new(), &name, &input)
    };
    tokio::task::spawn_blocking(search).await.map_err(|error| {
        tracing::error!("a search failed: {error}");
        ErrorData::internal_error("the search failed", None)
    })
}

/// Returns the arguments of a call as JSON text for the engine.
fn input(arguments: Option<&RawArguments>) -> &str {
    arguments.map_or("{}", RawArguments::text)
}
