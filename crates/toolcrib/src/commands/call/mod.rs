//! `toolcrib call`: calls one tool of a configured server.
//!
//! The tool is found in the saved lists, so a wrong name or a wrong argument is reported without starting a server. A
//! server that has never answered is asked for its tools first. The call itself goes through the background gateway,
//! which checks it as it checks the calls of every client.

mod arguments;
mod result;

use std::fs;
use std::io::Read as _;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toolcrib_core::{
    CallOutcome, Conversation, FourCharsPerToken, Refusal, TokenCounter, ToolCall, ToolId,
    TurnContext,
};
use toolcrib_mcp::ConfiguredTools;
use toolcrib_text::clean::one_line;

use super::gateway::ask_servers::ask_servers;
use super::gateway::environment;
use super::gateway::tool_call::{RpcError, ToolCallAnswer, call_tool};
use super::tool_source::{find_tool, no_servers, unknown_profile, warn_unanswered};
use crate::args::{CallArgs, McpArgs, Overrides, VectorArgs};
use crate::config::location::{Location, note_unused_config};
use crate::config::network::{self, LoadedConfig};
use crate::output::{Failure, Output, print_stderr};
use result::{ToolResult, print_result};

/// Maximum size of arguments that are read from a file or from standard input, in bytes.
const MAX_ARGUMENTS_BYTES: u64 = 64 << 20;

/// The document that `--json` prints.
#[derive(Serialize)]
struct CallReport<'a> {
    /// The name of the tool that was called.
    tool: &'a str,
    /// The result, exactly as the server sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    /// The error of the gateway or the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RpcError>,
    /// What is wrong with the call, which was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a Refusal>,
}

pub(crate) fn run(args: &CallArgs, output: &mut Output) -> Result<bool, Failure> {
    let location = Location::find(args.config.as_deref())?;
    note_unused_config(location.as_ref());
    let location = location.ok_or_else(no_servers)?;
    let config = network::load(Some(&location), &Overrides::default())?;
    for warning in &config.warnings {
        print_stderr(&format!("warning: {warning}"));
    }
    let (tools, id) = find(args, &config)?;
    let tool = tools.crib.catalog().tool(id);
    let schema = serde_json::from_str(tool.schema()).unwrap_or_default();
    let arguments = read_arguments(args, &schema)?;
    let turn = TurnContext::new(&tools.scope);
    let call = match tools.crib.handle(&turn, &mut Conversation::new(), tool.name(), &arguments) {
        CallOutcome::Run(call) => call,
        CallOutcome::Refused(refusal) => return refused(tool.name(), &refusal, output),
        CallOutcome::Answer(_) => {
            let hint = "call it through the server's own client";
            let problem = &"the name belongs to one of Toolcrib's own tools";
            return Err(Failure::input(format!("`{}`", args.tool), problem, hint));
        }
    };
    let gateway = McpArgs {
        config: args.config.clone(),
        profile: args.profile.clone(),
        own: args.own,
        overrides: Overrides::default(),
        vectors: VectorArgs::default(),
    };
    let answer = call_tool(&gateway, config, &call.name, &call.arguments)?;
    report(&call, &answer, output)
}

/// Finds the tool in the saved lists. If it is not there, starts the servers that may have it and have no saved list.
fn find(args: &CallArgs, config: &LoadedConfig) -> Result<(ConfiguredTools, ToolId), Failure> {
    let counter: Arc<dyn TokenCounter> = Arc::new(FourCharsPerToken);
    let mut gateway = config.sections.gateway.clone();
    let profile = args.profile.as_deref();
    let unknown_profile = unknown_profile(profile, &gateway);
    let saved =
        ConfiguredTools::from_saved_lists(gateway.clone(), &environment(), profile, &counter);
    let Some(saved) = saved else { return Err(unknown_profile) };
    let found = find_tool(&saved.crib, &saved.scope, &args.tool);
    let server = args.tool.split_once('/').map(|(server, _)| server);
    if let Some(server) = server.and_then(|server| gateway.servers.get(server))
        && !server.enabled
    {
        return Err(Failure::input(
            format!("`{}`", args.tool),
            &"its server is disabled in the config",
            "set `enabled = true` for the server",
        ));
    }
    let may_have_it = |name: &str| {
        server.is_none_or(|server| server == name)
            && saved.unlisted_servers.iter().any(|unlisted| unlisted == name)
    };
    match found {
        Err(_) if gateway.servers.keys().any(|name| may_have_it(name)) => {
            gateway.servers.retain(|name, _| may_have_it(name));
            let (tools, unanswered) = ask_servers(gateway, profile, counter)?;
            if let (Some(server), [down]) = (server, &unanswered[..]) {
                let hint = "`toolcrib doctor` checks the server";
                return Err(Failure::input(format!("`{server}` is down"), &down.reason, hint));
            }
            warn_unanswered(&unanswered);
            let tools = tools.ok_or(unknown_profile)?;
            let id = find_tool(&tools.crib, &tools.scope, &args.tool)?;
            Ok((tools, id))
        }
        found => found.map(|id| (saved, id)),
    }
}

/// Returns the arguments as JSON text: the object of `--args`, with the `KEY=VALUE` pairs added to it.
fn read_arguments(args: &CallArgs, schema: &Value) -> Result<String, Failure> {
    let mut object = match args.args.as_deref() {
        None => Map::new(),
        Some(given) => {
            let text = arguments_text(given)?;
            serde_json::from_str(&text).map_err(|error| {
                let hint = r#"write an object such as `--args '{"key": "value"}'`"#;
                Failure::input("`--args`", &format!("not a JSON object: {error}"), hint)
            })?
        }
    };
    arguments::add_pairs(&mut object, &args.values, schema)
        .map_err(|error| Failure::input(format!("`{}`", args.tool), &error.problem, error.hint))?;
    Ok(Value::Object(object).to_string())
}

/// Returns the value of `--args`, or what it refers to: `@FILE`, or `-` for standard input.
fn arguments_text(given: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match given.strip_prefix('@') {
        Some(file) => fs::File::open(file)
            .and_then(|file| file.take(MAX_ARGUMENTS_BYTES).read_to_string(&mut text)),
        None if given == "-" => {
            std::io::stdin().take(MAX_ARGUMENTS_BYTES).read_to_string(&mut text)
        }
        None => return Ok(given.to_owned()),
    };
    read.map_err(|error| {
        Failure::input(format!("`--args {given}`"), &error, "name a file with a JSON object")
    })?;
    Ok(text)
}

/// Reports a call that was not sent. A wrong argument is wrong input, so the exit code is 2.
fn refused(tool: &str, refusal: &Refusal, output: &mut Output) -> Result<bool, Failure> {
    if output.is_json() {
        let refusal = Some(refusal);
        output.document(&CallReport { tool, result: None, error: None, refusal })?;
        output.finish()?;
    }
    print_stderr(&format!("error: `{tool}`: {}", refusal.message));
    for fault in refusal.faults.iter().filter(|_| refusal.faults.len() > 1) {
        let place =
            if fault.path.is_empty() { String::new() } else { format!(" at `{}`", fault.path) };
        print_stderr(&format!("  {}{place}", fault.problem));
    }
    let schema = refusal.input_schema.as_ref();
    let schema = schema.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    if let Some(schema) = &schema {
        print_stderr(&format!("arguments: {}", toolcrib_core::signature(schema)));
    }
    // The hints of refusals are written for models. If there is a correction, it is useful to users, too.
    let hint = if refusal.hint.contains("should be") {
        &*refusal.hint
    } else {
        "`--json` prints the complete schema"
    };
    print_stderr(&format!("hint: {hint}"));
    Err(Failure::AlreadyReported)
}

fn report(call: &ToolCall, answer: &ToolCallAnswer, output: &mut Output) -> Result<bool, Failure> {
    let tool = &*call.name;
    match answer {
        ToolCallAnswer::Error(error) => {
            if output.is_json() {
                let error = Some(error);
                output.document(&CallReport { tool, result: None, error, refusal: None })?;
            }
            // A server must not be able to print lines that look like our own.
            print_stderr(&format!("error: `{tool}`: {}", one_line(&error.message)));
            print_stderr("hint: `toolcrib doctor` checks the server");
            Ok(false)
        }
        ToolCallAnswer::Result(raw) => {
            let read = ToolResult::read(raw);
            if output.is_json() {
                let result = Some(&**raw);
                output.document(&CallReport { tool, result, error: None, refusal: None })?;
                // A result that cannot be read is printed as it is.
                return Ok(read.is_ok_and(|result| !result.is_error));
            }
            let result = read?;
            print_result(&result, output)?;
            if result.is_error {
                print_stderr(&format!("error: `{tool}` reported an error, which is printed above"));
            }
            Ok(!result.is_error)
        }
    }
}
