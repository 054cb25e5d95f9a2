//! Whole exchanges, driven by the one loop, without sockets: what is asked for, in which order, and what
//! the client gets.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_core::FourChars;
use toolcrib_dialect::capability::{Learned, NotNative};
use toolcrib_dialect::exchange::action::{Body, Done, Ending, FellBack, Outgoing, Report, Setup};
use toolcrib_dialect::mode::{Primitive, Wish};
use toolcrib_dialect::{Action, Api, Exchange, Key, Mode, Request, Toolset};

use crate::support::tools;

const TARGET: &str = "/v1/messages";
const HOST: &str = "api.anthropic.com";

/// What an upstream does with a request.
enum Answer {
    Events(String),
    Whole(u16, String),
    /// These bytes of a stream, and then nothing.
    CutOff(String),
    Unreachable,
}

/// What became of an exchange.
#[derive(Debug, Default)]
struct Played {
    /// The names of the actions, in order; rows of one are one.
    actions: Vec<&'static str>,
    sent: Vec<Value>,
    status: Option<u16>,
    body: Vec<u8>,
    fell_back: Vec<FellBack>,
    learned: Option<Learned>,
    done: Option<Done>,
    report: Report,
}

impl Played {
    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// The loop, with a map for a store and a list of answers for an upstream.
fn play(
    body: &Value,
    setup: Setup,
    store: &mut HashMap<Key, Vec<u8>>,
    answers: Vec<Answer>,
) -> Played {
    play_at(TARGET, body, setup, store, answers)
}

fn play_at(
    target: &str,
    body: &Value,
    setup: Setup,
    store: &mut HashMap<Key, Vec<u8>>,
    answers: Vec<Answer>,
) -> Played {
    let request = Request::read(Api::Messages, target, body.to_string().into_bytes());
    let mut exchange = Exchange::new(Api::Messages, target, request, setup);
    let (mut played, mut answers) = (Played::default(), answers.into_iter());
    let mut rest: Option<Answer> = None;
    loop {
        let action = exchange.next();
        let name = match &action {
            None => "read",
            Some(Action::Load(_)) => "load",
            Some(Action::Prepare(_)) => "prepare",
            Some(Action::Send(_)) => "send",
            Some(Action::Respond(_)) => "respond",
            Some(Action::Forward(_)) => "forward",
            Some(Action::Store(_)) => "store",
            Some(Action::FellBack(_)) => "fall back",
            Some(Action::Learn(_)) => "learn",
            Some(Action::Done(_)) => "done",
        };
        if played.actions.last() != Some(&name) {
            played.actions.push(name);
        }
        match action {
            None => match rest.take().expect("an answer to read") {
                Answer::Events(text) => {
                    text.as_bytes().chunks(50).for_each(|piece| {
                        exchange.bytes(Bytes::copy_from_slice(piece));
                    });
                    exchange.end();
                }
                Answer::Whole(_, text) => {
                    exchange.bytes(text.into());
                    exchange.end();
                }
                Answer::CutOff(text) => {
                    exchange.bytes(text.into());
                    exchange.cut_off();
                }
                Answer::Unreachable => unreachable!(),
            },
            Some(Action::Load(keys)) => {
                exchange.loaded(keys.iter().map(|key| store.get(key).cloned()).collect());
            }
            Some(Action::Prepare(plan)) => {
                let toolset = Arc::new(Toolset::new(*plan, exchange.tools()));
                exchange.prepared(toolset);
            }
            Some(Action::Send(request)) => {
                played.sent.push(serde_json::from_slice(&request.body).unwrap());
                let answer = answers.next().expect("another answer");
                match &answer {
                    Answer::Events(_) | Answer::CutOff(_) => exchange.answered(200, true),
                    Answer::Whole(status, _) => exchange.answered(*status, false),
                    Answer::Unreachable => exchange.unreachable(),
                }
                rest = Some(answer);
            }
            Some(Action::Respond(start)) => {
                assert_eq!(played.status.replace(start.status), None, "a response begins once");
                match (start.body, rest.take()) {
                    (Body::Complete(body), _) => played.body = body.to_vec(),
                    (Body::Forwarded, answer) => rest = answer,
                    (Body::AsItComes, Some(Answer::Whole(_, text) | Answer::Events(text))) => {
                        played.body = text.into_bytes();
                    }
                    (Body::AsItComes, _) => panic!("no body"),
                }
            }
            Some(Action::Forward(bytes)) => played.body.extend_from_slice(&bytes),
            Some(Action::Store(records)) => store.extend(records),
            Some(Action::FellBack(fell_back)) => played.fell_back.push(fell_back),
            Some(Action::Learn(learned)) => played.learned = Some(learned),
            Some(Action::Done(done)) => {
                played.done = Some(done);
                break;
            }
        }
    }
    assert!(answers.next().is_none(), "an answer was not asked for");
    played.report = exchange.report().clone();
    played
}

fn setup() -> Setup {
    Setup::new(HOST, Arc::new(FourChars))
}

fn request(messages: &Value, stream: bool) -> Value {
    let tools: Vec<Value> = tools(40)
        .into_iter()
        .map(|(name, description, schema)| {
            json!({"name": name, "description": description, "input_schema": schema})
        })
        .collect();
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1024, "messages": messages, "tools": tools,
        "stream": stream})
}

fn ask(stream: bool) -> Value {
    request(&json!([{"role": "user", "content": "Who is Ada?"}]), stream)
}

/// A round in which the model calls a tool, as events or whole.
fn calls(id: &str, name: &str, input: &Value, stream: bool) -> Answer {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    if !stream {
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [call], "stop_reason": "tool_use", "stop_sequence": null, "usage": usage});
        return Answer::Whole(200, body.to_string());
    }
    let events = [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
            "role": "assistant", "model": "m", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    let text = events.iter().map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    });
    Answer::Events(text.collect())
}

fn searches(stream: bool) -> Answer {
    calls("toolu_search000001", "tool_search", &json!({"query": "find a customer"}), stream)
}

/// The call that the bridge wraps a tool's call into.
fn wrapped(stream: bool) -> Answer {
    let input = json!({"name": "crm__find_customer", "arguments": {"q": "Ada"}});
    calls("toolu_call00000001", "tool_call", &input, stream)
}

fn refusal(path: &str, message: &str) -> Answer {
    let error = json!({"type": "invalid_request_error", "message": format!("{path}: {message}")});
    Answer::Whole(400, json!({"type": "error", "error": error}).to_string())
}

#[test]
fn a_refusal_a_fallback_and_a_hidden_round() {
    for stream in [false, true] {
        let mut store = HashMap::new();
        let refused = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
        let answers = vec![refused, searches(stream), wrapped(stream)];
        let played = play(&ask(stream), setup(), &mut store, answers);

        let native = Mode::Reference(Primitive::ToolReference);
        let missing = Some(NotNative::References);
        assert_eq!(played.fell_back, [FellBack { from: native, missing }]);
        assert!(played.sent[0].to_string().contains("defer_loading"));
        assert!(!played.sent[1].to_string().contains("defer_loading"));
        // The answer to the search went up, and the client got the call of the real tool alone.
        assert_eq!(played.sent[2]["messages"].as_array().unwrap().len(), 3);
        assert!(played.sent[2]["messages"][2].to_string().contains("crm__find_customer"));
        assert!(played.text().contains("crm__find_customer"), "{}", played.text());
        assert!(!played.text().contains("tool_search") && !played.text().contains("tool_call"));
        let done = played.done.unwrap();
        assert_eq!((done.ending, done.status), (Ending::Complete, 200));
        assert_eq!((done.summary.rounds, done.summary.searches), (2, 1));
        assert_eq!((played.report.mode, played.report.deferred), ("bridge", 40));
        let expected: &[&str] = if stream {
            &[
                "prepare",
                "send",
                "read",
                "fall back",
                "prepare",
                "send",
                "learn",
                "respond",
                "read",
                "forward",
                "send",
                "read",
                "forward",
                "store",
                "forward",
                "done",
            ]
        } else {
            &[
                "prepare",
                "send",
                "read",
                "fall back",
                "prepare",
                "send",
                "learn",
                "read",
                "send",
                "read",
                "store",
                "respond",
                "done",
            ]
        };
        assert_eq!(played.actions, expected);

        // The next request knows: it does not try what was refused, and it finds its history again.
        let setup = Setup { learned: played.learned.unwrap(), ..setup() };
        let messages = json!([
            {"role": "user", "content": "Who is Ada?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_call00000001",
                "name": "crm__find_customer", "input": {"q": "Ada"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_call00000001",
                "content": "Customer 7"}]},
        ]);
        let next = play(&request(&messages, stream), setup, &mut store, vec![wrapped(stream)]);
        assert!(next.fell_back.is_empty());
        assert_eq!(next.actions[0], "load");
        let sent = next.sent[0]["messages"].as_array().unwrap();
        assert_eq!(sent[..3], played.sent[2]["messages"].as_array().unwrap()[..]);
        assert_eq!(next.sent[0]["tools"], played.sent[2]["tools"]);
    }
}

#[test]
fn a_refusal_in_a_hidden_round() {
    for stream in [false, true] {
        let refused =
            refusal("messages.2.content.0", "Input tag 'tool_reference' found using 'type'");
        // The first round searched in the native mode; the second search begins again over the bridge.
        let answers = vec![searches(stream), refused, searches(stream), wrapped(stream)];
        let played = play(&ask(stream), setup(), &mut HashMap::new(), answers);
        assert!(played.sent[1].to_string().contains("tool_reference"));
        assert!(!played.sent[2].to_string().contains("tool_reference"));
        assert_eq!(played.fell_back.len(), 1);
        assert_eq!(played.actions.iter().filter(|name| **name == "respond").count(), 1);
        let (text, done) = (played.text(), played.done.unwrap());
        assert!(text.contains("crm__find_customer") && !text.contains("tool_search"), "{text}");
        assert_eq!((done.summary.rounds, done.ending), (3, Ending::Complete));
    }
}

#[test]
fn two_refusals_in_a_row() {
    let deferring = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
    let bound =
        "Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let thinking = refusal("messages.1.content.0", bound);
    let messages = json!([
        {"role": "user", "content": "Who is Ada?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Which Ada?"},
        ]},
        {"role": "user", "content": "The customer."},
    ]);
    let answers = vec![deferring, thinking, wrapped(true)];
    let played = play(&request(&messages, true), setup(), &mut HashMap::new(), answers);
    let missing: Vec<_> = played.fell_back.iter().map(|fell_back| fell_back.missing).collect();
    assert_eq!(missing, [Some(NotNative::References), None]);
    let thinks = |body: &Value| body["messages"].to_string().contains("thinking");
    assert_eq!(played.sent.iter().map(thinks).collect::<Vec<_>>(), [true, true, false]);
    assert!(played.text().contains("crm__find_customer"));
}

#[test]
fn a_refusal_of_a_request_that_only_counts_tokens() {
    let refused = refusal("tools.0.custom.defer_loading", "Extra inputs are not permitted");
    let counted = Answer::Whole(200, r#"{"input_tokens": 7}"#.to_owned());
    let target = "/v1/messages/count_tokens";
    let mut store = HashMap::new();
    let played = play_at(target, &ask(false), setup(), &mut store, vec![refused, counted]);
    assert_eq!((played.fell_back.len(), played.status), (1, Some(200)));
    assert_eq!(played.text(), r#"{"input_tokens": 7}"#);
    assert!(!played.sent[1].to_string().contains("defer_loading") && store.is_empty());
}

#[test]
fn an_error_that_is_no_refusal_is_the_clients() {
    for status in [400, 401, 429, 500] {
        for stream in [false, true] {
            let body = r#"{"type":"error","error":{"type":"x","message":"max_tokens: too large"}}"#;
            let answer = Answer::Whole(status, body.to_owned());
            let played = play(&ask(stream), setup(), &mut HashMap::new(), vec![answer]);
            assert_eq!((played.status, played.text()), (Some(status), body.to_owned()));
            assert_eq!(played.done.unwrap().status, status);
        }
    }
}

#[test]
fn an_upstream_that_is_lost() {
    let ending = |answers: Vec<Answer>, stream: bool| {
        let played = play(&ask(stream), setup(), &mut HashMap::new(), answers);
        (played.done.unwrap().ending, played.status, played.text())
    };
    let none = String::new;
    assert_eq!(ending(vec![Answer::Unreachable], true), (Ending::Unreachable, None, none()));
    let half = || Answer::CutOff("event: ping\ndata: {\"type\": \"ping\"}\n\nevent: mess".into());
    let (cut, status, text) = ending(vec![half()], true);
    assert_eq!((cut, status), (Ending::CutOff, Some(200)));
    assert!(text.starts_with("event: ping"));
    assert_eq!(ending(vec![half()], false), (Ending::CutOff, None, none()));
    // In a hidden round the client has part of a stream: its API's own error ends it.
    let (failed, status, text) = ending(vec![searches(true), Answer::Unreachable], true);
    assert_eq!((failed, status), (Ending::Failed, Some(200)));
    assert!(text.ends_with("\n\n") && text.contains("event: error"), "{text}");
    let whole = ending(vec![searches(false), Answer::Unreachable], false);
    assert_eq!(whole, (Ending::Unreachable, None, none()));
}

#[test]
fn what_passes_through_says_why() {
    let hosted = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = ask(false);
        change(&mut body);
        body
    };
    let off = Setup { wish: Wish::Off, ..setup() };
    let rows = [
        (ask(false), off, "bypass", "tool search is off"),
        (with(&|body| body["tools"] = json!([])), setup(), "bypass", "no tools"),
        (with(&|body| body["messages"] = json!(1)), setup(), "bypass", "not a request of this API"),
        (
            with(&|body| body["tools"].as_array_mut().unwrap().push(hosted.clone())),
            setup(),
            "bypass",
            "the client defers by itself",
        ),
        (
            with(&|body| body["tools"].as_array_mut().unwrap().truncate(3)),
            setup(),
            "pass-through",
            "below the thresholds",
        ),
    ];
    for (body, setup, mode, why) in rows {
        let answer = Answer::Whole(200, "{}".into());
        let played = play(&body, setup, &mut HashMap::new(), vec![answer]);
        assert_eq!((played.report.mode, &*played.report.why), (mode, why));
        assert_eq!((played.sent, &*played.body), (vec![body], &b"{}"[..]));
        assert_eq!(played.done.unwrap().summary.rounds, 1);
    }
}

/// The next action that is a request to the upstream, with the toolsets made on the way.
fn sent(exchange: &mut Exchange) -> Outgoing {
    loop {
        match exchange.next().expect("an action") {
            Action::Prepare(plan) => {
                let toolset = Arc::new(Toolset::new(*plan, exchange.tools()));
                exchange.prepared(toolset);
            }
            Action::Send(outgoing) => return outgoing,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn off_is_off_for_namespaces_too() {
    let tool = json!({"type": "function", "name": "find", "parameters": {"type": "object"}});
    let body = json!({"model": "m", "input": "hi", "stream": true,
        "tools": [{"type": "namespace", "name": "crm", "tools": [tool]}]});
    for (wish, is_as_it_came) in [(Wish::Off, true), (Wish::Auto, false)] {
        let mut setup = Setup::new("localhost", Arc::new(FourChars));
        setup.wish = wish;
        let (api, path) = (Api::Responses, "/v1/responses");
        let request = Request::read(api, path, body.to_string().into_bytes());
        let outgoing = sent(&mut Exchange::new(api, path, request, setup));
        assert_eq!(outgoing.body == body.to_string().as_bytes(), is_as_it_came);
        assert_eq!(outgoing.is_read, !is_as_it_came);
    }
}

#[test]
fn an_error_that_comes_as_events_is_only_translated() {
    for stream in [false, true] {
        let mut setup = setup();
        setup.upstream.speaks = Some(Api::Chat);
        let body = ask(stream).to_string().into_bytes();
        let request = Request::read(Api::Messages, TARGET, body);
        let mut exchange = Exchange::new(Api::Messages, TARGET, request, setup);
        assert_eq!(sent(&mut exchange).path, Some("/v1/chat/completions"));
        exchange.answered(429, true);
        exchange.bytes("data: {\"error\": {\"message\": \"slow down\"}}\n\n".into());
        exchange.end();
        let (mut text, mut done, mut begun) = (Vec::new(), None, 0);
        while let Some(action) = exchange.next() {
            match action {
                Action::Respond(start) => {
                    begun += 1;
                    assert_eq!((start.status, start.is_translated), (429, true));
                }
                Action::Forward(bytes) => text.extend(bytes),
                Action::Done(end) => assert_eq!(done.replace(end), None),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            (begun, done.map(|done| (done.ending, done.status))),
            (1, Some((Ending::Complete, 429)))
        );
        assert!(String::from_utf8(text).unwrap().contains("slow down"));
        // Nothing that comes after the end is taken in.
        exchange.answered(200, true);
        exchange.unreachable();
        exchange.bytes("x".into());
        exchange.cut_off();
        assert!(exchange.next().is_none() && exchange.is_over());
    }
}

#[test]
fn a_client_with_a_search_of_its_own_is_left_to_it() {
    let own = json!({"type": "tool_search", "execution": "client", "description": "d"});
    let tool = json!({"type": "function", "name": "find", "parameters": {"type": "object"}});
    let searched = json!({"type": "tool_search_output", "execution": "client",
        "call_id": "call_own_00001", "status": "completed", "tools": [tool]});
    let user = json!({"type": "message", "role": "user", "content": "Find Ada."});
    let rows = [
        (json!([user]), json!([own, tool]), "api.openai.com", true),
        (json!([user, searched]), json!([tool]), "api.openai.com", true),
        (json!([user, searched]), json!([own, tool]), "localhost", false),
    ];
    for (input, tools, host, is_as_it_came) in rows {
        let body = json!({"model": "gpt-5.4", "input": input, "tools": tools}).to_string();
        let (api, path) = (Api::Responses, "/v1/responses");
        let request = Request::read(api, path, body.clone().into_bytes());
        let setup = Setup::new(host, Arc::new(FourChars));
        let mut exchange = Exchange::new(api, path, request, setup);
        assert_eq!(sent(&mut exchange).body == body.as_bytes(), is_as_it_came, "{body}");
        let why = exchange.report().to_string();
        assert!(why.starts_with("bypass: the client defers by itself"), "{why}");
    }
}
