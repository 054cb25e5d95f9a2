//! What the targets share: a small catalog, a scope with holes in it, and what must hold for every
//! reply.
//!
//! The scope leaves out every second tool, and the catalog puts tools side by side that are easily
//! taken for one another. A reply that names the wrong one of such a pair is then found at once.

#[path = "../../crates/toolcrib-dialect/tests/it/scope/arbitrary_response.rs"]
mod arbitrary_response;
pub mod asked;
pub mod client;
pub mod downstream;
pub mod heard;
#[path = "../../crates/toolcrib-dialect/tests/it/driven_turn.rs"]
#[expect(dead_code, reason = "the tests of the dialects play failures too")]
mod driven_turn;
#[path = "../../crates/toolcrib-dialect/tests/it/scope/generated/mod.rs"]
mod scoped;
pub mod told;
pub mod translated;
pub mod upstream;

use serde_json::Value;
use toolcrib_core::conversation::{DEFAULT_MAX_REVEALS, TranscriptEntry};
use toolcrib_core::reply::{AvailableTools, ReplyFormat};
use toolcrib_core::{Catalog, Crib, IngestedTools, Ledger, Preset, Reply, Scope, Settings};

/// Checks a request of a narrowed caller that is made from bytes.
pub fn check_scope(data: &[u8]) {
    scoped::check(data);
}

/// Checks what a caller with a limited scope gets of a response.
pub fn check_response(data: &[u8]) {
    arbitrary_response::check(data);
}

/// Tools in several shapes: nested, recursive and enum schemas, names that providers refuse, names
/// that differ in case or server only, a tool that says nothing about itself.
const TOOLS: &str = include_str!("tools.jsonl");

/// The fixed catalog.
pub fn catalog() -> Catalog {
    let catalog = Catalog::from_json(TOOLS.as_bytes()).expect("the fixed catalog is readable");
    assert_eq!(catalog.len(), TOOLS.lines().count(), "{:?}", catalog.findings());
    catalog
}

/// The fixed catalog, ready to be served under default settings.
pub fn crib() -> Crib {
    Crib::new(catalog(), Settings::default())
}

/// Those whose rankers differ.
pub const PRESETS: [Preset; 4] =
    [Preset::Default, Preset::Everruns, Preset::Hermes, Preset::Opencode];

/// Every second tool, the first included.
pub fn every_second(catalog: &Catalog) -> Scope {
    Scope::of(catalog, catalog.ids().step_by(2))
}

/// A crib in which the tools out of scope have never been, and the others stand in reverse where
/// that must make no difference.
///
/// Whoever is limited to the scope must not be able to tell it from the whole one.
pub fn without_the_hidden(crib: &Crib, scope: &Scope) -> Crib {
    let catalog = crib.catalog();
    let mut tools: Vec<_> = scope.ids().map(|id| catalog.tool(id).clone()).collect();
    // Other systems' rankers part ties by the order of the catalog, as those systems do.
    if crib.settings().rank.ranker.knows_operators() {
        tools.reverse();
    }
    let about = |server: &str| Some((server.to_owned(), catalog.instructions(server)?.to_owned()));
    let instructions = tools.iter().filter_map(|tool| about(tool.server()?)).collect();
    let mut builder = Catalog::builder();
    builder.add(IngestedTools { tools, findings: Vec::new(), instructions });
    Crib::new(builder.build(), crib.settings().clone())
}

/// Fails when a name is not that of a tool in scope.
pub fn check_name(crib: &Crib, scope: &Scope, name: &str) {
    let id = crib.catalog().find(name);
    assert!(id.is_some_and(|id| scope.contains(id)), "{name:?} is not in scope");
}

/// Fails when a reply tells more than the scope allows, is larger than it may be, or cannot be read
/// back from its own text.
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
        ReplyFormat::Markdown => {}
    }
    let read = Ledger::from_transcript([TranscriptEntry::Reply(&text)], DEFAULT_MAX_REVEALS);
    let read: Vec<&str> = read.reveals().map(|reveal| reveal.name.as_str()).collect();
    assert_eq!(read, reply.loaded, "what a transcript says was loaded, in {form:?}:\n{text}");
}
