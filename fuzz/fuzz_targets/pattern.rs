//! Searches a fixed catalog with any text as the pattern.
//!
//! The pattern comes from the model and may be anything. A pattern that cannot be compiled must get an answer, and one
//! that can be compiled must finish in time. Neither may reveal a tool outside the scope.

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
    // If a pattern finds nothing, the reply must tell the model why.
    assert!(!reply.hits.is_empty() || !reply.notes.is_empty());
    let all = Scope::all(BARE.catalog());
    let bare = BARE.search(&TurnContext::new(&all), &mut Conversation::new(), &ask);
    assert_eq!(
        reply.text(ReplyFormat::Json),
        bare.text(ReplyFormat::Json),
        "the hidden tools made a difference"
    );
});
