//! Tokens of tool definitions, before and after: on the first request, and over a whole turn that has to
//! search once, which is where deferring few or small tools loses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use toolcrib_core::TokenCounter as _;
use toolcrib_testkit::provider::{Options, Provider, Say, Script, Step};
use toolcrib_tokens::{Counter, Vocabulary};

use crate::agent::Agent;
use crate::dice::Dice;
use crate::replica::Replica;
use crate::sent::Sent;
use crate::tools::{Size, Tool, arguments, tools};
use crate::voice::Api;
use crate::way::{WAYS, Way};

const COUNTS: [usize; 8] = [5, 10, 20, 50, 100, 200, 500, 2_000];
const SIZES: [Size; 2] = [Size::Usual, Size::Tiny];

/// One row of the table.
struct Row {
    mode: String,
    before: usize,
    /// Of the first request.
    after: usize,
    /// Of all requests of a turn that calls one tool, with what was said to find it; `None` where the
    /// provider searches, and tells nobody what of it went into the prompt.
    turn: Option<usize>,
}

fn row(way: Way, provider: &Provider, replica: &Replica, count: usize, size: Size) -> Row {
    provider.clear();
    let tools = tools(count, size);
    let mut agent = Agent::new(way, &tools, &name(count, size));
    let response = agent.ask(&replica.url, false).unwrap();
    let called = &agent.take(&response, false).calls[0].name;
    assert_eq!(*called, wanted(&tools).name);
    let requests = provider.requests();
    let sent: Vec<Sent<'_>> = requests.iter().map(|sent| Sent::read(way.api, sent)).collect();
    let counted: Vec<usize> = sent.iter().map(|sent| tokens(&in_prompt(sent.tools()))).collect();
    // Every request after the first has hidden rounds in it.
    let hidden = sent.iter().flat_map(|later| &later.entries[sent[0].entries.len()..]);
    let hidden: usize = hidden.map(|entry| tokens(entry) + referenced(entry, &agent, &tools)).sum();
    Row {
        mode: response.header("x-toolcrib-mode").unwrap_or_default().to_owned(),
        before: tokens(&agent.tools().to_string()),
        after: counted[0],
        turn: (way.mode != "hosted").then(|| counted.iter().sum::<usize>() + hidden),
    }
}

fn tokens(text: &str) -> usize {
    Counter::exact(Vocabulary::O200k).count(text)
}

/// `tools` without what is deferred: the provider keeps that out of the prompt.
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

/// Tokens of the definitions that the provider puts into the prompt for references.
fn referenced(entry: &str, agent: &Agent, tools: &[Tool]) -> usize {
    let is_named = |tool: &&Tool| entry.contains(&format!(r#""tool_name":"{}""#, tool.name));
    let named = tools.iter().filter(is_named).cloned().collect::<Vec<_>>();
    if named.is_empty() { 0 } else { tokens(&agent.api.voice().tools(&named).to_string()) }
}

fn wanted(tools: &[Tool]) -> &Tool {
    &tools[tools.len() / 2]
}

fn name(count: usize, size: Size) -> String {
    format!("{size:?}-{count}")
}

/// A conversation for each row, in which one tool is called.
fn scripts() -> BTreeMap<String, Script> {
    let all = SIZES.into_iter().flat_map(|size| COUNTS.map(|count| (count, size)));
    all.map(|(count, size)| {
        let tools = tools(count, size);
        let tool = wanted(&tools);
        let call = Say::call(&tool.name, arguments(tool, &mut Dice(0)));
        (name(count, size), Script::steps([Step::new([call])]))
    })
    .collect()
}

/// How many percent fewer.
fn fewer(before: usize, after: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let share = after as f64 / before as f64;
    100.0 - 100.0 * share
}

fn measure(api: Api) {
    let mut table = String::from(
        "| tools | mode | count | before | first request | fewer | turn with a search | fewer |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for way in WAYS.into_iter().filter(|way| way.api == api) {
        let options = Options { scripts: scripts(), ..Options::default() };
        let provider = Provider::start(options).unwrap();
        let replica = Replica::start(&way.config(&provider.url, None));
        for size in SIZES {
            for count in COUNTS {
                let Row { mode, before, after, turn } = row(way, &provider, &replica, count, size);
                let first = fewer(before, after);
                let whole = turn.map_or("– | –".to_owned(), |turn| {
                    format!("{turn} | {:.1} %", fewer(before, turn))
                });
                writeln!(
                    table,
                    "| {size:?} | {mode} {} | {count} | {before} | {after} | {first:.1} % | {whole} |",
                    way.native
                )
                .unwrap();
                assert!(after <= before, "{way:?} {count} {size:?}: {before} became {after}");
                let passes = mode == "pass-through";
                // Between the two it depends; what it must not do is lose.
                assert!(count >= 15 || passes, "{way:?} {count} {size:?}");
                assert!(count < 50 || !passes, "{way:?} {count} {size:?}");
                assert!(
                    turn.is_none_or(|turn| turn <= before),
                    "{way:?} {count} {size:?}: {turn:?}"
                );
                if size == Size::Usual && count == 500 {
                    assert!(first >= 90.0, "{way:?}: only {first:.1} % fewer");
                }
            }
        }
    }
    std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("\n{api:?}\n\n{table}\n"))
        .unwrap();
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

/// The numbers above are with the listing: the names of what is deferred, or of its groups, are there.
#[test]
fn the_listing_is_in() {
    let tools = tools(500, Size::Usual);
    for way in WAYS.into_iter().filter(|way| way.mode != "hosted") {
        let options = Options { scripts: scripts(), ..Options::default() };
        let provider = Provider::start(options).unwrap();
        let replica = Replica::start(&way.config(&provider.url, None));
        let agent = Agent::new(way, &tools, &name(500, Size::Usual));
        agent.ask(&replica.url, false).unwrap();
        let requests = provider.requests();
        let sent = in_prompt(Sent::read(way.api, &requests[0]).tools());
        for tool in &tools {
            let (group, _) = tool.name.split_once("__").unwrap();
            assert!(sent.contains(group), "{way:?}: `{group}` is not in {sent}");
        }
    }
}
