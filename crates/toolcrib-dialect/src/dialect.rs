//! What the four APIs have in common: the questions a turn asks of each.

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

/// A call that the client got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForwardedCall<'a> {
    /// The id that the upstream knows it by.
    pub(crate) upstream_id: Option<&'a str>,
    /// The id that the client knows it by.
    pub(crate) client_id: Option<&'a str>,
    /// The name that the client knows the tool by.
    pub(crate) name: &'a str,
}

/// Finds the ids under which the upstream knows the calls of a turn, result by result.
pub(crate) struct CallIdMapper<'a> {
    calls: &'a [ForwardedCall<'a>],
    /// For each call, whether it has its result.
    has_result: Vec<bool>,
}

impl<'a> CallIdMapper<'a> {
    pub(crate) fn new(calls: &'a [ForwardedCall<'a>]) -> Self {
        Self { calls, has_result: vec![false; calls.len()] }
    }

    /// Whether no result needs another id.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The upstream's id for the call that the client's next result is for, if the result has another or none.
    ///
    /// A result is for the first call with its id that has no result yet: some clients use the tool's name as the
    /// id of every call. Among calls without ids, a result that names its tool is for that tool; otherwise
    /// the order decides.
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
        // Clients repeat themselves.
        let at = at.or_else(|| all.clone().find(fits).filter(|_| client_id.is_some()))?;
        self.has_result[at] = true;
        self.calls[at].upstream_id.filter(|upstream_id| Some(*upstream_id) != client_id)
    }
}

/// One API.
pub(crate) trait Dialect: Sync {
    /// What is seen at the top of a body.
    fn read_outline<'a>(&self, body: &Fields<'a>, target: &str) -> RequestOutline<'a>;

    /// Reads the conversation in a body: `history` is a slice of `text`. `None` if it is none of this API.
    fn read_conversation(&self, text: &str, history: &str) -> Option<ParsedHistory>;

    /// How the client defers tools itself, if it does. `loads_tools`: whether its conversation loads any.
    fn client_deferral(
        &self,
        _tools: &str,
        _history: &str,
        _loads_tools: bool,
    ) -> Option<ClientDeferral> {
        None
    }

    /// Writes the tools to send in place of those that came in.
    fn tools_writer(&self) -> WriteTools;

    /// An entry of the model's in which calls of deferred tools go through `call` again: how it stands
    /// where no record tells. `None` where it has none.
    fn wrap_deferred_calls(
        &self,
        entry: &str,
        deferred: &dyn Fn(&str) -> bool,
        call: &str,
    ) -> Option<String>;

    /// An entry of the model's in which calls of deferred tools stand where a reference loads them to:
    /// how it stands where no record tells. `None` where there is nothing to say.
    fn qualify_deferred_calls(
        &self,
        _entry: &str,
        _deferred: &dyn Fn(&str) -> bool,
    ) -> Option<String> {
        None
    }

    /// What follows a turn of the model: the client's entries, with the answers among them that the
    /// client knows nothing of. `said` is the turn as the upstream knows it. `calls` are the calls that the
    /// client got of it, in order; none if it knows all of them by the ids they were given.
    fn insert_hidden_results<'a>(
        &self,
        turn: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[HiddenAnswer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>>;

    /// A turn of the model in which the calls without an id have those that were made for them.
    fn with_generated_ids(&self, turn: Vec<String>, generated: Vec<GeneratedId>) -> Vec<String>;

    /// A message of the user's with a text of ours before what the user says; `None` for any other entry.
    fn insert_announcement(&self, entry: &str, text: &str) -> Option<String>;

    /// A message of the user's with this text alone.
    fn user_message(&self, text: &str) -> String;

    /// A kept turn, fitted to what the client echoes of it: what the client left out on purpose stays
    /// out, and marks that it set are kept.
    fn adapt_to_echo(&self, stored: Vec<String>, echoed: &[&str], toolset: &Toolset)
    -> Vec<String>;

    /// Entries for the end of the history that load these tools again, by name and definition. `None`
    /// where the API has nothing of the kind.
    fn reload_tools(
        &self,
        request: &Request,
        toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>>;

    /// Reads the events of a turn.
    fn stream_merger(&self, request: &Request) -> Box<dyn StreamMerger>;

    /// Reads the whole responses of a turn.
    fn response_merger(&self, request: &Request) -> Box<dyn ResponseMerger>;

    /// What shows a waiting client that somebody is still there.
    fn keep_alive(&self) -> &'static [u8];
}

/// Reads the events of all rounds of a turn, and writes those of one message.
pub(crate) trait StreamMerger: Send {
    /// Takes an event; what the client gets for it goes to `out`. What ends a message is held back.
    fn event(&mut self, event: &Event, router: &mut CallRouter, out: &mut Vec<u8>);

    /// Whether the API's own end of the events was there; never where it has none.
    fn has_ended(&self) -> bool;

    /// The upstream's events are over: what was said in this round.
    fn end_round(&mut self, router: &mut CallRouter, out: &mut Vec<u8>) -> Round;

    /// The turn is over: the end of the message, with what all rounds took.
    fn finish(&mut self, router: &CallRouter, out: &mut Vec<u8>);

    /// A later round failed with this status and body: the API's own error event.
    fn fail(&mut self, status: u16, body: &[u8], router: &CallRouter, out: &mut Vec<u8>);
}

/// Reads the responses of all rounds of a turn, and writes one.
pub(crate) trait ResponseMerger: Send {
    /// Takes a response; `None` for what is none, which goes to the client as it came.
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round>;

    /// The turn is over: one response for all of it.
    fn finish(&mut self, router: &CallRouter) -> String;
}

/// What was said in one round.
#[derive(Debug)]
pub(crate) struct Round {
    /// The model's turn, as entries that go back up.
    pub(crate) entries: Vec<String>,
    /// How it ended.
    pub(crate) end: RoundEnd,
    /// What it took.
    pub(crate) usage: Usage,
    /// The id under which the API keeps it.
    pub(crate) response: Option<String>,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// By itself: calls, if there are any, can be answered.
    Complete,
    /// Cut short by a limit or a filter; what it called is not answered.
    Truncated,
    /// The provider wants to be asked again with what it said so far.
    Paused,
    /// The upstream broke off, or said that it failed.
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
    fn every_result_gets_the_id_of_a_call_of_its_own() {
        let named = [call("u1", Some("sum"), "sum"), call("u2", Some("sum"), "sum")];
        let mut ids = CallIdMapper::new(&named);
        let all = [(); 3].map(|()| ids.upstream_id_for(Some("sum"), None));
        assert_eq!(all, [Some("u1"), Some("u2"), Some("u1")], "the third is a repetition");
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
