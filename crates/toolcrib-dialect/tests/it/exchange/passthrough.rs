//! Tests of requests that are passed through, and of the reason that the report gives.

use super::*;

#[test]
fn every_passthrough_has_a_reason() {
    let hosted = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = first_request(false);
        change(&mut body);
        body
    };
    let mut off = setup();
    off.requested = RequestedMode::Off;
    let rows = [
        (first_request(false), off, "bypass", "tool search is off"),
        (with(&|body| body["tools"] = json!([])), setup(), "bypass", "no tools"),
        (with(&|body| body["messages"] = json!(1)), setup(), "bypass", "not a request of this API"),
        (
            with(&|body| body["tools"].as_array_mut().unwrap().push(hosted.clone())),
            setup(),
            "bypass",
            "the client defers tools itself",
        ),
        (
            with(&|body| body["tools"].as_array_mut().unwrap().truncate(3)),
            setup(),
            "pass-through",
            "below the thresholds",
        ),
    ];
    for (body, setup, mode, why) in rows {
        let answer = UpstreamAnswer::Whole(200, "{}".into());
        let played = play(&body, setup, &mut HashMap::new(), vec![answer]);
        assert_eq!((played.report.mode, &*played.report.reason), (mode, why));
        assert_eq!((played.sent, &*played.body), (vec![body], &b"{}"[..]));
        assert_eq!(played.done.unwrap().summary.rounds, 1);
    }
}

#[test]
fn mode_off_also_keeps_namespaces_unchanged() {
    let tool = json!({"type": "function", "name": "find", "parameters": {"type": "object"}});
    let body = json!({"model": "m", "input": "hi", "stream": true,
        "tools": [{"type": "namespace", "name": "crm", "tools": [tool]}]});
    for (requested, is_as_it_came) in
        [(RequestedMode::Off, true), (RequestedMode::default(), false)]
    {
        let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
        setup.requested = requested;
        let (api, path) = (Api::Responses, "/v1/responses");
        let request = Request::read(api, path, body.to_string().into_bytes());
        let outgoing = sent(&mut Exchange::new(api, path, request, setup));
        assert_eq!(outgoing.body == body.to_string().as_bytes(), is_as_it_came);
        assert_eq!(outgoing.is_read, !is_as_it_came);
    }
}

#[test]
fn a_client_with_its_own_search_is_passed_through() {
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
        let setup = ExchangeConfig::new(host, Arc::new(FourCharsPerToken));
        let mut exchange = Exchange::new(api, path, request, setup);
        assert_eq!(sent(&mut exchange).body == body.as_bytes(), is_as_it_came, "{body}");
        let why = exchange.report().to_string();
        assert!(why.starts_with("bypass: the client defers tools itself"), "{why}");
    }
}
