//! Tests of a caller with a limited scope, through the real binary: tools outside the scope must never reach the
//! provider.

use toolcrib_testkit::provider::{Options, Provider};

use crate::http::{Response, post_with};
use crate::replica::Replica;

const KEY: &str = "x-toolcrib-key: virtual\r\n";

/// Starts a provider, and a proxy in front of it with a caller whose scope is `crm__*`.
fn start() -> (Provider, Replica) {
    let provider = Provider::start(Options::default()).unwrap();
    let url = &provider.url;
    let config = format!(
        "[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n\
         [[proxy.callers]]\nname = 'ci'\nkey = 'virtual'\ntools = ['crm__*']\n"
    );
    (provider, Replica::start(&config))
}

fn post(replica: &Replica, path: &str, body: &str) -> Response {
    post_with(&replica.url, path, KEY, body).unwrap()
}

#[test]
fn tools_outside_the_scope_never_reach_the_provider() {
    let (provider, replica) = start();
    let tool = |name: &str| format!(r#"{{"type":"function","name":"{name}","parameters":{{}}}}"#);
    let space = format!(
        r#"{{"type":"namespace","name":"n","description":"d","tools":[{},{}]}}"#,
        tool("secret"),
        tool("crm__find")
    );
    let item = r#"{"role":"user","content":"Hi"}"#;
    for body in [
        format!(r#"{{"model":"m","input":[{item}],"tools":[{space}]}}"#),
        format!(
            r#"{{"model":"m","input":[{item},{{"type":"additional_tools","role":"developer","tools":[{space}]}}]}}"#
        ),
        format!(
            r#"{{"model":"m","input":[{item},{{"type":"tool_search_output","call_id":"c","tools":[{space}]}}]}}"#
        ),
    ] {
        post(&replica, "/v1/responses", &body);
        let sent = provider.requests();
        let sent = String::from_utf8_lossy(&sent.last().unwrap().body).into_owned();
        assert!(!sent.contains("secret") && sent.contains("crm__find"), "{body}\n{sent}");
    }
}

#[test]
fn a_body_that_parsers_could_read_differently_is_rejected() {
    let (provider, replica) = start();
    let messages = r#""messages":[{"role":"user","content":"Hi"}]"#;
    for (body, why) in [
        (r#""tools":[],"tools":[{"name":"secret"}]"#, "the key `tools` occurs twice"),
        (r#""TOOLS":[{"name":"secret"}]"#, "the key `TOOLS` is a variant of `tools`"),
        (r#""extra_body":{"tools":[{"name":"secret"}]}"#, "the key `tools` is not allowed there"),
    ] {
        let body = format!(r#"{{"model":"m",{messages},{body}}}"#);
        let answer = post(&replica, "/v1/chat/completions", &body);
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.contains(why) && !answer.body.contains("secret"), "{}", answer.body);
    }
    assert_eq!(provider.requests().len(), 0);
}
