//! Tests of which client sees which statistics, and of keys that are revoked, added and changed while the proxy runs.

use std::io::{BufRead as _, Read as _};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_testkit::provider::{CannedResponse, Options, Provider, StreamFault};

use crate::http::{self, Response};
use crate::replica::Replica;

/// Maximum time to wait for a reload, which is far longer than a poll of the config file takes.
const PATIENCE: Duration = Duration::from_mins(2);
const ADMIN: &str = "admin-token-0123456789";

fn caller(name: &str, key: &str, more: &str) -> String {
    format!(
        "[[proxy.callers]]\nname = '{name}'\nkey = '{key}'\n{more}\n\
         upstream_keys = {{ openai = 'real-key', anthropic = 'real-key', gemini = 'real-key' }}\n"
    )
}

fn config(provider: &Provider, http: &str, callers: &[String]) -> String {
    let url = &provider.url;
    format!(
        "[http]\n{http}\n[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n{}",
        callers.concat()
    )
}

fn get(replica: &Replica, path: &str, headers: &str) -> Response {
    http::send(&replica.url, &format!("GET {path}"), headers.as_bytes(), "").unwrap()
}

fn bearer(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

fn chat(stream: bool) -> String {
    chat_with(stream, 1)
}

fn chat_with(stream: bool, tools: usize) -> String {
    let tool = |at: usize| {
        let name = if at == 0 { "a__b".to_owned() } else { format!("a__tool_{at}") };
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
    };
    let tools: Vec<Value> = (0..tools).map(tool).collect();
    let messages = json!([{"role": "user", "content": "Hi."}]);
    json!({"model": "any", "stream": stream, "messages": messages, "tools": tools}).to_string()
}

fn ask(replica: &Replica, headers: &str) -> u16 {
    let target = "POST /v1/chat/completions";
    http::send(&replica.url, target, headers.as_bytes(), &chat(false)).unwrap().status
}

/// Returns the names of the clients in the statistics.
fn clients(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 200, "{}", response.body);
    let total: Value = serde_json::from_str(&response.body).unwrap();
    let rows = total["rows"].as_array().unwrap().iter();
    rows.map(|row| row["client"].as_str().unwrap().to_owned()).collect()
}

fn wait(what: &str, replica: &Replica, mut is_done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_done() {
        assert!(Instant::now() < end, "{what}: {}", replica.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_caller_sees_its_own_statistics_and_the_admin_sees_all() {
    let provider = Provider::start(Options::default()).unwrap();
    let callers = [caller("ann", "virtual-ann-key", ""), caller("bob", "virtual-bob-key", "")];
    let http = format!("token = 'listener-token-0123456789'\nadmin_token = '{ADMIN}'");
    let replica = Replica::start(&config(&provider, &http, &callers));
    let listener = "x-toolcrib-key: listener-token-0123456789\r\n";
    for headers in [
        bearer("virtual-ann-key"),
        bearer("virtual-bob-key"),
        // A client whose user agent is the name of a caller must not be counted as that caller.
        format!("{listener}{}User-Agent: ann/1\r\n", bearer("sk-own")),
    ] {
        assert_eq!(ask(&replica, &headers), 200);
    }
    let stats = |headers: &str| get(&replica, "/toolcrib/stats", headers);
    assert_eq!(clients(&stats("x-toolcrib-key: virtual-ann-key\r\n")), ["ann"]);
    assert_eq!(clients(&stats(&bearer("virtual-bob-key"))), ["bob"]);
    let own: Value = serde_json::from_str(&stats(&bearer("virtual-ann-key")).body).unwrap();
    assert_eq!(own["rows"][0]["requests"], 1, "{own}");
    for headers in [bearer(ADMIN), format!("x-toolcrib-key: {ADMIN}\r\n")] {
        assert_eq!(clients(&stats(&headers)), ["ann", "bob"]);
        assert!(get(&replica, "/metrics", &headers).body.contains("toolcrib_proxy_requests_total"));
    }
    // Neither the listener's token nor a caller's key is an admin token.
    let refused = stats(listener);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("admin_token"), "{}", refused.body);
    assert_eq!(stats("").status, 401);
    for headers in [bearer("listener-token-0123456789"), bearer("virtual-ann-key"), String::new()] {
        let got = get(&replica, "/metrics", &headers);
        assert_eq!(got.status, 403, "{headers}: {}", got.body);
        assert!(
            got.body.contains("admin_token") && !got.body.contains("toolcrib_"),
            "{}",
            got.body
        );
    }
    // The admin token is not a credential for a provider, so it must never be sent to one.
    provider.clear();
    assert_eq!(ask(&replica, &format!("x-toolcrib-key: {ADMIN}\r\n{}", bearer("sk-own"))), 401);
    assert_eq!(ask(&replica, &format!("{listener}{}", bearer(ADMIN))), 200);
    let sent = format!("{:?}", provider.requests()[0].headers);
    assert!(!sent.contains("admin-token"), "{sent}");
    let live = |key: &str| {
        let command = env!("CARGO_BIN_EXE_toolcrib");
        let mut command = std::process::Command::new(command);
        command.args(["stats", "--json", "--live", &replica.url]).env("TOOLCRIB_KEY", key);
        let output = command.output().unwrap();
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let all = live(ADMIN);
    assert!(all.contains("\"ann\"") && all.contains("\"bob\""), "{all}");
    assert!(live("listener-token-0123456789").contains("admin_token"));
}

#[test]
fn without_callers_and_admin_token_every_permitted_client_sees_all_statistics() {
    let provider = Provider::start(Options::default()).unwrap();
    let replica = Replica::start(&config(&provider, "", &[]));
    assert_eq!(ask(&replica, &bearer("sk-own")), 200);
    assert_eq!(clients(&get(&replica, "/toolcrib/stats", "")).len(), 1);
    assert_eq!(get(&replica, "/metrics", "").status, 200);
    // If there are callers but no admin token, no client sees all statistics.
    let callers = [caller("ann", "virtual-ann-key", "")];
    let replica = Replica::start(&config(&provider, "", &callers));
    assert_eq!(get(&replica, "/toolcrib/stats", "").status, 403);
    assert_eq!(get(&replica, "/metrics", "").status, 403);
}

#[test]
fn keys_are_revoked_added_and_changed_without_a_restart() {
    let provider = Provider::start(Options::default()).unwrap();
    let [ann, bob] = [("ann", "virtual-ann-key"), ("bob", "virtual-bob-key")];
    let replica = Replica::start(&config(
        &provider,
        "",
        &[caller(ann.0, ann.1, ""), caller(bob.0, bob.1, "hidden = ['a__*']")],
    ));
    let known = |key: &str| ask(&replica, &format!("x-toolcrib-key: {key}\r\n")) != 401;
    assert!(known(ann.1) && known(bob.1) && !known("virtual-eve-key"));
    // Ann's key changes, Bob's scope becomes wider and his real key changes, and Eve is a new caller.
    let bob_now = caller(bob.0, bob.1, "").replace("real-key", "other-real-key");
    replica.rewrite(&config(
        &provider,
        "",
        &[
            caller("ann", "virtual-ann-new", ""),
            bob_now.clone(),
            caller("eve", "virtual-eve-key", ""),
        ],
    ));
    wait("the old key is refused", &replica, || !known(ann.1));
    assert!(known("virtual-ann-new") && known("virtual-eve-key"));
    provider.clear();
    assert_eq!(ask(&replica, &bearer(bob.1)), 200);
    let sent = &provider.requests()[0];
    assert_eq!(sent.header("authorization"), Some("Bearer other-real-key"));
    assert!(String::from_utf8_lossy(&sent.body).contains("a__b"));
    // This config is invalid, because two callers have the same key. It must change nothing.
    replica.rewrite(&config(&provider, "", &[bob_now.clone(), caller("eve", bob.1, "")]));
    wait("the config is refused", &replica, || replica.log().contains("cannot be used"));
    assert!(known("virtual-eve-key"));
    // Other settings of the section are not reloaded, and the log reports this.
    let text = config(&provider, "", &[bob_now]);
    replica.rewrite(&text.replace("[proxy]\n", "[proxy]\nrounds = 3\n"));
    wait("the removed key is refused", &replica, || !known("virtual-eve-key"));
    let setting = "`rounds` of `[proxy]`";
    wait("the log names the key", &replica, || replica.log().contains(setting));
}

/// On a listener without a token, the proxy forwards any unknown key as a provider's key. A former admin token must not
/// be forwarded.
#[test]
fn a_former_admin_token_is_sent_to_no_provider() {
    let provider = Provider::start(Options::default()).unwrap();
    let admin = |token: &str| config(&provider, &format!("admin_token = '{token}'"), &[]);
    let replica = Replica::start(&admin(ADMIN));
    assert_eq!(ask(&replica, &bearer(ADMIN)), 200);
    replica.rewrite(&admin("another-admin-token-01"));
    let is_admin = |token: &str| get(&replica, "/metrics", &bearer(token)).status == 200;
    wait("the new token counts", &replica, || is_admin("another-admin-token-01"));
    assert!(!is_admin(ADMIN));
    assert_eq!(ask(&replica, &bearer(ADMIN)), 401);
    assert_eq!(ask(&replica, &bearer("sk-own")), 200);
    let sent =
        format!("{:?}", provider.requests().iter().map(|sent| &sent.headers).collect::<Vec<_>>());
    assert!(sent.contains("sk-own") && !sent.contains(ADMIN), "{sent}");
}

#[test]
fn open_streams_of_a_revoked_key_end_with_an_error() {
    for (path, body, error) in [
        ("/v1/chat/completions", chat(true), "data: {\"error\":"),
        // In this case tools are deferred, so the proxy writes the stream itself.
        ("/v1/chat/completions", chat_with(true, 60), "data: {\"error\":"),
        (
            "/v1/responses",
            json!({"model": "any", "stream": true, "input": "Hi."}).to_string(),
            "event: error\ndata: {\"type\":\"error\"",
        ),
        (
            "/v1/messages",
            json!({"model": "any", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "Hi."}]})
                .to_string(),
            "event: error\ndata: {\"type\":\"error\"",
        ),
        (
            "/v1beta/models/any:streamGenerateContent?alt=sse",
            json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}).to_string(),
            "data: {\"error\":",
        ),
    ] {
        let provider = Provider::start(Options::responses([CannedResponse::Faulty(StreamFault::StallAfter(1))])).unwrap();
        let bob = caller("bob", "virtual-bob-key", "");
        let both = [caller("ann", "virtual-ann-key", ""), bob.clone()];
        let replica = Replica::start(&config(&provider, "", &both));
        let headers = bearer("virtual-ann-key");
        let mut stream =
            http::open(&replica.url, &format!("POST {path}"), headers.as_bytes(), &body).unwrap();
        let mut line = String::new();
        // This waits until the stream has started. After that the provider sends nothing more.
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "{path}: {}", replica.log());
        }
        replica.rewrite(&config(&provider, "", &[bob]));
        let mut rest = String::new();
        // The connection may be aborted, which is an error here. Only the text that was received before the abort is
        // checked.
        let _ = stream.read_to_string(&mut rest);
        assert!(rest.contains(error) && rest.contains("revoked"), "{path}: {rest}");
        provider.clear();
        assert_eq!(ask(&replica, &headers), 401, "a revoked key is not forwarded to the provider");
        assert!(provider.requests().is_empty(), "{path}");
    }
}
