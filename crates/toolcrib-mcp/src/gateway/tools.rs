//! Tools: listed, searched, described and run.
//!
//! A tool that stands in the list is called as it is. Everything else goes by way of the engine, which
//! resolves the name within the client's scope and checks the arguments against the real schema. In both
//! cases the scope is the one that holds now, not the one the client saw.

use std::collections::HashMap;

use rmcp::model::{CallToolRequestParams, ErrorData};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolcrib_core::disclosure::{CALL, DESCRIBE, SEARCH, SEARCH_REGEX};
use toolcrib_core::reply::{ReplyFormat, UnavailableServer};
use toolcrib_core::{CallOutcome, Conversation, Refusal, Reply, ToolId, TurnContext};

use super::client::Client;
use super::exchange::NoAnswer;
use super::result::{self, failure};
use super::waiting::Wait;
use super::what::{Inputs, What};
use super::{Gateway, Sight};
use crate::arguments::Arguments;
use crate::shelf::added_hint;
use crate::upstream::{CONNECTING, Phase};

/// What a call of a tool came to.
pub(super) struct Called {
    pub(super) result: Value,
    /// Tools whose schemas it showed.
    pub(super) found: Vec<String>,
}

impl From<Value> for Called {
    fn from(result: Value) -> Self {
        Self { result, found: Vec::new() }
    }
}

impl Gateway {
    /// Answers `tools/call`.
    pub(super) async fn call_tool(
        &self,
        params: CallToolRequestParams,
        arguments: Option<Arguments>,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Called, ErrorData> {
        let inputs = Inputs { responses: params.input_responses, state: params.request_state };
        let name = &*params.name;
        match name {
            SEARCH | SEARCH_REGEX => {
                return self.search(name, input(arguments.as_ref()), client, profile).await;
            }
            DESCRIBE => return self.describe(input(arguments.as_ref()), client, profile),
            _ => {}
        }
        let sight = self.sight_in(profile, client.protocol())?;
        if let Some(id) = sight.view.direct(name) {
            let run = self.run(&sight, id, arguments, client, inputs, profile).await;
            return run.map(Called::from);
        }
        let turn = sight.view.turn();
        let input = input(arguments.as_ref());
        match sight.view.crib.handle(&turn, &mut Conversation::new(), name, input) {
            CallOutcome::Run(call) => {
                let arguments = Some(call.arguments.into());
                let run = self.run(&sight, call.id, arguments, client, inputs, profile).await;
                run.map(Called::from)
            }
            CallOutcome::Answer(reply) => Ok(self.answer(&sight, reply)),
            // To a client a name it made up is a wrong request; to a model behind the bridge it is
            // something to read.
            CallOutcome::Refused(refusal) if name != CALL && refusal.tool.is_none() => {
                let data = json!({"nearest": refusal.nearest, "hint": refusal.hint});
                Err(ErrorData::invalid_params(refusal.message, Some(data)))
            }
            CallOutcome::Refused(refusal) => {
                let id =
                    refusal.tool.as_deref().and_then(|tool| sight.shelf.crib.catalog().find(tool));
                if let Some(id) = id {
                    let server = sight.shelf.crib.catalog().tool(id).server().unwrap_or_default();
                    self.hub().metrics().refused(server);
                }
                // A refusal that carries the schema shows the tool as a search does.
                let found = refusal.tool.clone().into_iter().collect();
                Ok(Called { result: self.refused(&sight, refusal), found })
            }
        }
    }

    /// Runs a tool on its server.
    async fn run(
        &self,
        sight: &Sight,
        id: ToolId,
        arguments: Option<Arguments>,
        client: &Client,
        inputs: Inputs,
        profile: Option<&str>,
    ) -> Result<Value, ErrorData> {
        let tool = sight.shelf.crib.catalog().tool(id);
        let server = tool.server().unwrap_or_default();
        let name = tool.declared_name().into_owned();
        let began = Instant::now();
        let Some(upstream) = self.upstream(sight, server) else {
            return Ok(failure(&format!("`{server}` is not available: it left the config")));
        };
        let what = What::Tool { name, arguments };
        let answer = self.exchange(upstream, what, client, inputs, profile).await;
        let outcome = match &answer {
            Ok(_) => "answered",
            Err(NoAnswer::Refused(_)) => "refused",
            Err(NoAnswer::Server(_)) => "failed",
        };
        tracing::info!(
            tool = tool.name(),
            server,
            outcome,
            ms = began.elapsed().as_millis(),
            "call"
        );
        match answer {
            Ok(answer) => Ok(answer),
            Err(NoAnswer::Server(why)) => Ok(failure(&why)),
            Err(refused) => Err(result::error(refused, client.modern)),
        }
    }

    /// Answers a search. It may wait for servers that never answered so far: see [`Wait`].
    async fn search(
        &self,
        name: &str,
        input: &str,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Called, ErrorData> {
        let mut news = self.hub().watch();
        let deadline = Instant::now() + self.patience();
        loop {
            news.mark_unchanged();
            let sight = self.sight_in(profile, client.protocol())?;
            let awaited: Vec<String> = sight
                .shelf
                .awaited()
                .filter(|server| sight.view.knows(server))
                .map(ToString::to_string)
                .collect();
            let turn = TurnContext { connecting: &awaited, ..sight.view.turn() };
            let outcome = sight.view.crib.handle(&turn, &mut Conversation::new(), name, input);
            let reply = match outcome {
                CallOutcome::Answer(reply) => reply,
                CallOutcome::Refused(refusal) => return Ok(self.refused(&sight, refusal).into()),
                // Our own names are never anybody's tool.
                CallOutcome::Run(_) => {
                    return Err(ErrorData::internal_error("a search ran a tool", None));
                }
            };
            let until = match Wait::of(&reply) {
                _ if awaited.is_empty() => None,
                Wait::No => None,
                Wait::Once => self.deadline(&sight, |waits| waits.search(self.patience())),
                Wait::EachTime => Some(deadline),
            };
            let waited = match until {
                None => false,
                Some(until) => tokio::select! {
                    changed = news.changed() => changed.is_ok(),
                    () = tokio::time::sleep_until(until.min(deadline)) => false,
                    () = client.gone.cancelled() => false,
                },
            };
            if waited {
                continue;
            }
            self.hub().metrics().searched(reply.hits.len());
            tracing::info!(hits = reply.hits.len(), loaded = reply.loaded.len(), "search");
            return Ok(self.answer(&sight, reply));
        }
    }

    fn describe(
        &self,
        input: &str,
        client: &Client,
        profile: Option<&str>,
    ) -> Result<Called, ErrorData> {
        let sight = self.sight_in(profile, client.protocol())?;
        let turn = sight.view.turn();
        self.hub().metrics().described();
        match sight.view.crib.handle(&turn, &mut Conversation::new(), DESCRIBE, input) {
            CallOutcome::Answer(reply) => Ok(self.answer(&sight, reply)),
            CallOutcome::Refused(refusal) => Ok(self.refused(&sight, refusal).into()),
            CallOutcome::Run(_) => Err(ErrorData::internal_error("a description ran a tool", None)),
        }
    }

    /// A reply, with what became of the servers it speaks of.
    fn answer(&self, sight: &Sight, mut reply: Reply) -> Called {
        let Absent { connecting, down, why } = self.absent(sight);
        for hit in &mut reply.hits {
            hit.unavailable = hit.server.as_ref().and_then(|server| why.get(server)).cloned();
        }
        (reply.connecting, reply.unavailable_servers) = (connecting, down);
        let added = !reply.loaded.is_empty();
        let mut hint = added_hint(sight.view.crib.settings()).filter(|_| added);
        // Our own form has a place for it. A preset's form is the preset's, so there it is a text of its own.
        if reply.format == ReplyFormat::Json {
            reply.notes.extend(hint.take().map(str::to_owned));
        }
        let text = reply.for_model();
        let texts = [Some(&*text), hint].into_iter().flatten();
        let content: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({ "content": content });
        // The same document as the text. A text that is no JSON stands alone.
        if reply.format.is_json()
            && let Ok(structured) = serde_json::from_str(&text)
        {
            result["structuredContent"] = structured;
        }
        Called { result, found: reply.loaded }
    }
}

/// The servers of a client that cannot be asked now.
#[derive(Default)]
struct Absent {
    connecting: Vec<String>,
    down: Vec<UnavailableServer>,
    /// Why, by server.
    why: HashMap<String, String>,
}

impl Gateway {
    fn absent(&self, sight: &Sight) -> Absent {
        let mut absent = Absent::default();
        for upstream in self.hub().all() {
            let status = upstream.status();
            // One that has just answered is not there before its tools are on the shelf.
            let arriving = status.phase == Phase::Up && !sight.shelf.has_answered(&upstream.name);
            let here = matches!(status.phase, Phase::Up | Phase::Off) && !arriving;
            if here || !sight.view.knows(&upstream.name) {
                continue;
            }
            let server = upstream.name.to_string();
            let why = if arriving { CONNECTING.to_owned() } else { status.why_not() };
            absent.why.insert(server.clone(), why.clone());
            if arriving || status.is_first_try() {
                absent.connecting.push(server);
            } else {
                absent.down.push(UnavailableServer { server, reason: why });
            }
        }
        absent
    }

    /// A refusal, for a model to read. Where a name is missing, its server may be too.
    fn refused(&self, sight: &Sight, mut refusal: Refusal) -> Value {
        if refusal.tool.is_none() {
            let absent = self.absent(sight);
            (refusal.connecting, refusal.unavailable_servers) = (absent.connecting, absent.down);
        }
        failure(&refusal.text())
    }
}

/// The input of a call as the engine takes it.
fn input(arguments: Option<&Arguments>) -> &str {
    arguments.map_or("{}", Arguments::text)
}
