//! What the four APIs have in common: the questions a turn asks of each.

use std::borrow::Cow;

use toolcrib_text::json::Fields;

use crate::call_ids::MadeId;
use crate::desk::Desk;
use crate::record::Answer;
use crate::request::{Conversation, Defers, Outline, Request};
use crate::sse::Event;
use crate::tools::WriteTools;
use crate::toolset::Toolset;
use crate::usage::Usage;

/// A call that the client got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForwardedCall<'a> {
    /// The id that the upstream knows it by.
    pub(crate) given: Option<&'a str>,
    /// The id that the client knows it by.
    pub(crate) echoed: Option<&'a str>,
    /// The name that the client knows the tool by.
    pub(crate) name: &'a str,
}

/// Finds the ids under which the upstream knows the calls of a turn, result by result.
pub(crate) struct Addresses<'a> {
    calls: &'a [ForwardedCall<'a>],
    /// For each call, whether it has its result.
    answered: Vec<bool>,
}

impl<'a> Addresses<'a> {
    pub(crate) fn new(calls: &'a [ForwardedCall<'a>]) -> Self {
        Self { calls, answered: vec![false; calls.len()] }
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
    pub(crate) fn next(&mut self, echoed: Option<&str>, name: Option<&str>) -> Option<&'a str> {
        let echoed = echoed.filter(|id| !id.is_empty());
        let fits = |at: &usize| self.calls[*at].echoed == echoed;
        let open = |at: &usize| fits(at) && !self.answered[*at];
        let named = |at: &usize| open(at) && name == Some(self.calls[*at].name);
        let all = 0..self.calls.len();
        let at = all.clone().find(named).or_else(|| all.clone().find(open));
        // Clients repeat themselves.
        let at = at.or_else(|| all.clone().find(fits).filter(|_| echoed.is_some()))?;
        self.answered[at] = true;
        self.calls[at].given.filter(|given| Some(*given) != echoed)
    }
}

/// One API.
pub(crate) trait Dialect: Sync {
    /// What is seen at the top of a body.
    fn outline<'a>(&self, body: &Fields<'a>, target: &str) -> Outline<'a>;

    /// Reads the conversation in a body: `history` is a slice of `text`. `None` if it is none of this API.
    fn conversation(&self, text: &str, history: &str) -> Option<Conversation>;

    /// How the client defers tools itself, if it does. `loads_tools`: whether its conversation loads any.
    fn defers(&self, _tools: &str, _history: &str, _loads_tools: bool) -> Option<Defers> {
        None
    }

    /// Writes the tools to send in place of those that came in.
    fn write_tools(&self) -> WriteTools;

    /// An entry of the model's in which calls of deferred tools go through `call` again: how it stands
    /// where no record tells. `None` where it has none.
    fn wrap(&self, entry: &str, deferred: &dyn Fn(&str) -> bool, call: &str) -> Option<String>;

    /// An entry of the model's in which calls of deferred tools stand where a reference loads them to:
    /// how it stands where no record tells. `None` where there is nothing to say.
    fn locate(&self, _entry: &str, _deferred: &dyn Fn(&str) -> bool) -> Option<String> {
        None
    }

    /// What follows a turn of the model: the client's entries, with the answers among them that the
    /// client knows nothing of. `said` is the turn as the upstream knows it. `calls` are the calls that the
    /// client got of it, in order; none if it knows all of them by the ids they were given.
    fn join<'a>(
        &self,
        said: &[Cow<'_, str>],
        entries: Vec<&'a str>,
        answers: &[Answer],
        calls: &[ForwardedCall<'_>],
        toolset: &Toolset,
    ) -> Vec<Cow<'a, str>>;

    /// A turn of the model in which the calls without an id have those that were made for them.
    fn with_ids(&self, said: Vec<String>, made: Vec<MadeId>) -> Vec<String>;

    /// A message of the user's with a text of ours before what the user says; `None` for any other entry.
    fn announce(&self, entry: &str, text: &str) -> Option<String>;

    /// A message of the user's with this text alone.
    fn user_message(&self, text: &str) -> String;

    /// A kept turn, fitted to what the client echoes of it: what the client left out on purpose stays
    /// out, and marks that it set are kept.
    fn fit(&self, kept: Vec<String>, echo: &[&str], toolset: &Toolset) -> Vec<String>;

    /// Entries for the end of the history that load these tools again, by name and definition. `None`
    /// where the API has nothing of the kind.
    fn remind(
        &self,
        request: &Request,
        toolset: &Toolset,
        tools: &[(&str, &str)],
    ) -> Option<Vec<String>>;

    /// Reads the events of a turn.
    fn stream(&self, request: &Request) -> Box<dyn Stream>;

    /// Reads the whole responses of a turn.
    fn whole(&self, request: &Request) -> Box<dyn Whole>;

    /// What shows a waiting client that somebody is still there.
    fn keep_alive(&self) -> &'static [u8];
}

/// Reads the events of all rounds of a turn, and writes those of one message.
pub(crate) trait Stream: Send {
    /// Takes an event; what the client gets for it goes to `out`. What ends a message is held back.
    fn event(&mut self, event: &Event, desk: &mut Desk, out: &mut Vec<u8>);

    /// Whether the API's own end of the events was there; never where it has none.
    fn has_ended(&self) -> bool;

    /// The upstream's events are over: what was said in this round.
    fn round(&mut self, desk: &mut Desk, out: &mut Vec<u8>) -> Round;

    /// The turn is over: the end of the message, with what all rounds took.
    fn finish(&mut self, desk: &Desk, out: &mut Vec<u8>);

    /// A later round failed with this status and body: the API's own error event.
    fn fail(&mut self, status: u16, body: &[u8], desk: &Desk, out: &mut Vec<u8>);
}

/// Reads the responses of all rounds of a turn, and writes one.
pub(crate) trait Whole: Send {
    /// Takes a response; `None` for what is none, which goes to the client as it came.
    fn round(&mut self, body: &str, desk: &mut Desk) -> Option<Round>;

    /// The turn is over: one response for all of it.
    fn finish(&mut self, desk: &Desk) -> String;
}

/// What was said in one round.
#[derive(Debug)]
pub(crate) struct Round {
    /// The model's turn, as entries that go back up.
    pub(crate) entries: Vec<String>,
    /// How it ended.
    pub(crate) end: End,
    /// What it took.
    pub(crate) usage: Usage,
    /// The id under which the API keeps it.
    pub(crate) response: Option<String>,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself: calls, if there are any, can be answered.
    Whole,
    /// Cut short by a limit or a filter; what it called is not answered.
    Cut,
    /// The provider wants to be asked again with what it said so far.
    Paused,
    /// The upstream broke off, or said that it failed.
    Broken,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(given: &'a str, echoed: Option<&'a str>, name: &'a str) -> ForwardedCall<'a> {
        ForwardedCall { given: Some(given), echoed, name }
    }

    #[test]
    fn every_result_gets_the_id_of_a_call_of_its_own() {
        let named = [call("u1", Some("sum"), "sum"), call("u2", Some("sum"), "sum")];
        let mut ids = Addresses::new(&named);
        let all = [(); 3].map(|()| ids.next(Some("sum"), None));
        assert_eq!(all, [Some("u1"), Some("u2"), Some("u1")], "the third is a repetition");
        let unnamed = [call("u1", None, "sum"), call("u2", None, "weather")];
        let mut ids = Addresses::new(&unnamed);
        assert_eq!(ids.next(None, Some("weather")), Some("u2"));
        assert_eq!(ids.next(Some(""), Some("sum")), Some("u1"));
        let mut ids = Addresses::new(&unnamed);
        assert_eq!([(); 3].map(|()| ids.next(None, None)), [Some("u1"), Some("u2"), None]);
    }
}
