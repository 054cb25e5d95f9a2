//! Calls any name with any arguments.
//!
//! The text before the first NUL or newline is the name, and the rest is the arguments. The same arguments are then
//! given to each of Toolcrib's own tools. A call that is run must be of a tool in scope, and its arguments must be an
//! object. A refusal must be JSON and must not name any tool outside the scope.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolcrib_core::disclosure::{CALL, DESCRIBE, SEARCH, SEARCH_REGEX};
use toolcrib_core::{CallOutcome, Conversation, Crib, Refusal, Scope, ToolCall, TurnContext};
use toolcrib_fuzz::{check_name, check_reply, every_second};

static CRIB: LazyLock<Crib> = LazyLock::new(toolcrib_fuzz::crib);
static SCOPE: LazyLock<Scope> = LazyLock::new(|| every_second(CRIB.catalog()));

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, input) = text.split_once(['\0', '\n']).unwrap_or((text, ""));
    let turn = TurnContext::new(&SCOPE);
    let mut conversation = Conversation::new();
    // The name is called three times, because a call that fails for the third time is answered differently.
    for name in [name, name, name, CALL, DESCRIBE, SEARCH, SEARCH_REGEX] {
        match CRIB.handle(&turn, &mut conversation, name, input) {
            CallOutcome::Run(call) => check_call(&call),
            CallOutcome::Answer(reply) => check_reply(&CRIB, &SCOPE, &reply),
            CallOutcome::Refused(refusal) => check_refusal(&refusal),
        }
    }
});

fn check_call(call: &ToolCall) {
    assert!(SCOPE.contains(call.id), "{:?} is not in scope", call.name);
    assert_eq!(CRIB.catalog().tool(call.id).name(), call.name);
    let arguments = serde_json::from_str(call.arguments.get());
    assert!(matches!(arguments, Ok(Value::Object(_))), "{}", call.arguments);
}

fn check_refusal(refusal: &Refusal) {
    let text = refusal.text();
    assert!(matches!(serde_json::from_str(&text), Ok(Value::Object(_))), "{text}");
    assert!(!refusal.message.is_empty() && !refusal.hint.is_empty(), "{text}");
    for name in refusal.nearest.iter().chain(&refusal.tool) {
        check_name(&CRIB, &SCOPE, name);
    }
}
