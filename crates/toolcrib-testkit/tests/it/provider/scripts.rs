//! Tests that a script makes the same calls whether all tools are declared, or only a search and a bridge.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, Dialect, Options, Provider, Script, Step};

use super::agent::{ALL, Agent, Call};

/// What a client sees of a conversation: for each message, the text and the calls with their arguments.
type Visible = Vec<(String, Vec<(String, Value)>)>;

const CATALOG: [&str; 3] = ["crm__find", "crm__update", "mail__send"];

fn steps() -> Vec<Step> {
    vec![
        Step::new([Action::text("Looking."), Action::call("crm__find", json!({"q": "ada"}))])
            .preamble("A moment."),
        Step::new([
            Action::find("write a customer", "crm__update", json!({"q": "ada"})),
            Action::call("mail__send", json!({"q": "hello"})),
        ]),
        Step::new([Action::search("anything else")]),
        Step::new([Action::report("Done: ")]),
    ]
}

fn result(call: &Call) -> String {
    format!("{} of {}", call.arguments["q"].as_str().unwrap(), call.name)
}

async fn directly(dialect: Dialect, url: &str, goal: &str) -> Visible {
    let mut agent = Agent::new(dialect, url, &CATALOG, goal);
    let mut visible = Visible::new();
    loop {
        let message = agent.turn().await;
        let calls =
            message.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
        visible.push((message.text, calls));
        if message.calls.is_empty() {
            return visible;
        }
        agent.results(&message.calls.iter().map(|call| (call, result(call))).collect::<Vec<_>>());
    }
}

/// Plays a conversation in the role of Toolcrib: answers searches and unwraps bridged calls. Returns what a client
/// would see, and the search queries of each message that only searches.
async fn deferred(dialect: Dialect, url: &str, goal: &str) -> (Visible, Vec<Vec<String>>) {
    let mut agent = Agent::new(dialect, url, &["tool_search", "tool_call"], goal);
    let (mut visible, mut queries) = (Visible::new(), Vec::new());
    loop {
        let message = agent.turn().await;
        if !message.calls.is_empty() && message.calls.iter().all(|call| call.name == "tool_search")
        {
            queries.push(
                message
                    .calls
                    .iter()
                    .map(|call| call.arguments["query"].as_str().unwrap().into())
                    .collect(),
            );
            let answer = json!({"loaded": CATALOG}).to_string();
            agent.results(
                &message.calls.iter().map(|call| (call, answer.clone())).collect::<Vec<_>>(),
            );
            continue;
        }
        let inner = |call: &Call| Call {
            id: call.id.clone(),
            name: call.arguments["name"].as_str().unwrap().to_owned(),
            arguments: call.arguments["arguments"].clone(),
        };
        assert!(message.calls.iter().all(|call| call.name == "tool_call"), "{message:?}");
        let calls: Vec<Call> = message.calls.iter().map(inner).collect();
        visible.push((
            message.text,
            calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect(),
        ));
        if calls.is_empty() {
            return (visible, queries);
        }
        let results =
            message.calls.iter().zip(&calls).map(|(wrapped, call)| (wrapped, result(call)));
        agent.results(&results.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_script_gives_the_same_calls_directly_and_through_a_search() {
    let expected: Visible = vec![
        ("Looking.".into(), vec![("crm__find".into(), json!({"q": "ada"}))]),
        (
            String::new(),
            vec![
                ("crm__update".into(), json!({"q": "ada"})),
                ("mail__send".into(), json!({"q": "hello"})),
            ],
        ),
        ("Done: ada of crm__update; hello of mail__send".into(), vec![]),
    ];
    let provider = Provider::start(Options::steps(steps())).unwrap();
    for dialect in ALL {
        assert_eq!(directly(dialect, &provider.url, "Go.").await, expected, "{dialect:?}");
        let (visible, queries) = deferred(dialect, &provider.url, "Go.").await;
        assert_eq!(visible, expected, "{dialect:?}");
        // The reply to the first search contained all tools, so the only other search is the one that belongs to no
        // call.
        assert_eq!(queries, [["crm find"], ["anything else"]], "{dialect:?}");
    }
}

#[tokio::test]
async fn the_goal_is_in_the_message_and_a_named_script_takes_precedence() {
    let named = Script::steps([Step::new([Action::text("I am another.")])]);
    let scripts = [("other".to_owned(), named)].into();
    let provider = Provider::start(Options { scripts, ..Options::default() }).unwrap();
    let goal =
        "Do this. goal: crm__find {\"q\":\"ada\"} and then goal: mail__send {\"q\": \"x\"} please";
    let expected: Visible = vec![
        (String::new(), vec![("crm__find".into(), json!({"q": "ada"}))]),
        (String::new(), vec![("mail__send".into(), json!({"q": "x"}))]),
        ("Done: x of mail__send".into(), vec![]),
    ];
    for dialect in ALL {
        assert_eq!(directly(dialect, &provider.url, goal).await, expected, "{dialect:?}");
        assert_eq!(deferred(dialect, &provider.url, goal).await.0, expected, "{dialect:?}");
        let other = directly(dialect, &provider.url, "script:other").await;
        assert_eq!(other, [("I am another.".to_owned(), vec![])], "{dialect:?}");
    }
}

#[tokio::test]
async fn a_tool_that_no_search_finds_is_abandoned_after_two_searches() {
    let steps = [Step::new([Action::find("make coffee", "coffee__brew", json!({"q": "black"}))])];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    for dialect in ALL {
        let (visible, queries) = deferred(dialect, &provider.url, "Go.").await;
        assert_eq!(visible, [("There is no such tool: coffee__brew".to_owned(), vec![])]);
        assert_eq!(queries, [["make coffee"], ["coffee__brew"]], "{dialect:?}");
    }
}

#[tokio::test]
async fn only_a_search_makes_a_tool_known() {
    let steps =
        ["crm__find", "mail__send"].map(|tool| Step::new([Action::call(tool, json!({"q": "x"}))]));
    let provider = Provider::start(Options::steps(steps)).unwrap();
    for dialect in ALL {
        let mut agent = Agent::new(dialect, &provider.url, &["tool_search", "tool_call"], "Go.");
        let mut names = Vec::new();
        for answer in ["crm__find and mail__sender", "now use mail__send", "mail__send", "sent"] {
            let message = agent.turn().await;
            names.push(message.calls[0].name.clone());
            agent.results(&[(&message.calls[0], answer.into())]);
        }
        assert_eq!(names, ["tool_search", "tool_call", "tool_search", "tool_call"], "{dialect:?}");
    }
}

#[tokio::test]
async fn a_client_may_have_its_own_tool_search() {
    let steps = [
        Step::new([Action::call("tool_search", json!({"q": "books"}))]),
        Step::new([Action::call("crm__find", json!({"q": "ada"}))]),
        Step::new([Action::report("Done: ")]),
    ];
    let provider = Provider::start(Options::steps(steps)).unwrap();
    for dialect in ALL {
        let mut agent =
            Agent::new(dialect, &provider.url, &["tool_search", "crib_search", "crib_call"], "Go.");
        let mut calls = Vec::new();
        loop {
            let message = agent.turn().await;
            let Some(call) = message.calls.first() else { break };
            calls.push((call.name.clone(), call.arguments.clone()));
            let answer = if call.name == "crib_search" { "crm__find" } else { "nothing" };
            agent.results(&[(call, answer.to_owned())]);
        }
        let through = json!({"name": "crm__find", "arguments": {"q": "ada"}});
        let expected = [
            ("tool_search".to_owned(), json!({"q": "books"})),
            ("crib_search".to_owned(), json!({"query": "crm find"})),
            ("crib_call".to_owned(), through),
        ];
        assert_eq!(calls, expected, "{dialect:?}");
    }
}
