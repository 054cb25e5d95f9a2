//! Asking the client for something in the middle of a request, in both eras.
//!
//! A question is written once, as a pure step: answers so far in, the next questions or the result
//! out. A modern client gets the questions as an `input_required` result and comes back with the
//! answers; a legacy client gets them as requests of the server, and the same step runs again.

use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    JsonObject, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

/// Rounds a legacy client is taken through before we give up: rmcp's own bound for modern ones.
const ROUNDS: usize = 10;

/// What a step may look at.
pub(crate) struct Round<'a> {
    pub(crate) arguments: &'a JsonObject,
    pub(crate) answers: &'a InputResponses,
    pub(crate) state: Option<&'a str>,
    /// What the client can be asked for.
    pub(crate) can: &'a ClientCapabilities,
}

impl Round<'_> {
    /// A member of the form the user filled in for `question`; `None` when there is none yet.
    pub(crate) fn form(&self, question: &str, member: &str) -> Option<&Value> {
        self.answers.get(question)?.get("content")?.get(member)
    }
}

/// Where a step leads.
pub(crate) enum Step<T> {
    Done(T),
    Ask { questions: Value, state: Option<String> },
}

impl<T> Step<T> {
    /// Questions without a state for the client to carry.
    pub(crate) fn ask(questions: Value) -> Self {
        Self::Ask { questions, state: None }
    }
}

/// How the request ends for now.
pub(crate) enum Turn<T> {
    Done(T),
    InputRequired(InputRequiredResult),
}

/// Answers and state that came with the request; empty on the first round.
#[derive(Default)]
pub(crate) struct Carried {
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

/// Whether the request belongs to the stateless revision.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Runs `step` until it is done, or until a modern client has to come back.
pub(crate) async fn converse<T>(
    context: &RequestContext<RoleServer>,
    arguments: &JsonObject,
    carried: Carried,
    step: impl Fn(&Round<'_>) -> Result<Step<T>, ErrorData>,
) -> Result<Turn<T>, ErrorData> {
    let can = context.client_capabilities().unwrap_or_default();
    let mut answers = carried.answers.unwrap_or_default();
    let mut state = carried.state;
    for _ in 0..ROUNDS {
        let round = Round { arguments, answers: &answers, state: state.as_deref(), can: &can };
        let (questions, next_state) = match step(&round)? {
            Step::Done(result) => return Ok(Turn::Done(result)),
            Step::Ask { questions, state } => (read(questions)?, state),
        };
        for question in questions.values() {
            require(&can, question)?;
        }
        if is_modern(context) {
            return Ok(Turn::InputRequired(InputRequiredResult::new(Some(questions), next_state)));
        }
        answers.clear();
        for (name, question) in questions {
            answers.insert(name, request(context, question).await?);
        }
        state = next_state;
    }
    Err(ErrorData::internal_error(format!("no end after {ROUNDS} rounds of questions"), None))
}

fn read(questions: Value) -> Result<InputRequests, ErrorData> {
    serde_json::from_value(questions)
        .map_err(|error| ErrorData::internal_error(format!("bad question: {error}"), None))
}

/// Refuses to ask for what the client did not say it can do.
fn require(can: &ClientCapabilities, question: &InputRequest) -> Result<(), ErrorData> {
    let (able, capability) = match question {
        InputRequest::CreateMessage(_) => (can.sampling.is_some(), "sampling"),
        InputRequest::Elicitation(_) => (can.elicitation.is_some(), "elicitation"),
        InputRequest::ListRoots(_) => (can.roots.is_some(), "roots"),
        _ => return Ok(()),
    };
    if able { Ok(()) } else { Err(missing(capability)) }
}

/// The error of the modern revision for a capability the client did not declare.
pub(crate) fn missing(capability: &str) -> ErrorData {
    match serde_json::from_value::<ClientCapabilities>(json!({capability: {}})) {
        Ok(required) => ErrorData::missing_required_client_capability(required),
        Err(error) => ErrorData::internal_error(error.to_string(), None),
    }
}

async fn request(
    context: &RequestContext<RoleServer>,
    question: InputRequest,
) -> Result<Value, ErrorData> {
    let request = match question {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ErrorData::internal_error("a question of an unknown kind", None)),
    };
    let answer = context
        .peer
        .send_request(request)
        .await
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
