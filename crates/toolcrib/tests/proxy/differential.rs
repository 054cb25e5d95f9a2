//! Plays the same conversation with and without Toolcrib. The agent must see the same in both.
//!
//! With Toolcrib, an agent also sees the text and the thought that the model wrote before a search. Only these are
//! removed before the comparison.

use std::collections::BTreeMap;

use toolcrib_testkit::provider::{Action, Options, Provider, Script, Step};

use crate::agent::Agent;
use crate::api::{Api, ModelMessage};
use crate::replica::Replica;
use crate::rng::Rng;
use crate::scenario::{CallIdPolicy, Scenario, id_scenarios, preset_scenarios, scenarios};
use crate::script_generator::{PREAMBLE, ScriptGenerator, THOUGHT};
use crate::tools::{Size, Tool, arguments, tools};

/// Number of generated conversations, each from its own seed.
const GENERATED_CONVERSATIONS: u64 = 4;
const TURNS: usize = 10;
/// Names of the conversations in which call ids matter. Presets with absent or changed ids are tested only with these
/// and one generated conversation.
const ID_CASES: [&str; 3] = ["parallel", "beside", "blind"];

/// Returns the conversations by name: some for specific situations, and some generated ones.
fn conversations(tools: &[Tool], scenario: Scenario) -> BTreeMap<String, Vec<Step>> {
    let mut rng = Rng(1);
    let mut calls = (0..).map(|at| {
        let tool = &tools[at * 7 % tools.len()];
        (tool.name.clone(), arguments(tool, &mut rng))
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
    let (wanted, taken) = (&tools[85], arguments(&tools[85], &mut Rng(3)));
    let found = Action::find("search payslip payroll", &wanted.name, taken);
    all.push(("query", vec![Step::new([found]), report()]));
    let known = call();
    all.push((
        "beside",
        vec![Step::new([known.clone()]), Step::new([Action::search("meters"), known]), report()],
    ));
    if scenario.can_call_unfound_tools() {
        let (name, arguments) = (&tools[33].name, arguments(&tools[33], &mut Rng(2)));
        let blind = || Step::new([Action::exact_call(name, arguments.clone())]);
        let found = Step::new([Action::call(name, arguments.clone())]);
        all.push(("blind", vec![blind(), report(), blind(), found, blind(), report()]));
    }
    let mut all: BTreeMap<String, Vec<Step>> =
        all.into_iter().map(|(name, steps)| (name.to_owned(), steps)).collect();
    if !scenario.preset.is_empty() && scenario.ids != CallIdPolicy::Kept {
        // In the other conversations, call ids do not matter, because these conversations have no calls, or only one at
        // a time.
        all.retain(|name, _| ID_CASES.contains(&name.as_str()));
    }
    for seed in 0..if scenario.preset.is_empty() || scenario.ids == CallIdPolicy::Kept {
        GENERATED_CONVERSATIONS
    } else {
        1
    } {
        let mut generator = ScriptGenerator::new(tools, seed, scenario.can_call_unfound_tools());
        all.insert(format!("made-up-{seed}"), generator.steps(TURNS));
    }
    all
}

fn compare(scenario: Scenario) {
    let tools = tools(100, Size::Usual);
    let conversations = conversations(&tools, scenario);
    let scripts =
        conversations.iter().map(|(name, steps)| (name.clone(), Script::steps(steps.clone())));
    let options = Options {
        scripts: scripts.collect(),
        bind_thinking: true,
        call_ids: scenario.has_ids(),
        ..Options::default()
    };
    let provider = Provider::start(options).unwrap();
    let replica = Replica::start(&scenario.config(&provider.url, None));
    for (name, steps) in &conversations {
        let turns = steps.iter().filter(|step| !only_searches(step)).count();
        for stream in [false, true] {
            let see = |url: &str| {
                let mut agent = Agent::new(scenario, &tools, name);
                (0..turns).for_each(|_| {
                    agent.turn(url, stream);
                });
                agent.turns
            };
            let (direct, through) = (see(&provider.url), see(&replica.url));
            let what = format!("{scenario:?} {name} stream={stream}");
            for (at, (direct, through)) in direct.iter().zip(&through).enumerate() {
                assert_eq!(without_search_preamble(through), *direct, "{what}: turn {at}");
            }
            let ids: Vec<&String> = calls(&through).map(|call| &call.id).collect();
            if scenario.ids == CallIdPolicy::Absent {
                assert!(ids.iter().all(|id| id.is_empty()), "{what}: {ids:?}");
                continue;
            }
            let distinct: std::collections::BTreeSet<&&String> = ids.iter().collect();
            assert_eq!(ids.len(), distinct.len(), "{what}: {ids:?}");
        }
    }
    assert_eq!(replica.modes(), [scenario.mode], "{scenario:?}");
}

fn calls(turns: &[ModelMessage]) -> impl Iterator<Item = &crate::api::Call> {
    turns.iter().flat_map(|turn| &turn.calls)
}

/// Removes the text and the thought before a search from a message.
fn without_search_preamble(turn: &ModelMessage) -> ModelMessage {
    let after = |text: &str, prefix| {
        let mut rest = text;
        while let Some(more) = rest.strip_prefix(prefix) {
            rest = more.trim_start();
        }
        rest.to_owned()
    };
    let (text, thoughts) = (after(&turn.text, PREAMBLE), after(&turn.thoughts, THOUGHT));
    ModelMessage { thoughts, text, ..turn.clone() }
}

fn only_searches(step: &Step) -> bool {
    step.actions.iter().all(|action| matches!(action, Action::Search { .. }))
}

fn compare_all(api: Api) {
    scenarios(api).for_each(compare);
}

fn compare_ids(api: Api) {
    id_scenarios(api).for_each(compare);
}

fn compare_presets(api: Api) {
    preset_scenarios(api).for_each(compare);
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
