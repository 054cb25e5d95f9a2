//! Tests of the ledger of revealed tools: it is ordered, bounded, portable, and separate for each conversation.

use serde_json::json;
use toolcrib_core::conversation::TranscriptEntry;
use toolcrib_core::reply::ReplyFormat;
use toolcrib_core::{Conversation, Conversations, Error, Ledger, Tool, TurnContext};

use crate::support::{Chat, catalog, crib, crib_with, office, strings, tool};

fn names(ledger: &Ledger) -> Vec<&str> {
    ledger.reveals().map(|reveal| reveal.name.as_str()).collect()
}

#[test]
fn the_oldest_reveal_is_dropped_first() {
    let tools: Vec<_> = (0..5).map(|i| tool(&format!("t{i}"), "", &json!({}))).collect();
    let catalog = catalog(&tools);
    let mut ledger = Ledger::new(3);
    for tool in &catalog.tools()[..4] {
        ledger.reveal(tool);
    }
    ledger.reveal(&catalog.tools()[2]);
    assert_eq!(names(&ledger), ["t1", "t2", "t3"], "revealing a tool again does not move it");
    let mut none = Ledger::new(0);
    none.reveal(&catalog.tools()[0]);
    assert!(none.is_empty());
}

#[test]
fn a_changed_definition_no_longer_counts_as_shown() {
    let old = catalog(&[tool("a", "One.", &strings(&["x"], 1))]);
    let new = catalog(&[tool("a", "Two.", &strings(&["x"], 1))]);
    let mut ledger = Ledger::new(8);
    ledger.reveal(&old.tools()[0]);
    assert!(ledger.has(&old.tools()[0]) && !ledger.has(&new.tools()[0]) && ledger.has_name("a"));
    ledger.reveal(&new.tools()[0]);
    assert!(ledger.has(&new.tools()[0]));
    assert_eq!(ledger.len(), 1);
}

#[test]
fn a_ledger_survives_serialization() {
    let crib = crib(&office());
    let mut chat = Chat::new(&crib);
    chat.search("select:mail__send,github__create_issue");
    let ledger = chat.conversation.ledger();
    let text = ledger.export();
    assert_eq!(&Ledger::import(&text, 64).unwrap(), ledger);
    assert_eq!(
        names(&Ledger::import(&text, 1).unwrap()),
        ["github__create_issue"],
        "the newest are kept"
    );
    for bad in [
        "",
        "{}",
        "[]",
        r#"{"version":2,"reveals":[]}"#,
        r#"{"version":1,"reveals":[],"x":1}"#,
        r#"{"version":1,"reveals":[{"name":"a","fingerprint":"zz"}]}"#,
    ] {
        let error = Ledger::import(bad, 8).unwrap_err();
        assert!(matches!(&error, Error::Ledger { .. }) && !error.hint().is_empty(), "{bad}");
    }
}

#[test]
fn a_ledger_is_rebuilt_from_replies_in_every_form() {
    let crib = crib(&office());
    for form in [
        ReplyFormat::Json,
        ReplyFormat::Functions,
        ReplyFormat::Markdown,
        ReplyFormat::Tools,
        ReplyFormat::Matches,
    ] {
        let text = Chat::new(&crib).search("select:mail__send,github__create_issue").text(form);
        let transcript = [
            TranscriptEntry::Reply(&text),
            TranscriptEntry::Reply("some other text"),
            TranscriptEntry::Call("slack__post_message"),
            TranscriptEntry::Call("mail__send"),
        ];
        let ledger = Ledger::from_transcript(transcript, 64);
        assert_eq!(
            names(&ledger),
            ["mail__send", "github__create_issue", "slack__post_message"],
            "{form:?}"
        );
        assert!(ledger.has(&crib.catalog().tools()[5]));
    }
    for odd in [" a ", "a`b", "`a", "a b", " `x", "x` "] {
        let crib = crate::support::crib(&[tool(odd, "", &json!({}))]);
        let text = Chat::new(&crib).search(&format!("select:{odd}")).text(ReplyFormat::Markdown);
        assert_eq!(
            names(&Ledger::from_transcript([TranscriptEntry::Reply(&text)], 8)),
            [odd],
            "{text}"
        );
    }
    let refusal = Chat::new(&crib).refused("mail__send", "{}").text();
    assert_eq!(
        names(&Ledger::from_transcript([TranscriptEntry::Reply(&refusal)], 8)),
        ["mail__send"]
    );
}

#[test]
fn conversations_are_limited_and_the_least_recently_used_is_dropped() {
    let mut all = Conversations::new(2, 8);
    let catalog = catalog(&[tool("t", "", &json!({}))]);
    let mut ledger = Ledger::new(8);
    ledger.reveal(&catalog.tools()[0]);
    all.put("a", Conversation::with_ledger(ledger));
    all.get("b");
    assert_eq!(all.get("a").ledger().len(), 1, "the ledger of `a` is kept");
    all.get("c");
    assert_eq!(all.len(), 2);
    assert_eq!(all.get("a").ledger().len(), 1, "`b` was evicted, not `a`");
    all.get("d");
    all.get("e");
    assert!(all.get("a").ledger().is_empty(), "an evicted conversation starts empty");
    assert_eq!(Conversations::default().len(), 0);
}

#[test]
fn reveals_stay_in_their_conversation() {
    let crib = crib(&office());
    let (mut one, mut two) = (Chat::new(&crib), Chat::new(&crib));
    one.search("select:mail__send");
    assert!(two.search("send mail").hits[0].input_schema.is_some());
    assert_eq!(
        (
            one.conversation.ledger().len(),
            two.conversation.ledger().has_name("github__create_issue")
        ),
        (1, false)
    );
}

#[test]
fn a_ledger_is_rebuilt_from_the_names_that_were_shown() {
    let crib = crib_with(&office(), "disclosure = 'append'");
    let shown = ["mail__send", "gone__tool", "github__create_issue", "mail__send"];
    let ledger = Ledger::from_names(shown, 64);
    assert!(ledger.deferred());
    let known: Vec<&str> =
        crib.catalog().tools().iter().filter(|t| ledger.has(t)).map(Tool::name).collect();
    assert_eq!(known, ["github__create_issue", "mail__send"]);
    // The tools must be appended in the order in which they were first shown, as in the original conversation.
    let mut chat = Chat { conversation: Conversation::with_ledger(ledger), ..Chat::new(&crib) };
    let shown = crib.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation);
    let full = shown.tools.iter().filter(|shown| shown.definition.is_some());
    let full: Vec<&str> = full.map(|shown| crib.catalog().tool(shown.id).name()).collect();
    assert_eq!(full, ["mail__send", "github__create_issue"]);
    assert_eq!(Ledger::from_names(["a", "b", "c"], 2).len(), 2);
}
