//! Tools that need input from the client: a completed form, a sampled message, or the client's roots.
//!
//! Each tool is a pure function, as described in [`crate::input_rounds`]. State that the client must return is sealed,
//! so that a change can be detected. If the client has changed the state, the request fails; the questions are not
//! asked again.
#![expect(clippy::unnecessary_wraps, reason = "all steps share one signature")]

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, RequestStateCodec};
use serde_json::{Value, json};

use crate::definition::{Definition, one_text};
use crate::input_rounds::{NextStep, Round, missing};

/// The key that seals the state. It is fixed, so that responses are the same on every run. A test server has no secrets
/// to protect.
const KEY: &[u8] = b"toolcrib-fixture: a key that everybody may know";

type StepResult = Result<NextStep<CallToolResult>, ErrorData>;

pub(crate) const TOOLS: &[Definition] = &[
    Definition::taking("test_sampling", "Lets the client's model answer a prompt.", || {
        one_text("prompt", "What to ask the model.")
    }),
    Definition::taking("test_elicitation", "Asks the user for a name and an address.", || {
        one_text("message", "What to show the user.")
    }),
    Definition::plain(
        "test_elicitation_sep1034_defaults",
        "Shows the user a form with a default in every field.",
    ),
    Definition::plain(
        "test_elicitation_sep1330_enums",
        "Shows the user a form with every kind of choice.",
    ),
    Definition::plain("test_streaming_elicitation", "Asks the user to go on."),
    Definition::plain("test_missing_capability", "Needs a client that can sample."),
    Definition::plain("test_input_required_result_elicitation", "Asks for a name and greets it."),
    Definition::plain("test_input_required_result_sampling", "Asks the model for a capital."),
    Definition::plain("test_input_required_result_list_roots", "Asks for the client's roots."),
    Definition::plain(
        "test_input_required_result_request_state",
        "Asks for a yes, with a state to carry.",
    ),
    Definition::plain("test_input_required_result_multiple_inputs", "Asks three things at once."),
    Definition::plain("test_input_required_result_multi_round", "Asks two things in turn."),
    Definition::plain(
        "test_input_required_result_tampered_state",
        "Asks for a yes, and refuses a changed state.",
    ),
    Definition::plain(
        "test_input_required_result_capabilities",
        "Asks only what the client can answer.",
    ),
];

/// Returns the function for the tool `name`. `None` if the tool needs no input.
pub(crate) fn find(name: &str) -> Option<fn(&Round<'_>) -> StepResult> {
    Some(match name {
        "test_sampling" => sampling,
        "test_elicitation" => elicitation,
        "test_elicitation_sep1034_defaults" => defaults,
        "test_elicitation_sep1330_enums" => choices,
        "test_streaming_elicitation" => continue_form,
        "test_missing_capability" => needs_sampling,
        "test_input_required_result_elicitation" => greeting,
        "test_input_required_result_sampling" => capital,
        "test_input_required_result_list_roots" => roots,
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => confirmed,
        "test_input_required_result_multiple_inputs" => three_at_once,
        "test_input_required_result_multi_round" => two_in_turn,
        "test_input_required_result_capabilities" => only_supported_questions,
        _ => return None,
    })
}

fn text_result(text: impl Into<String>) -> NextStep<CallToolResult> {
    NextStep::Done(CallToolResult::success(vec![ContentBlock::text(text)]))
}

/// Returns the client's answer under the key `name` as text. If there is no answer yet, asks `question` under this key.
fn ask_once(round: &Round<'_>, name: &str, question: &Value) -> StepResult {
    Ok(match round.answers.get(name) {
        Some(answer) if answer.is_object() => text_result(format!("The client said: {answer}")),
        _ => NextStep::ask(json!({name: question})),
    })
}

pub(crate) fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
            },
        },
    })
}

fn sample(prompt: &str) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": 100,
        },
    })
}

fn list_roots() -> Value {
    json!({"method": "roots/list"})
}

fn name_form(message: &str) -> Value {
    form(message, &json!({"name": {"type": "string"}}), &["name"])
}

fn text<'a>(round: &'a Round<'_>, argument: &str) -> Result<&'a str, ErrorData> {
    round
        .arguments
        .get(argument)
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("`{argument}` must be a text"), None))
}

fn sampling(round: &Round<'_>) -> StepResult {
    ask_once(round, "reply", &sample(text(round, "prompt")?))
}

fn elicitation(round: &Round<'_>) -> StepResult {
    let properties = json!({
        "username": {"type": "string", "description": "A name to call the user by."},
        "email": {"type": "string", "description": "Where to write to."},
    });
    let question = form(text(round, "message")?, &properties, &["username", "email"]);
    ask_once(round, "user", &question)
}

fn defaults(round: &Round<'_>) -> StepResult {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    ask_once(round, "form", &form("Check these fields.", &properties, &[]))
}

fn choices(round: &Round<'_>) -> StepResult {
    let plain = json!(["option1", "option2", "option3"]);
    let titled = json!([
        {"const": "value1", "title": "The first"},
        {"const": "value2", "title": "The second"},
        {"const": "value3", "title": "The third"},
    ]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["One", "Two", "Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    ask_once(round, "form", &form("Choose.", &properties, &[]))
}

fn continue_form(round: &Round<'_>) -> StepResult {
    let question = form("Shall we go on?", &json!({"ok": {"type": "boolean"}}), &["ok"]);
    ask_once(round, "go_on", &question)
}

fn needs_sampling(round: &Round<'_>) -> StepResult {
    if round.capabilities.sampling.is_none() {
        return Err(missing("sampling"));
    }
    Ok(text_result("This client can sample."))
}

fn greeting(round: &Round<'_>) -> StepResult {
    Ok(match round.form("user_name", "name").and_then(Value::as_str) {
        Some(name) => text_result(format!("Good day, {name}.")),
        // Any other answer, for example one with a wrong key or type, is ignored, and the question is repeated.
        None => NextStep::ask(json!({"user_name": name_form("What is your name?")})),
    })
}

fn capital(round: &Round<'_>) -> StepResult {
    ask_once(round, "capital_question", &sample("Which city is the capital of Norway?"))
}

fn roots(round: &Round<'_>) -> StepResult {
    ask_once(round, "client_roots", &list_roots())
}

fn codec() -> Result<RequestStateCodec, ErrorData> {
    RequestStateCodec::try_new(KEY)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Seals a payload, so that a change by the client can be detected.
fn seal(payload: &Value) -> Result<String, ErrorData> {
    codec()?.seal_json(payload).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Opens the sealed state that the client returned. Returns `None` if the client sent no state, and an error if the
/// client has changed the state.
fn open(round: &Round<'_>) -> Result<Option<Value>, ErrorData> {
    let Some(sealed) = round.state else { return Ok(None) };
    codec()?
        .open_json(sealed)
        .map(Some)
        .map_err(|error| ErrorData::invalid_params(format!("bad `requestState`: {error}"), None))
}

fn confirmed(round: &Round<'_>) -> StepResult {
    let state = open(round)?;
    Ok(match (state, round.form("confirm", "ok")) {
        (Some(_), Some(ok)) => text_result(format!("state-ok, and the user said {ok}.")),
        _ => NextStep::Ask {
            questions: json!({
                "confirm": form("Is that right?", &json!({"ok": {"type": "boolean"}}), &["ok"]),
            }),
            state: Some(seal(&json!({"asked": "confirm"}))?),
        },
    })
}

fn three_at_once(round: &Round<'_>) -> StepResult {
    let state = open(round)?;
    let all = ["user_name", "greeting", "client_roots"];
    if state.is_some() && all.iter().all(|name| round.answers.contains_key(*name)) {
        return Ok(text_result("All three answers are here."));
    }
    Ok(NextStep::Ask {
        questions: json!({
            "user_name": name_form("What is your name?"),
            "greeting": sample("Write one line of greeting."),
            "client_roots": list_roots(),
        }),
        state: Some(seal(&json!({"asked": all}))?),
    })
}

fn two_in_turn(round: &Round<'_>) -> StepResult {
    let known = open(round)?.and_then(|state| state.get("name").cloned());
    if let (Some(name), Some(color)) = (&known, round.form("step2", "color")) {
        return Ok(text_result(format!("{name} likes {color}.")));
    }
    if let Some(name) = known.as_ref().or_else(|| round.form("step1", "name")) {
        return Ok(NextStep::Ask {
            questions: json!({
                "step2": form(
                    "Second: which colour do you like?",
                    &json!({"color": {"type": "string"}}),
                    &["color"],
                ),
            }),
            state: Some(seal(&json!({"name": name}))?),
        });
    }
    Ok(NextStep::Ask {
        questions: json!({"step1": name_form("First: what is your name?")}),
        state: Some(seal(&json!({"asked": "name"}))?),
    })
}

fn only_supported_questions(round: &Round<'_>) -> StepResult {
    let mut questions = serde_json::Map::new();
    if round.capabilities.sampling.is_some() {
        questions.insert("reply".into(), sample("Say something."));
    }
    if round.capabilities.elicitation.is_some() {
        questions.insert("user_name".into(), name_form("What is your name?"));
    }
    let answered = questions.keys().all(|name| round.answers.contains_key(name));
    Ok(if answered {
        text_result("Nothing is left to ask.")
    } else {
        NextStep::ask(questions.into())
    })
}
