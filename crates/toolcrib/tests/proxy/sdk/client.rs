//! Runs the agents that are written in Python, and reads the reports that they print.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// An agent written with one of the official SDKs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    /// The SDK `openai` with Chat Completions.
    Chat,
    /// The SDK `openai` with Responses, with the complete history in every request.
    Responses,
    /// The SDK `openai` with Responses, with `previous_response_id` in place of the history.
    Chained,
    /// The SDK `anthropic`.
    Anthropic,
    /// The SDK `google-genai`, with tools declared in JSON Schema.
    Gemini,
    /// The SDK `google-genai`, with tools declared in Gemini's own schema language.
    GeminiSchema,
    /// Version 2 of the SDK `google-genai`, which some agent frameworks still pin.
    OlderGemini,
}

impl Client {
    pub(crate) const ALL: [Self; 7] = [
        Self::Chat,
        Self::Responses,
        Self::Chained,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiSchema,
        Self::OlderGemini,
    ];

    /// Returns the Python environment in which the client's SDK is installed.
    fn environment(self) -> &'static str {
        if matches!(self, Self::OlderGemini) { "older-google" } else { "python" }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Chat => "openai_chat.py",
            Self::Responses | Self::Chained => "openai_responses.py",
            Self::Anthropic => "anthropic_messages.py",
            Self::Gemini | Self::GeminiSchema | Self::OlderGemini => "google_genai.py",
        }
    }

    /// Returns the stop reason that the SDK reports for a turn with calls, and for a turn without calls.
    fn stops(self) -> [&'static str; 2] {
        match self {
            Self::Chat => ["tool_calls", "stop"],
            Self::Responses | Self::Chained => ["completed", "completed"],
            Self::Anthropic => ["tool_use", "end_turn"],
            Self::Gemini | Self::GeminiSchema | Self::OlderGemini => ["STOP", "STOP"],
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs an agent against the API at `url`, which has no path, and returns the agent's report.
pub(crate) fn run(client: Client, url: &str, stream: bool) -> Value {
    run_with(client, url, stream, &[])
}

/// Runs an agent with this number of tools and only the first user message, and returns its report.
pub(crate) fn run_first(client: Client, url: &str, tools: usize) -> Value {
    run_with(client, url, false, &["--first", "--tools", &tools.to_string()])
}

fn run_with(client: Client, url: &str, stream: bool, flags: &[&str]) -> Value {
    let python = root().join(".tools/peers").join(client.environment()).join("bin/python");
    assert!(
        python.exists(),
        "`{}` is missing; hint: run `scripts/install-peers`",
        python.display()
    );
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/sdk").join(client.script());
    // With `-B`, Python writes no bytecode next to the sources. With `timeout`, a client that hangs fails the test.
    let mut command = Command::new("timeout");
    command.arg("300").arg(python).arg("-B").arg(script).arg(url).args(flags);
    if stream {
        command.arg("--stream");
    }
    if matches!(client, Client::Chained) {
        command.arg("--previous");
    }
    if matches!(client, Client::GeminiSchema) {
        command.arg("--schema");
    }
    let finished = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let output = || format!("out: {}\nerr: {}", text(&finished.stdout), text(&finished.stderr));
    assert!(
        finished.status.success(),
        "{client:?} stream={stream}: {}\n{}",
        finished.status,
        output()
    );
    serde_json::from_slice(&finished.stdout).unwrap()
}

/// Returns the part of a report that must be the same with and without Toolcrib: everything except ids and token
/// counts.
pub(crate) fn visible(report: &Value) -> Value {
    let mut report = report.clone();
    for turn in report["turns"].as_array_mut().unwrap() {
        for call in turn["calls"].as_array_mut().unwrap() {
            call.as_object_mut().unwrap().shift_remove("id");
        }
        for key in ["id", "usage"] {
            turn.as_object_mut().unwrap().shift_remove(key);
        }
    }
    report
}

/// Returns all ids in a report: first those of responses, then those of calls.
pub(crate) fn ids(report: &Value) -> Vec<String> {
    let turns = || report["turns"].as_array().unwrap().iter();
    let calls = turns().flat_map(|turn| turn["calls"].as_array().unwrap());
    turns().chain(calls).map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the report that an agent must print about the conversation in `office.py`.
pub(crate) fn expected(client: Client) -> Value {
    let model = match client {
        Client::Chat | Client::Responses | Client::Chained => "gpt-5.2",
        Client::Anthropic => "claude-opus-5",
        Client::Gemini | Client::GeminiSchema | Client::OlderGemini => "gemini-3-pro-preview",
    };
    let [calling, ending] = client.stops();
    let turn = |text: &str, calls: &[(&str, Value)], stop: &str| {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
            .collect();
        let mut turn =
            json!({"model": model, "text": text, "streamed": text, "stop": stop, "calls": calls});
        let kind = |call, message| if calls.is_empty() { json!([message]) } else { json!([call]) };
        match client {
            Client::Chat => {}
            Client::Responses | Client::Chained => {
                turn["items"] = kind("function_call", "message");
                turn["tools"] = true.into();
                turn["numbered"] = true.into();
            }
            Client::Anthropic => turn["items"] = kind("tool_use", "text"),
            // Gemini signs the first call of a turn. No turn here has more than one call, so all calls are signed.
            Client::Gemini | Client::GeminiSchema | Client::OlderGemini => {
                turn["signed"] = calls.iter().map(|_| Value::from(true)).collect();
            }
        }
        turn
    };
    let forecast = json!({"city": "Oslo", "days": 2});
    let event = json!({"title": "Umbrella", "starts_at": "tomorrow"});
    let mut turns = vec![
        turn("", &[("weather__forecast", forecast)], calling),
        turn("Done: Rain in Oslo, 4 degrees.", &[], ending),
        turn("", &[("calendar__create_event", event)], calling),
        turn("", &[("rooms__list_reservation", json!({"limit": 3}))], calling),
        turn("Done: rooms__list_reservation: {\"limit\": 3}", &[], ending),
    ];
    if matches!(client, Client::Anthropic) {
        turns[0]["counted"] = true.into();
    }
    json!({"turns": turns})
}
