//! Counts the tokens of tool definitions before and after deferral: in the first request, and over a complete turn with
//! one search. Over a complete turn, deferring few or small tools can cost more than it saves.
//!
//! The tables in `docs/modes.md` show these numbers. `UPDATE_DOCS=1 cargo test -p toolcrib --test proxy savings` writes
//! them; otherwise the test fails if they differ.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use serde_json::Value;
use toolcrib_core::TokenCounter as _;
use toolcrib_testkit::provider::{Action, Options, Provider, Script, Step};
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use crate::agent::Agent;
use crate::api::Api;
use crate::prefix_check::RequestParts;
use crate::replica::Replica;
use crate::rng::Rng;
use crate::scenario::{SCENARIOS, Scenario};
use crate::tools::{Size, Tool, arguments, tools};

const COUNTS: [usize; 8] = [5, 10, 20, 50, 100, 200, 500, 2_000];
const SIZES: [Size; 2] = [Size::Usual, Size::Tiny];

/// One measurement. Some of them are shown as cells of the tables.
struct Row {
    mode: String,
    before: usize,
    /// Tokens of the tools in the first request.
    after: usize,
    /// Tokens of all requests of a turn that calls one tool, including the search for it. `None` if the provider
    /// searches, because the provider does not report which definitions it added to the prompt.
    turn: Option<usize>,
}

fn row(
    scenario: Scenario,
    provider: &Provider,
    replica: &Replica,
    count: usize,
    size: Size,
) -> Row {
    provider.clear();
    let tools = tools(count, size);
    let mut agent = Agent::new(scenario, &tools, &name(count, size));
    let response = agent.ask(&replica.url, false).unwrap();
    let called = &agent.take(&response, false).calls[0].name;
    assert_eq!(*called, wanted(&tools).name);
    let requests = provider.requests();
    let sent: Vec<RequestParts<'_>> =
        requests.iter().map(|sent| RequestParts::read(scenario.api, sent)).collect();
    let counted: Vec<usize> = sent.iter().map(|sent| tokens(&in_prompt(sent.tools()))).collect();
    // Every request after the first one contains the hidden rounds so far.
    let hidden = sent.iter().flat_map(|later| &later.entries[sent[0].entries.len()..]);
    let hidden: usize = hidden.map(|entry| tokens(entry) + referenced(entry, &agent, &tools)).sum();
    Row {
        mode: response.header("x-toolcrib-mode").unwrap_or_default().to_owned(),
        before: tokens(&agent.tools().to_string()),
        after: counted[0],
        turn: (scenario.mode != "hosted").then(|| counted.iter().sum::<usize>() + hidden),
    }
}

fn tokens(text: &str) -> usize {
    VocabularyCounter::exact(Vocabulary::O200k).count(text)
}

/// Removes the deferred tools from `tools`, because the provider keeps them out of the prompt.
fn in_prompt(tools: &str) -> String {
    fn loaded(value: Value) -> Value {
        match value {
            Value::Array(items) => {
                items.into_iter().filter(|item| item["defer_loading"] != true).map(loaded).collect()
            }
            Value::Object(fields) => {
                fields.into_iter().map(|(key, value)| (key, loaded(value))).collect()
            }
            other => other,
        }
    }
    loaded(serde_json::from_str(tools).unwrap()).to_string()
}

/// Counts the tokens of the definitions that the provider adds to the prompt because the entry refers to them.
fn referenced(entry: &str, agent: &Agent, tools: &[Tool]) -> usize {
    let is_named = |tool: &&Tool| entry.contains(&format!(r#""tool_name":"{}""#, tool.name));
    let named = tools.iter().filter(is_named).cloned().collect::<Vec<_>>();
    if named.is_empty() { 0 } else { tokens(&agent.api.client().tools(&named).to_string()) }
}

fn wanted(tools: &[Tool]) -> &Tool {
    &tools[tools.len() / 2]
}

fn name(count: usize, size: Size) -> String {
    format!("{size:?}-{count}")
}

/// Returns a script for each number and size of tools, in which the model calls one tool.
fn scripts() -> BTreeMap<String, Script> {
    let all = SIZES.into_iter().flat_map(|size| COUNTS.map(|count| (count, size)));
    all.map(|(count, size)| {
        let tools = tools(count, size);
        let tool = wanted(&tools);
        let call = Action::call(&tool.name, arguments(tool, &mut Rng(0)));
        (name(count, size), Script::steps([Step::new([call])]))
    })
    .collect()
}

/// Returns by how many percent `after` is less than `before`.
fn percent_less(before: usize, after: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let share = after as f64 / before as f64;
    100.0 - 100.0 * share
}

/// The numbers of tools that have a column in the tables of the documentation.
const SHOWN: [usize; 6] = [20, 50, 100, 200, 500, 2_000];

/// Formats a number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a cell of the tables in the documentation.
fn cell(Row { mode, before, after, turn }: &Row) -> String {
    let (from, to) = (grouped(*before), grouped(*after));
    match turn {
        _ if mode == "pass-through" => format!("{from}: as they came"),
        Some(turn) => format!("{from} → {to} ({:.0} %)", percent_less(*before, *turn)),
        None => format!("{from} → {to}"),
    }
}

fn label(scenario: Scenario) -> String {
    let api = match scenario.api {
        Api::Chat => "Chat Completions",
        Api::Responses => "Responses",
        Api::Messages => "Messages",
        Api::Gemini => "Gemini",
    };
    format!("{api}, {}", scenario.mode)
}

/// Compares a row with the row in the documentation. With `UPDATE_DOCS`, writes it there instead.
fn document(size: Size, scenario: Scenario, cells: &[String]) {
    /// Serialises access to the page, because tests run in parallel and write to the same file.
    static FILE: Mutex<()> = Mutex::new(());
    let _guard = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/modes.md");
    let page = fs::read_to_string(&path).unwrap();
    let row = format!("| {} | {} |", label(scenario), cells.join(" | "));
    // Both tables have the same row labels. The table for tools of the usual size comes first.
    let start = format!("| {} | ", label(scenario));
    let lines = page.lines().enumerate().filter(|(_, line)| line.starts_with(&start));
    let at = lines.map(|(at, _)| at).nth(usize::from(size == Size::Tiny));
    let at = at.unwrap_or_else(|| panic!("docs/modes.md has no row `{start}` for {size:?}"));
    if env::var_os("UPDATE_DOCS").is_some() {
        let lines = page.lines().enumerate();
        let lines = lines.map(|(line, text)| if line == at { row.as_str() } else { text });
        fs::write(&path, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    } else {
        assert_eq!(
            page.lines().nth(at),
            Some(&*row),
            "docs/modes.md is outdated: set UPDATE_DOCS=1"
        );
    }
}

/// Returns the scenarios of one API in [`SCENARIOS`]. For Chat Completions, also returns the modes `append`, `reveal`
/// and `terse`.
fn all_scenarios(api: Api) -> Vec<Scenario> {
    let chat = Scenario { api: Api::Chat, ..SCENARIOS[0] };
    let others = ["append", "reveal", "terse"].map(|mode| Scenario { mode, ..chat });
    let hiding = SCENARIOS.into_iter().filter(|scenario| scenario.api == api);
    hiding.chain(others.into_iter().filter(|scenario| scenario.api == api)).collect()
}

fn measure(api: Api) {
    for scenario in all_scenarios(api) {
        let options = Options { scripts: scripts(), ..Options::default() };
        let provider = Provider::start(options).unwrap();
        let replica = Replica::start(&scenario.config(&provider.url, None));
        for size in SIZES {
            let mut cells = Vec::new();
            for count in COUNTS {
                let row = row(scenario, &provider, &replica, count, size);
                if SHOWN.contains(&count) {
                    cells.push(cell(&row));
                }
                let Row { mode, before, after, turn } = row;
                let first = percent_less(before, after);
                // The limit on the turn does not apply to these modes: a stub costs tokens, too, and an appended
                // definition is also in the reply to the search.
                let hides = !matches!(scenario.mode, "append" | "reveal" | "terse");
                assert!(after <= before, "{scenario:?} {count} {size:?}: {before} became {after}");
                let passes = mode == "pass-through";
                // Fewer than 15 tools always pass through, and 50 or more never do. For numbers in between either is
                // correct, but the turn must never cost more than the full tools.
                assert!(count >= 15 || passes, "{scenario:?} {count} {size:?}");
                assert!(count < 50 || !passes, "{scenario:?} {count} {size:?}");
                assert!(
                    !hides || turn.is_none_or(|turn| turn <= before),
                    "{scenario:?} {count} {size:?}: {turn:?}"
                );
                if hides && size == Size::Usual && count == 500 {
                    assert!(first >= 90.0, "{scenario:?}: only {first:.1} % fewer");
                }
            }
            // Two scenarios of one API have the same label. The documentation shows the one without `additional_tools`.
            if !scenario.native.contains("additional_tools") {
                document(size, scenario, &cells);
            }
        }
    }
}

#[test]
fn chat_saves() {
    measure(Api::Chat);
}

#[test]
fn responses_saves() {
    measure(Api::Responses);
}

#[test]
fn messages_saves() {
    measure(Api::Messages);
}

#[test]
fn gemini_saves() {
    measure(Api::Gemini);
}

/// The numbers must include the listing, which contains the names of the deferred tools or of their groups.
#[test]
fn the_listing_is_in() {
    let tools = tools(500, Size::Usual);
    for scenario in SCENARIOS.into_iter().filter(|scenario| scenario.mode != "hosted") {
        let options = Options { scripts: scripts(), ..Options::default() };
        let provider = Provider::start(options).unwrap();
        let replica = Replica::start(&scenario.config(&provider.url, None));
        let agent = Agent::new(scenario, &tools, &name(500, Size::Usual));
        agent.ask(&replica.url, false).unwrap();
        let requests = provider.requests();
        let sent = in_prompt(RequestParts::read(scenario.api, &requests[0]).tools());
        for tool in &tools {
            let (group, _) = tool.name.split_once("__").unwrap();
            assert!(sent.contains(group), "{scenario:?}: `{group}` is not in {sent}");
        }
    }
}
