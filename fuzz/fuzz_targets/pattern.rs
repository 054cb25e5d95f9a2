//! Any text as a pattern over a fixed catalog.
//!
//! The pattern is the model's and may be anything: what cannot be compiled must be answered, what
//! can must end in time, and neither may tell of a tool out of scope.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolcrib_core::reply::ReplyFormat;
use toolcrib_core::{Conversation, Crib, Scope, SearchRequest, TurnContext};
use toolcrib_fuzz::{check_reply, every_second, without_the_hidden};

static CRIB: LazyLock<Crib> = LazyLock::new(toolcrib_fuzz::crib);
static SCOPE: LazyLock<Scope> = LazyLock::new(|| every_second(CRIB.catalog()));
static BARE: LazyLock<Crib> = LazyLock::new(|| without_the_hidden(&CRIB, &SCOPE));

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let ask = SearchRequest::pattern(text);
    let reply = CRIB.search(&TurnContext::new(&SCOPE), &mut Conversation::new(), &ask);
    check_reply(&CRIB, &SCOPE, &reply);
    // A pattern that finds nothing has a reason for it, and the model is told.
    assert!(!reply.hits.is_empty() || !reply.notes.is_empty());
    let all = Scope::all(BARE.catalog());
    let bare = BARE.search(&TurnContext::new(&all), &mut Conversation::new(), &ask);
    assert_eq!(
        reply.text(ReplyFormat::Json),
        bare.text(ReplyFormat::Json),
        "the hidden tools made a difference"
    );
});
