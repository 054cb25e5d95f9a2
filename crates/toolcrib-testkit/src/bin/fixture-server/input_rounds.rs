//! Asks the client for input during a request, in the older and the newer protocol.
//!
//! Each tool is written once, as a pure function that takes the answers so far and returns the next questions or the
//! result. A client of the newer protocol gets the questions as an `input_required` result and repeats the request with
//! the answers. A client of the older protocol gets the questions as requests from the server, and then the function
//! runs again with the answers.

use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    JsonObject, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

/// Maximum number of rounds for a client of the older protocol. It equals rmcp's limit for clients of the newer
/// protocol.
const ROUNDS: usize = 10;

/// Everything that the client has sent when a round begins.
pub(crate) struct Round<'a> {
    pub(crate) arguments: &'a JsonObject,
    pub(crate) answers: &'a InputResponses,
    pub(crate) state: Option<&'a str>,
    pub(crate) capabilities: &'a ClientCapabilities,
}

impl Round<'_> {
    /// Returns the value of the field `member` in the form that the user submitted for `question`. `None` if there is
    /// no such form or field.
    pub(crate) fn form(&self, question: &str, member: &str) -> Option<&Value> {
        self.answers.get(question)?.get("content")?.get(member)
    }
}

/// What a round leads to: the result, or further questions.
pub(crate) enum NextStep<T> {
    Done(T),
    Ask { questions: Value, state: Option<String> },
}

impl<T> NextStep<T> {
    /// Creates a step that asks questions and has no state that the client would have to return.
    pub(crate) fn ask(questions: Value) -> Self {
        Self::Ask { questions, state: None }
    }
}

/// The response to a request: the result, or a request for input.
pub(crate) enum RoundResult<T> {
    Done(T),
    InputRequired(InputRequiredResult),
}

/// The answers and the state that the request contains. Both are empty in the first round.
#[derive(Default)]
pub(crate) struct ClientInput {
    pub(crate) answers: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

/// Whether the request uses the newer protocol, which is stateless.
pub(crate) fn uses_newer_protocol(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Runs `step` until it returns a result, or until a client of the newer protocol must repeat the request with more
/// input.
pub(crate) async fn run_rounds<T>(
    context: &RequestContext<RoleServer>,
    arguments: &JsonObject,
    input: ClientInput,
    step: impl Fn(&Round<'_>) -> Result<NextStep<T>, ErrorData>,
) -> Result<RoundResult<T>, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    let mut answers = input.answers.unwrap_or_default();
    let mut state = input.state;
    for _ in 0..ROUNDS {
        let round = Round {
            arguments,
            answers: &answers,
            state: state.as_deref(),
            capabilities: &capabilities,
        };
        let (questions, next_state) = match step(&round)? {
            NextStep::Done(result) => return Ok(RoundResult::Done(result)),
            NextStep::Ask { questions, state } => (read(questions)?, state),
        };
        for question in questions.values() {
            require(&capabilities, question)?;
        }
        if uses_newer_protocol(context) {
            return Ok(RoundResult::InputRequired(InputRequiredResult::new(
                Some(questions),
                next_state,
            )));
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

/// Fails if the client has not declared the capability that a question needs.
fn require(capabilities: &ClientCapabilities, question: &InputRequest) -> Result<(), ErrorData> {
    let (able, capability) = match question {
        InputRequest::CreateMessage(_) => (capabilities.sampling.is_some(), "sampling"),
        InputRequest::Elicitation(_) => (capabilities.elicitation.is_some(), "elicitation"),
        InputRequest::ListRoots(_) => (capabilities.roots.is_some(), "roots"),
        _ => return Ok(()),
    };
    if able { Ok(()) } else { Err(missing(capability)) }
}

/// Returns the newer protocol's error for a capability that the client has not declared.
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
