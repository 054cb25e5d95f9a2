//! Checks what is sent to the upstream for any request of a client.
//!
//! The first line of an input says how to run it, as described at [`Head`](crate::client::Head). After `r`, the rest is
//! a request body in which `"@tools"` is replaced by forty tools. After `g`, a request body is generated from the rest.
//! If the letter is a capital, the store has a record for every turn of the model.

use std::sync::LazyLock;

use serde_json::Value;
use toolcrib_dialect::messages::{deferral_emulation, thinking};
use toolcrib_dialect::{Api, DeferralEmulation, Mode, Request};
use toolcrib_text::json::{self, Fields};

use crate::client::{self, begin, head, history_key, target};
use crate::driven_turn::NextStep;
use crate::{client_reader, generated_requests, generated_responses};

/// Reads an input as a request of this API, and checks the request that is sent to the upstream instead.
pub fn check(api: Api, data: &[u8]) {
    let (head, rest) = head(api, data);
    let body = match head.kind {
        b'r' | b'R' => match std::str::from_utf8(rest) {
            Ok(text) => text.replacen(r#""@tools""#, client::tools(api), 1).into_bytes(),
            Err(_) => rest.to_vec(),
        },
        _ => generated_requests::request(api, rest).unwrap_or_default().into_bytes(),
    };
    for target in [target(api, false), target(api, true), "/v1/messages/count_tokens", ""] {
        match Request::read(api, target, body.clone()) {
            Ok(request) => {
                assert_eq!(request.text.as_bytes(), body);
                check_request(request, target, head.mode, head.kind.is_ascii_uppercase());
            }
            Err(unread) => assert_eq!(unread.body, body, "what is not read goes up as it came"),
        }
        check_narrowed(api, target, &body);
    }
    if let Ok(text) = std::str::from_utf8(&body) {
        check_rewritten(text);
    }
}

fn check_request(request: Request, target: &str, mode: Mode, recorded: bool) {
    let api = request.api;
    let kept = || recorded.then(|| RECORDS[api as usize].clone());
    let turn = begin(request.clone(), target, mode, kept());
    let up = turn.request();
    assert_eq!(up, begin(request.clone(), target, mode, kept()).request(), "asked again");
    if request.client_deferral.is_some() {
        // The client's own deferral is either passed through or emulated. `check_rewritten` checks the emulation.
        assert!(client_reader::is_json(&up), "{up}");
        return;
    }
    let (old, new) = (read(&request.text), read(&up));
    assert_eq!(old.len(), new.len());
    for ((key, old), (same, new)) in old.iter().zip(&new) {
        assert_eq!(key, same);
        let last = |key: &str| Fields::read(&request.text).and_then(|all| all.get(key));
        // If a key occurs twice, only its last value counts.
        let counts = last(key).is_some_and(|raw| raw.as_ptr() == old.as_ptr());
        match key.as_str() {
            "tools" if counts => assert!(json::items(new).is_some(), "{new}"),
            "previous_response_id" if counts && recorded => {
                assert!(client_reader::is_json(new), "{new}")
            }
            key if counts && key == history_key(api) => {
                let new = json::items(new).expect("a history is a list");
                if let (Some(old), false) = (json::items(old), recorded) {
                    let old: Vec<&str> = old.iter().map(|entry| entry.get()).collect();
                    let new: Vec<&str> = new.iter().map(|entry| entry.get()).collect();
                    check_history(api, &names(request.tools()), &old, &new);
                }
            }
            _ => assert_eq!(old, new, "{key} must not change"),
        }
    }
}

fn read(text: &str) -> Vec<(String, &str)> {
    let fields = Fields::read(text).expect("what goes up is JSON");
    fields.iter().map(|(key, raw)| (key.to_owned(), raw)).collect()
}

/// Returns every name in the tools of a request. If the tools cannot be parsed, returns only an empty name, which every
/// text contains.
fn names(tools: &str) -> Vec<String> {
    fn note(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| note(item, names)),
            Value::Object(fields) => {
                names.extend(fields.get("name").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| note(value, names));
            }
            _ => {}
        }
    }
    let mut names = Vec::new();
    match serde_json::from_str(tools) {
        Ok(value) => note(&value, &mut names),
        Err(_) => names.push(String::new()),
    }
    names
}

/// Checks that every entry of the history is unchanged, unless it may contain a call of a deferred tool or, with Gemini,
/// the result of such a call. At most two entries may be added at the end, to remind the model of its tools.
fn check_history(api: Api, names: &[String], old: &[&str], new: &[&str]) {
    assert!(new.len() >= old.len() && new.len() <= old.len() + 2, "{old:?}\n{new:?}");
    let mut called = false;
    for (old, new) in old.iter().zip(new) {
        // A name may be written with escapes, so any entry with a backslash may contain a name.
        let calls = old.contains('\\') || names.iter().any(|name| old.contains(name));
        called |= calls;
        let answers = api == Api::Gemini && called && old.contains("esponse");
        assert!(old == new || calls || answers, "{old}\n{new}");
    }
}

/// Removes the tools outside a caller's scope, then replaces the name of the model. Checks that removing tools again
/// changes nothing, and that a body that is JSON stays JSON when the name is replaced, even if it cannot be read as a
/// request.
fn check_narrowed(api: Api, target: &str, body: &[u8]) {
    let odd = |names: &[&str]| names.iter().any(|name| name.len() % 2 == 1);
    let read = |body: Vec<u8>| {
        Some(match Request::read_in_scope(api, target, body, &odd).ok()? {
            Ok(mut request) => {
                let left = request.text.clone().into_bytes();
                request.set_model("n\"n");
                (left, request.text.into_bytes())
            }
            Err(mut unread) => {
                let left = unread.body.clone();
                unread.set_model("n\"n");
                (left, unread.body)
            }
        })
    };
    let Some((left, renamed)) = read(body.to_vec()) else { return };
    let again = read(left.clone()).map(|(again, _)| again);
    assert_eq!(again.as_ref(), Some(&left), "left out again");
    let is_json = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(client_reader::is_json);
    if is_json(&left) {
        assert!(is_json(&renamed), "{}", String::from_utf8_lossy(&renamed));
    }
}

/// Checks the other changes that may be made to a body before it is sent to the upstream.
fn check_rewritten(text: &str) {
    let bare = thinking::strip_thinking(text);
    assert_eq!(thinking::strip_thinking(&bare), bare);
    assert_eq!(client_reader::is_json(&bare), client_reader::is_json(text));
    if let Some(plain) = deferral_emulation::without_deferral(text) {
        assert!(client_reader::is_json(&plain), "{plain}");
        assert_eq!(deferral_emulation::without_deferral(&plain), None, "{plain}");
    }
    if let Some(mut emulation) = DeferralEmulation::read(text) {
        assert!(client_reader::is_json(emulation.request()), "{}", emulation.request());
        // The text is a request and not a response, but it must stay JSON if it is JSON.
        assert_eq!(
            client_reader::is_json(&emulation.restore_response(text)),
            client_reader::is_json(text)
        );
        let mut out = Vec::new();
        let event = format!("data: {}\n\n", json::compact(text));
        for event in client_reader::events(event.as_bytes()) {
            emulation.restore_event(&event, &mut out);
        }
        assert!(
            client_reader::is_clean(&client_reader::events(&out)),
            "{}",
            String::from_utf8_lossy(&out)
        );
    }
}

/// For each API, the record of a turn with two rounds: a search, and then another search together with a call.
static RECORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| Api::ALL.map(record).to_vec());

fn record(api: Api) -> Vec<u8> {
    let mut turn = client::turn(api, Mode::Bridge, false);
    for answer in generated_responses::searched(api) {
        if let Some(NextStep::Done(done)) = turn.complete_response(answer.as_bytes()) {
            return done.records.into_iter().next().expect("something to keep").1;
        }
    }
    unreachable!("a turn without an end")
}
