//! The interface that each of the four APIs implements.
//!
//! A turn works with JSON text and calls these methods for everything that depends on the API. Each API has a folder
//! of its own, and the main files have the same names in all four folders.

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::GeneratedId;
use crate::call_router::CallRouter;
use crate::hidden_rounds::HiddenAnswer;
use crate::request::{ClientDeferral, ParsedHistory, Request, RequestOutline};
use crate::sse::Event;
use crate::tool_list::WriteTools;
use crate::toolset::Toolset;
use crate::usage::Usage;

/// A call that was forwarded to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForwardedCall<'a> {
    /// The id that the upstream gave the call.
    pub(crate) upstream_id: Option<&'a str>,
    /// The id that the client uses for the call in its next request.
    pub(crate) client_id: Option<&'a str>,
    /// The tool's name in the client's request.
    pub(crate) name: &'a str,
}

/// Finds the upstream's call id for each of the client's tool results, because the client may have changed or dropped
/// the id.
pub(crate) struct CallIdMapper<'a> {
    calls: &'a [ForwardedCall<'a>],
    /// For each call, whether a result was matched to it.
    has_result: Vec<bool>,
}

impl<'a> CallIdMapper<'a> {
    pub(crate) fn new(calls: &'a [ForwardedCall<'a>]) -> Self {
        Self { calls, has_result: vec![false; calls.len()] }
    }

    /// Whether the client uses the upstream's ids for all calls, so that its results need no change.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the upstream's call id for the client's next result, or `None` if the result keeps the id that it has.
    ///
    /// A result belongs to a call that has the same id and no result yet. There may be several such calls, because some
    /// clients use the tool's name as the id of every call. Of these, the first one with the same tool name as the
    /// result is chosen. If none has that name, the first one is chosen.
    pub(crate) fn upstream_id_for(
        &mut self,
        client_id: Option<&str>,
        name: Option<&str>,
    ) -> Option<&'a str> {
        let client_id = client_id.filter(|id| !id.is_empty());
        let fits = |at: &usize| self.calls[*at].client_id == client_id;
        let open = |at: &usize| fits(at) && !self.has_result[*at];
        let named = |at: &usize| open(at) && name == Some(self.calls[*at].name);
        let all = 0..self.calls.len();
        let at = all.clone().find(named).or_else(|| all.clone().find(open));
        // Some clients send the same result twice. The second copy belongs to the same call as the first.
        let at = at.or_else(|| all.clone().find(fits).filter(|_| client_id.is_some()))?;
        self.has_result[at] = true;
        self.calls[at].upstream_id.filter(|upstream_id| Some(*upstream_id) != client_id)
    }
}

/// One API: how its requests are read and written, and how its responses are merged.
pub(crate) trait Dialect: Sync {
    /// Reads the top-level fields of a body.
    fn read_outline<'a>(&self, body: &Fields<'a>, target: &str) -> RequestOutline<'a>;

    /// Reads the conversation in a body. `history` is a slice of `text`. Returns `None` if `history` is not a
    /// conversation of this API.
    fn read_conversation(&self, text: &str, history: &str) -> Option<ParsedHistory>;

    /// Returns how the client defers tools itself, if it does. `loads_tools` says whether entries of its conversation
    /// load tools.
    fn client_deferral(
        &self,
        _tools: &str,
        _history: &str,
        _loads_tools: bool,
    ) -> Option<ClientDeferral> {
        None
    }

    /// Returns the function that writes `tools` for the upstream.
    fn tools_writer(&self) -> WriteTools;

    /// Rewrites one of the model's history entries so that its calls of deferred tools go through the bridge tool
    /// `call`. This is used for turns without a record. Returns `None` if the entry has no such calls.
    fn wrap_deferred_calls(
        &self,
        entry: &str,
        deferred: &dyn Fn(&str) -> bool,
        call: &str,
    ) -> Option<String>;

    /// Rewrites one of the model's history entries so that its calls of deferred tools name the namespace into which a
    /// reference loads these tools. This is used for turns without a record. Returns `None` if nothing changes.
    fn qualify_deferred_calls(
        &self,
        _entry: &str,
        _deferred: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        None
    }

    /// Inserts answers that the client never saw into the entries that the client sent after a turn of the model, and
    /// returns the result.
    ///
    /// `turn` is the turn in the upstream's version. `calls` are the calls that were forwarded to the client, in order.
    /// `calls` is empty if the client uses the upstream's ids for all of them.
    fn insert_hidden_answers<'a>(
        &self,
        turn: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[HiddenAnswer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>>;

    /// Adds the generated ids to those calls of a turn that have no id.
    fn with_generated_ids(&self, turn: Vec<String>, generated: Vec<GeneratedId>) -> Vec<String>;

    /// Inserts `text` before the user's own text. Returns `None` if the entry is not a user message.
    fn insert_announcement(&self, entry: &str, text: &str) -> Option<String>;

    /// Returns a user message that consists of this text.
    fn user_message(&self, text: &str) -> String;

    /// Adapts a stored turn to the version that the client sends back: parts that the client removed on purpose are
    /// removed, and cache breakpoints that the client set are kept.
    fn adapt_to_echo(&self, stored: Vec<String>, echoed: &[&str], toolset: &Toolset)
    -> Vec<String>;

    /// Returns entries that load these tools again at the end of the history. Each tool is given by its name and
    /// definition. Returns `None` if the API cannot load tools this way.
    fn reload_tools(
        &self,
        request: &Request,
        toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>>;

    /// Creates the merger for a streamed turn.
    fn stream_merger(&self, request: &Request) -> Box<dyn StreamMerger>;

    /// Creates the merger for a turn with complete responses.
    fn response_merger(&self, request: &Request) -> Box<dyn ResponseMerger>;

    /// Returns bytes to send to a waiting client, so that it does not consider the connection dead.
    fn keep_alive(&self) -> &'static [u8];
}

/// Merges the event streams of all rounds of a turn into the stream of one message.
pub(crate) trait StreamMerger: Send {
    /// Processes an event and writes the client's version of it to `out`. Events that end the message are held back.
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>);

    /// Whether the API's end-of-stream event was received. Always `false` for an API that has no such event.
    fn has_ended(&self) -> bool;

    /// Ends the round after the upstream's last event, and returns the content of the round.
    fn end_round(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) -> Round;

    /// Ends the turn: writes the end of the message, with the token usage of all rounds.
    fn finish(&mut self, router: &CallRouter, out: &mut Vec<u8>);

    /// Writes the API's error event, after a hidden round failed with this status and body.
    fn fail(&mut self, status: u16, body: &[u8], router: &CallRouter, out: &mut Vec<u8>);
}

/// Merges the complete responses of all rounds of a turn into one.
pub(crate) trait ResponseMerger: Send {
    /// Adds the response of a round. Returns `None` if `body` is not a response of this API. The client then gets the
    /// body unchanged.
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round>;

    /// Ends the turn and returns the merged response.
    fn finish(&mut self, router: &CallRouter) -> String;
}

/// The content of one round.
#[derive(Debug)]
pub(crate) struct Round {
    /// The model's output, as history entries for the next request.
    pub(crate) entries: Vec<String>,
    pub(crate) end: RoundEnd,
    pub(crate) usage: Usage,
    /// The id of the response, if the API stores responses.
    pub(crate) response: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// The model finished. Its calls, if any, can be answered.
    Complete,
    /// The model was stopped by a limit or a filter. Its calls are not answered.
    Truncated,
    /// The provider paused the model. To continue, its output so far must be sent back.
    Paused,
    /// The stream was cut off, or the upstream reported an error.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(
        upstream_id: &'a str,
        client_id: Option<&'a str>,
        name: &'a str,
    ) -> ForwardedCall<'a> {
        ForwardedCall { upstream_id: Some(upstream_id), client_id, name }
    }

    #[test]
    fn every_result_gets_the_id_of_another_call() {
        let named = [call("u1", Some("sum"), "sum"), call("u2", Some("sum"), "sum")];
        let mut ids = CallIdMapper::new(&named);
        let all = [(); 3].map(|()| ids.upstream_id_for(Some("sum"), None));
        assert_eq!(all, [Some("u1"), Some("u2"), Some("u1")], "the third is a repeated result");
        let unnamed = [call("u1", None, "sum"), call("u2", None, "weather")];
        let mut ids = CallIdMapper::new(&unnamed);
        assert_eq!(ids.upstream_id_for(None, Some("weather")), Some("u2"));
        assert_eq!(ids.upstream_id_for(Some(""), Some("sum")), Some("u1"));
        let mut ids = CallIdMapper::new(&unnamed);
        assert_eq!(
            [(); 3].map(|()| ids.upstream_id_for(None, None)),
            [Some("u1"), Some("u2"), None]
        );
    }
}
