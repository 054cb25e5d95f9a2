//! Code that the targets share: a small catalog, a scope, and the checks for every reply.
//!
//! The scope excludes every second tool. The catalog has pairs of tools that are easily confused, with one in the scope
//! and one outside, so that a reply with the wrong tool is noticed.

#[path = "../../crates/toolcrib-dialect/tests/it/scope/arbitrary_response.rs"]
mod arbitrary_response;
pub mod client;
pub mod client_reader;
#[path = "../../crates/toolcrib-dialect/tests/it/driven_turn.rs"]
#[expect(dead_code, reason = "the dialect's own tests use the rest")]
mod driven_turn;
pub mod generated_requests;
pub mod generated_responses;
#[path = "../../crates/toolcrib-dialect/tests/it/scope/generated/mod.rs"]
mod generated_scope_requests;
pub mod request_checks;
pub mod response_checks;
pub mod translation_checks;

use serde_json::Value;
use toolcrib_core::conversation::{DEFAULT_MAX_REVEALS, TranscriptEntry};
use toolcrib_core::reply::{AvailableTools, ReplyFormat};
use toolcrib_core::{Catalog, Crib, IngestedTools, Ledger, Preset, Reply, Scope, Settings};

/// Generates a request of a caller with a limited scope from the bytes, and checks what is sent to the provider.
pub fn check_scope(data: &[u8]) {
    generated_scope_requests::check(data);
}

/// Reads the bytes as a response to a caller with a limited scope, and checks what the caller receives.
pub fn check_response(data: &[u8]) {
    arbitrary_response::check(data);
}

/// Tools of several kinds: nested, recursive and enum schemas, names that providers reject, names that differ only in
/// case or server, and a tool without a description.
const TOOLS: &str = include_str!("tools.jsonl");

/// Returns the catalog with the tools of `tools.jsonl`.
pub fn catalog() -> Catalog {
    let catalog = Catalog::from_json(TOOLS.as_bytes()).expect("the fixed catalog is readable");
    assert_eq!(catalog.len(), TOOLS.lines().count(), "{:?}", catalog.findings());
    catalog
}

/// Returns the fixed catalog, ready to be served with default settings.
pub fn crib() -> Crib {
    Crib::new(catalog(), Settings::default())
}

/// Presets with different rankers.
pub const PRESETS: [Preset; 4] =
    [Preset::Default, Preset::Everruns, Preset::Hermes, Preset::Opencode];

/// Returns a scope with every second tool, starting with the first.
pub fn every_second(catalog: &Catalog) -> Scope {
    Scope::of(catalog, catalog.ids().step_by(2))
}

/// Returns a crib that contains only the tools in the scope, in reverse order if the order must make no difference. A
/// caller limited to the scope must get the same replies from the returned crib as from `crib`.
pub fn without_the_hidden(crib: &Crib, scope: &Scope) -> Crib {
    let catalog = crib.catalog();
    let mut tools: Vec<_> = scope.ids().map(|id| catalog.tool(id).clone()).collect();
    // The order is kept for the rankers of other systems, because they break ties by the order of the catalog.
    if crib.settings().rank.ranker.knows_operators() {
        tools.reverse();
    }
    let about = |server: &str| Some((server.to_owned(), catalog.instructions(server)?.to_owned()));
    let instructions = tools.iter().filter_map(|tool| about(tool.server()?)).collect();
    let mut builder = Catalog::builder();
    let mut ingested = IngestedTools::default();
    (ingested.tools, ingested.instructions) = (tools, instructions);
    builder.add(ingested);
    Crib::new(builder.build(), crib.settings().clone())
}

/// Panics if the name does not belong to a tool in the scope.
pub fn check_name(crib: &Crib, scope: &Scope, name: &str) {
    let id = crib.catalog().find(name);
    assert!(id.is_some_and(|id| scope.contains(id)), "{name:?} is not in scope");
}

/// Panics if a reply names a tool outside the scope, exceeds a limit, or cannot be parsed from its own text.
pub fn check_reply(crib: &Crib, scope: &Scope, reply: &Reply) {
    for name in names(reply) {
        check_name(crib, scope, name);
    }
    if let Some(AvailableTools::Servers(servers)) = &reply.available {
        let counted: usize = servers.iter().map(|server| server.tools).sum();
        assert!(counted <= scope.len(), "{counted} tools in a scope of {}", scope.len());
    }
    let settings = crib.settings();
    assert!(reply.loaded.len() <= settings.search.max_limit, "{} loaded", reply.loaded.len());
    assert!(reply.missing.len() <= settings.limits.names, "{} missing", reply.missing.len());
    assert!(reply.hits.iter().all(|hit| hit.score.is_finite()), "a score that is no number");
    for form in [
        ReplyFormat::Json,
        ReplyFormat::Functions,
        ReplyFormat::Markdown,
        ReplyFormat::Tools,
        ReplyFormat::Matches,
    ] {
        check_text(reply, form);
    }
}

fn names(reply: &Reply) -> impl Iterator<Item = &String> {
    let available = match &reply.available {
        Some(AvailableTools::Names(names)) => names.as_slice(),
        _ => &[],
    };
    let hits = reply.hits.iter().map(|hit| &hit.name);
    let nearest = reply.missing.iter().flat_map(|missing| &missing.nearest);
    hits.chain(&reply.loaded).chain(&reply.omitted).chain(available).chain(nearest)
}

fn check_text(reply: &Reply, form: ReplyFormat) {
    let text = reply.text(form);
    match form {
        ReplyFormat::Json | ReplyFormat::Tools | ReplyFormat::Matches => {
            assert!(matches!(serde_json::from_str(&text), Ok(Value::Object(_))), "{text}");
        }
        ReplyFormat::Functions => {
            let mut functions = 0;
            for rest in text.lines().filter_map(|line| line.strip_prefix("<function>")) {
                let json = rest.strip_suffix("</function>");
                let json = json.unwrap_or_else(|| panic!("not closed on its line: {rest}"));
                serde_json::from_str::<Value>(json).expect("a function is JSON");
                functions += 1;
            }
            assert_eq!(functions, reply.hits.len(), "{text}");
        }
        _ => {}
    }
    let read = Ledger::from_transcript([TranscriptEntry::Reply(&text)], DEFAULT_MAX_REVEALS);
    let read: Vec<&str> = read.reveals().map(|reveal| reveal.name.as_str()).collect();
    assert_eq!(read, reply.loaded, "what a transcript says was loaded, in {form:?}:\n{text}");
}
