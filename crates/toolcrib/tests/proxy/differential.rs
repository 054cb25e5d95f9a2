//! The same conversation with Toolcrib and without: the agent must see the same.
//!
//! Two things an agent sees more with Toolcrib, since the model said them: the words a search began with,
//! and the thought before it. They are taken off here, and nothing else is.

use std::collections::BTreeMap;

use toolcrib_testkit::provider::{Action, Options, Provider, Script, Step};

use crate::agent::Agent;
use crate::dice::Dice;
use crate::replica::Replica;
use crate::talk::{PREAMBLE, THOUGHT, Talk};
use crate::tools::{Size, Tool, arguments, tools};
use crate::voice::{Api, Turn};
use crate::way::{Ids, Way, ways, ways_of_ids, ways_of_presets};

/// Conversations that are made up, each from a number of its own, and their turns.
const MADE_UP: u64 = 4;
const TURNS: usize = 10;
/// Conversations that depend on the ids of calls, for a preset with ids that are not both given and kept.
const ID_CASES: [&str; 3] = ["parallel", "beside", "blind"];

/// Conversations by name: the situations one by one, and some that are made up.
fn conversations(tools: &[Tool], way: Way) -> BTreeMap<String, Vec<Step>> {
    let mut dice = Dice(1);
    let mut calls = (0..).map(|at| {
        let tool = &tools[at * 7 % tools.len()];
        (tool.name.clone(), arguments(tool, &mut dice))
    });
    let mut call = || {
        let (name, arguments) = calls.next().unwrap();
        Action::call(name, arguments)
    };
    let report = || Step::new([Action::report("Done: ")]);
    let mut all: Vec<(&str, Vec<Step>)> = vec![
        ("text", vec![Step::new([Action::text("Hello.")]), Step::new([Action::text("Good bye.")])]),
        ("cut", vec![Step::new([Action::text("This goes on and")]).truncated()]),
        ("steps", vec![Step::new([call()]), Step::new([call()]), report()]),
        ("parallel", vec![Step::new([call(), call(), call()]), report()]),
        ("preamble", vec![Step::new([Action::text("Now."), call()]).preamble(PREAMBLE), report()]),
        ("thinking", vec![Step::new([Action::thinking("Hm."), call()]), report(), report()]),
        (
            "two-searches",
            vec![
                Step::new([Action::search("books"), Action::search("plants")]),
                Step::new([call()]),
            ],
        ),
    ];
    let (wanted, taken) = (&tools[85], arguments(&tools[85], &mut Dice(3)));
    let found = Action::find("search payslip payroll", &wanted.name, taken);
    all.push(("query", vec![Step::new([found]), report()]));
    let known = call();
    all.push((
        "beside",
        vec![Step::new([known.clone()]), Step::new([Action::search("meters"), known]), report()],
    ));
    if way.calls_blind() {
        let (name, arguments) = (&tools[33].name, arguments(&tools[33], &mut Dice(2)));
        let blind = || Step::new([Action::exact_call(name, arguments.clone())]);
        let found = Step::new([Action::call(name, arguments.clone())]);
        all.push(("blind", vec![blind(), report(), blind(), found, blind(), report()]));
    }
    let mut all: BTreeMap<String, Vec<Step>> =
        all.into_iter().map(|(name, steps)| (name.to_owned(), steps)).collect();
    if !way.preset.is_empty() && way.ids != Ids::Kept {
        // The other situations have no calls, or only one at a time.
        all.retain(|name, _| ID_CASES.contains(&name.as_str()));
    }
    for seed in 0..if way.preset.is_empty() || way.ids == Ids::Kept { MADE_UP } else { 1 } {
        let mut talk = Talk::new(tools, seed, way.calls_blind());
        all.insert(format!("made-up-{seed}"), talk.steps(TURNS));
    }
    all
}

fn compare(way: Way) {
    let tools = tools(100, Size::Usual);
    let conversations = conversations(&tools, way);
    let scripts =
        conversations.iter().map(|(name, steps)| (name.clone(), Script::steps(steps.clone())));
    let options = Options {
        scripts: scripts.collect(),
        bind_thinking: true,
        call_ids: way.has_ids(),
        ..Options::default()
    };
    let provider = Provider::start(options).unwrap();
    let replica = Replica::start(&way.config(&provider.url, None));
    for (name, steps) in &conversations {
        let turns = steps.iter().filter(|step| !only_searches(step)).count();
        for stream in [false, true] {
            let see = |url: &str| {
                let mut agent = Agent::new(way, &tools, name);
                (0..turns).for_each(|_| {
                    agent.turn(url, stream);
                });
                agent.turns
            };
            let (direct, through) = (see(&provider.url), see(&replica.url));
            let what = format!("{way:?} {name} stream={stream}");
            for (at, (direct, through)) in direct.iter().zip(&through).enumerate() {
                assert_eq!(bare(through), *direct, "{what}: turn {at}");
            }
            let ids: Vec<&String> = calls(&through).map(|call| &call.id).collect();
            if way.ids == Ids::Absent {
                assert!(ids.iter().all(|id| id.is_empty()), "{what}: {ids:?}");
                continue;
            }
            let distinct: std::collections::BTreeSet<&&String> = ids.iter().collect();
            assert_eq!(ids.len(), distinct.len(), "{what}: {ids:?}");
        }
    }
    assert_eq!(replica.modes(), [way.mode], "{way:?}");
}

fn calls(turns: &[Turn]) -> impl Iterator<Item = &crate::voice::Call> {
    turns.iter().flat_map(|turn| &turn.calls)
}

/// A turn without what opened the searches in it.
fn bare(turn: &Turn) -> Turn {
    let after = |text: &str, opening| {
        let mut rest = text;
        while let Some(more) = rest.strip_prefix(opening) {
            rest = more.trim_start();
        }
        rest.to_owned()
    };
    let (text, thoughts) = (after(&turn.text, PREAMBLE), after(&turn.thoughts, THOUGHT));
    Turn { thoughts, text, ..turn.clone() }
}

fn only_searches(step: &Step) -> bool {
    step.actions.iter().all(|action| matches!(action, Action::Search { .. }))
}

fn compare_all(api: Api) {
    ways(api).for_each(compare);
}

fn compare_ids(api: Api) {
    ways_of_ids(api).for_each(compare);
}

fn compare_presets(api: Api) {
    ways_of_presets(api).for_each(compare);
}

#[test]
fn a_chat_agent_sees_the_same() {
    compare_all(Api::Chat);
}

#[test]
fn a_responses_agent_sees_the_same() {
    compare_all(Api::Responses);
}

#[test]
fn a_messages_agent_sees_the_same() {
    compare_all(Api::Messages);
}

#[test]
fn a_gemini_agent_sees_the_same() {
    compare_all(Api::Gemini);
}

#[test]
fn a_chat_agent_that_changes_ids_sees_the_same() {
    compare_ids(Api::Chat);
}

#[test]
fn a_responses_agent_that_changes_ids_sees_the_same() {
    compare_ids(Api::Responses);
}

#[test]
fn a_messages_agent_that_changes_ids_sees_the_same() {
    compare_ids(Api::Messages);
}

#[test]
fn a_gemini_agent_that_changes_ids_sees_the_same() {
    compare_ids(Api::Gemini);
}

#[test]
fn a_chat_agent_sees_the_same_under_every_preset() {
    compare_presets(Api::Chat);
}

#[test]
fn a_responses_agent_sees_the_same_under_every_preset() {
    compare_presets(Api::Responses);
}

#[test]
fn a_messages_agent_sees_the_same_under_every_preset() {
    compare_presets(Api::Messages);
}

#[test]
fn a_gemini_agent_sees_the_same_under_every_preset() {
    compare_presets(Api::Gemini);
}
