use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn result(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

fn notification(method: &str) -> String {
    json!({"jsonrpc": "2.0", "method": method}).to_string()
}

/// Sends a line of the client. Returns what the gateway gets.
fn from_client(relay: &mut Relay, line: String) -> Option<String> {
    match relay.client_message(line.into_bytes()) {
        ClientMessage::Forward(line, _) => Some(String::from_utf8(line).unwrap()),
        ClientMessage::Drop => None,
    }
}

/// Sends a line of the gateway. Returns what the client gets.
fn from_gateway(relay: &mut Relay, line: String) -> Option<String> {
    match relay.gateway_message(line) {
        GatewayMessage::Forward(line) => Some(line),
        GatewayMessage::Drop => None,
    }
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Returns a relay whose client has performed its handshake.
fn after_handshake() -> Relay {
    let mut relay = Relay::default();
    from_client(&mut relay, request(0, "initialize", &json!({"clientInfo": {"name": "me"}})));
    from_gateway(&mut relay, result(&json!(0), &json!({"serverInfo": {}})));
    from_client(&mut relay, notification("notifications/initialized"));
    relay
}

#[test]
fn with_one_gateway_every_line_passes_unchanged() {
    let mut relay = Relay::default();
    for line in [
        r#"{"id":1,  "method":"tools/call","params":{"name":"x","arguments":{"n":1e2}},"jsonrpc":"2.0"}"#,
        r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"[{"id":7}]"#,
        "not JSON",
        "",
    ] {
        assert_eq!(from_client(&mut relay, line.to_owned()).as_deref(), Some(line));
    }
    for line in [
        r#"{"id":  0,"method":"sampling/createMessage","params":{"n":1.0}}"#,
        r#"{"method":"notifications/progress","params":{"progressToken":1}}"#,
        r#"{"id":1,"result":{}}"#,
        "not JSON",
    ] {
        assert_eq!(from_gateway(&mut relay, line.to_owned()).as_deref(), Some(line));
    }
    let answer = r#"{"id":0,  "result":{"n":1.0}}"#;
    assert_eq!(from_client(&mut relay, answer.to_owned()).as_deref(), Some(answer));
}

#[test]
fn open_calls_get_an_error_and_repeatable_requests_are_sent_again() {
    let mut relay = after_handshake();
    from_client(&mut relay, request(1, "tools/call", &json!({"name": "pay"})));
    from_client(&mut relay, request(2, "tools/call", &json!({"name": "tool_search"})));
    from_client(&mut relay, request(3, "tools/list", &json!({})));
    from_client(&mut relay, request(4, "made/up", &json!({})));
    from_client(&mut relay, request(5, "tools/list", &json!({})));
    from_gateway(&mut relay, result(&json!(5), &json!({"tools": []})));
    let lines: Vec<Value> = relay.gateway_lost().iter().map(|line| parse(line)).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!((&lines[0]["id"], &lines[0]["result"]["isError"]), (&json!(1), &json!(true)));
    assert_eq!((&lines[1]["id"], &lines[1]["error"]["code"]), (&json!(4), &json!(-32_603)));
    for line in &lines {
        assert!(line.to_string().contains("may or may not have been executed"), "{line}");
    }
    let next: Vec<Value> = relay.lines_for_next_gateway().iter().map(|line| parse(line)).collect();
    let methods: Vec<_> = next.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call", "tools/list"]);
    assert_eq!((&next[2]["id"], &next[3]["id"]), (&json!(2), &json!(3)));
    // The answer to our own handshake is not for the client.
    assert_eq!(from_gateway(&mut relay, result(&next[0]["id"], &json!({}))), None);
    let answer = result(&json!(3), &json!({"tools": []}));
    assert_eq!(from_gateway(&mut relay, answer.clone()), Some(answer));
    // A request is repeated only once, because it may be what makes the gateway crash.
    let lines = relay.gateway_lost();
    assert_eq!(parse(&lines[0])["id"], 2, "{lines:?}");
}

#[test]
fn the_setup_of_the_client_is_repeated() {
    let mut relay = after_handshake();
    for line in [
        request(1, "logging/setLevel", &json!({"level": "info"})),
        request(2, "logging/setLevel", &json!({"level": "debug"})),
        request(3, "resources/subscribe", &json!({"uri": "a:1"})),
        request(4, "resources/subscribe", &json!({"uri": "a:2"})),
        request(5, "resources/unsubscribe", &json!({"uri": "a:1"})),
    ] {
        from_client(&mut relay, line.clone());
        from_gateway(&mut relay, result(&parse(&line)["id"], &json!({})));
    }
    // What the gateway has rejected is not set up again.
    from_client(&mut relay, request(6, "resources/subscribe", &json!({"uri": "a:3"})));
    let rejection = json!({"jsonrpc": "2.0", "id": 6, "error": {"code": -32_602, "message": ""}});
    from_gateway(&mut relay, rejection.to_string());
    assert_eq!(relay.gateway_lost(), [""; 0]);
    let next: Vec<Value> = relay.lines_for_next_gateway().iter().map(|line| parse(line)).collect();
    let setup: Vec<_> =
        next.iter().map(|line| (line["method"].as_str().unwrap(), &line["params"])).collect();
    assert_eq!(
        setup[2..],
        [
            ("logging/setLevel", &json!({"level": "debug"})),
            ("resources/subscribe", &json!({"uri": "a:2"})),
        ]
    );
    let changed = relay.change_notifications();
    assert!(changed.iter().all(|line| line.contains("list_changed")), "{changed:?}");
}

/// A subscription of the newer protocol is a request without an answer.
#[test]
fn a_subscription_is_repeated_for_every_gateway() {
    let mut relay = Relay::default();
    let listen = request(1, "subscriptions/listen", &json!({"notifications": {}}));
    from_client(&mut relay, listen.clone());
    for _ in 0..5 {
        // A gateway that is stopped ends its subscriptions.
        assert_eq!(from_gateway(&mut relay, result(&json!(1), &json!({}))), None);
        assert_eq!(relay.gateway_lost(), [""; 0]);
        assert_eq!(relay.lines_for_next_gateway(), std::slice::from_ref(&listen));
    }
    let rejection = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32_602, "message": ""}});
    assert!(from_gateway(&mut relay, rejection.to_string()).is_some());
    assert_eq!(relay.lines_for_next_gateway(), [""; 0]);
}

/// The lists may be different in the next gateway.
#[test]
fn a_subscription_brings_a_notification_of_each_list_after_the_gateway_was_lost() {
    let mut relay = Relay::default();
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false}});
    from_client(&mut relay, request(7, "subscriptions/listen", &wanted));
    from_client(&mut relay, request(8, "subscriptions/listen", &json!({"notifications": {}})));
    relay.gateway_lost();
    let lines = relay.change_notifications();
    let expected = json!({
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": 7}},
    });
    assert_eq!(lines.iter().map(|line| parse(line)).collect::<Vec<_>>(), [expected]);
}

#[test]
fn a_question_of_an_earlier_gateway_is_cancelled_and_its_late_answer_dropped() {
    let mut relay = after_handshake();
    let question = request(0, "elicitation/create", &json!({}));
    assert_eq!(from_gateway(&mut relay, question.clone()), Some(question.clone()));
    let lines = relay.gateway_lost();
    assert_eq!(parse(&lines[0])["method"], "notifications/cancelled");
    assert_eq!(parse(&lines[0])["params"]["requestId"], 0);
    relay.lines_for_next_gateway();
    // The next gateway begins to count from zero again.
    let second = parse(&from_gateway(&mut relay, question).unwrap());
    assert_eq!(second["id"], "1:0");
    assert_eq!(from_client(&mut relay, result(&json!(0), &json!({"late": true}))), None);
    let answer = from_client(&mut relay, result(&json!("1:0"), &json!({"word": 1}))).unwrap();
    assert_eq!(parse(&answer), parse(&result(&json!(0), &json!({"word": 1}))));
    // A second answer has no question.
    assert_eq!(from_client(&mut relay, result(&json!("1:0"), &json!({}))), None);
}

#[test]
fn a_request_that_was_not_completely_sent_is_sent_again_in_full() {
    let mut relay = after_handshake();
    let line = request(1, "tools/call", &json!({"name": "pay"}));
    let ClientMessage::Forward(_, Some(id)) = relay.client_message(line.into_bytes()) else {
        panic!("a request is forwarded")
    };
    relay.not_sent(&id);
    assert_eq!(relay.gateway_lost(), [""; 0], "it was not executed, so it gets no error");
}

/// After the user has stopped the gateway, the relay connects to the next one when a request needs it. A subscription
/// needs none.
#[test]
fn only_a_request_that_needs_an_answer_needs_the_next_gateway() {
    let mut relay = after_handshake();
    assert!(!relay.can_wait(), "the gateway was not told to stop");
    from_gateway(&mut relay, notification(STOPPING));
    assert!(relay.can_wait());
    from_client(&mut relay, request(1, "subscriptions/listen", &json!({"notifications": {}})));
    assert!(relay.can_wait());
    from_client(&mut relay, request(2, "tools/list", &json!({})));
    assert!(!relay.can_wait());
}

#[test]
fn messages_to_the_relay_itself_do_not_reach_the_client() {
    let mut relay = after_handshake();
    assert_eq!(from_gateway(&mut relay, notification(STOPPING)), None);
    assert!(relay.can_wait());
    let ended = json!({"jsonrpc": "2.0", "method": ENDED, "params": {"reason": "why"}});
    assert_eq!(from_gateway(&mut relay, ended.to_string()), None);
    assert_eq!(relay.end_reason().as_deref(), Some("why"));
}

/// What happens next in the property test.
#[derive(Debug, Clone)]
enum Event {
    /// The client sends a request: a call, or something that can be repeated.
    Request { is_call: bool },
    /// The gateway answers the open request at this position.
    Answer(usize),
    /// The gateway asks the client.
    Question,
    /// The client answers its open question at this position.
    Reply(usize),
    /// The gateway is lost, and the next one is connected.
    Lost,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<bool>().prop_map(|is_call| Event::Request { is_call }),
        3 => any::<usize>().prop_map(Event::Answer),
        2 => Just(Event::Question),
        2 => any::<usize>().prop_map(Event::Reply),
        1 => Just(Event::Lost),
    ]
}

proptest! {
    /// However often gateways are lost: each request gets exactly one answer, a call is sent to one gateway only, and
    /// an answer of the client reaches only the gateway that has asked.
    #[test]
    fn every_request_is_answered_once_and_nothing_reaches_another_gateway(
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut relay = after_handshake();
        let (mut next_id, mut generation, mut next_question) = (1_u64, 0_u64, 0_u64);
        let mut answers = BTreeMap::<u64, usize>::new();
        let mut sent_calls = BTreeMap::<u64, usize>::new();
        // What the current gateway has to answer, and the questions that the client has not answered.
        let mut at_gateway = Vec::<Value>::new();
        let mut questions = Vec::<(Value, u64)>::new();
        let count = |answers: &mut BTreeMap<u64, usize>, line: &str| {
            let line = parse(line);
            if line.get("method").is_none() {
                *answers.entry(line["id"].as_u64().unwrap()).or_default() += 1;
            }
        };
        for event in events {
            match event {
                Event::Request { is_call } => {
                    let method = if is_call { "tools/call" } else { "tools/list" };
                    let line = request(next_id, method, &json!({"name": "pay"}));
                    prop_assert!(from_client(&mut relay, line).is_some());
                    if is_call {
                        *sent_calls.entry(next_id).or_default() += 1;
                    }
                    answers.insert(next_id, 0);
                    at_gateway.push(json!(next_id));
                    next_id += 1;
                }
                Event::Answer(at) if !at_gateway.is_empty() => {
                    let id = at_gateway.remove(at % at_gateway.len());
                    if let Some(line) = from_gateway(&mut relay, result(&id, &json!({}))) {
                        count(&mut answers, &line);
                    }
                }
                Event::Question => {
                    let line = request(next_question, "roots/list", &json!({}));
                    let shown = parse(&from_gateway(&mut relay, line).unwrap());
                    prop_assert!(!questions.iter().any(|(id, _)| *id == shown["id"]));
                    questions.push((shown["id"].clone(), generation));
                    next_question += 1;
                }
                Event::Reply(at) if !questions.is_empty() => {
                    let (id, asked_by) = questions.remove(at % questions.len());
                    let passed = from_client(&mut relay, result(&id, &json!({}))).is_some();
                    prop_assert_eq!(passed, asked_by == generation);
                }
                Event::Lost => {
                    for line in relay.gateway_lost() {
                        count(&mut answers, &line);
                    }
                    at_gateway.clear();
                    (generation, next_question) = (generation + 1, 0);
                    for line in relay.lines_for_next_gateway() {
                        let line = parse(&line);
                        if line["method"] == "tools/call" {
                            *sent_calls.entry(line["id"].as_u64().unwrap()).or_default() += 1;
                        }
                        if line.get("id").is_some() {
                            at_gateway.push(line["id"].clone());
                        }
                    }
                }
                Event::Answer(_) | Event::Reply(_) => {}
            }
        }
        for id in at_gateway {
            if let Some(line) = from_gateway(&mut relay, result(&id, &json!({}))) {
                count(&mut answers, &line);
            }
        }
        prop_assert!(answers.values().all(|count| *count == 1), "{:?}", answers);
        prop_assert!(sent_calls.values().all(|count| *count == 1), "{:?}", sent_calls);
    }
}
