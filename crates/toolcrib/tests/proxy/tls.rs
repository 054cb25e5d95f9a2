//! Tests of TLS between the proxy, its provider and its Redis. Certificates are checked against the certificate
//! authorities of the system, or against those in `SSL_CERT_FILE`.

use serde_json::Value;
use toolcrib_testkit::redis::Server;
use toolcrib_testkit::tls::TlsTerminator;

use crate::http;
use crate::long_conversation::LongConversation;
use crate::replica::Replica;
use crate::scenario::{SCENARIOS, Scenario};
use crate::script_generator::ScriptGenerator;
use crate::tools::{Size, tools};

const TURNS: usize = 10;
/// The scenario of these tests: Chat Completions with the bridge, because there the proxy answers searches in hidden
/// rounds, for which it needs its state.
const SCENARIO: Scenario = SCENARIOS[0];

fn conversation() -> LongConversation {
    let tools = tools(100, Size::Usual);
    let steps = ScriptGenerator::new(&tools, 3, SCENARIO.can_call_unfound_tools()).steps(TURNS);
    LongConversation::new(SCENARIO, &tools, steps)
}

/// Starts a TLS terminator in front of the server at this `http://` URL.
fn terminate_tls(url: &str) -> TlsTerminator {
    TlsTerminator::start(url.strip_prefix("http://").unwrap())
}

fn converse(conversation: &mut LongConversation, replica: &Replica) {
    for _ in 0..TURNS {
        conversation.turn(&replica.url);
    }
    conversation.assert_stable_prefix();
    conversation.assert_searched();
}

#[test]
fn a_provider_over_tls_works() {
    let mut conversation = conversation();
    let tls = terminate_tls(&conversation.provider.url);
    let config = SCENARIO.config(&format!("https://{}", tls.address()), None);
    let replica = Replica::start_with(&config, &[("SSL_CERT_FILE", &tls.ca_file())]);
    converse(&mut conversation, &replica);
}

#[test]
fn a_redis_over_tls_works() {
    let redis = Server::start();
    let mut conversation = conversation();
    let tls = TlsTerminator::start(&format!("127.0.0.1:{}", redis.port()));
    let config =
        SCENARIO.config(&conversation.provider.url, Some(&format!("rediss://{}", tls.address())));
    let replica = Replica::start_with(&config, &[("SSL_CERT_FILE", &tls.ca_file())]);
    converse(&mut conversation, &replica);
    assert_ne!(redis.ask(&["DBSIZE"]), "0", "Redis has the state: {}", replica.log());
}

#[test]
fn a_provider_with_an_untrusted_certificate_is_an_error() {
    let conversation = conversation();
    let tls = terminate_tls(&conversation.provider.url);
    let replica = Replica::start(&SCENARIO.config(&format!("https://{}", tls.address()), None));
    let body = r#"{"model": "any", "messages": [{"role": "user", "content": "Hi."}]}"#;
    let answer = http::post(&replica.url, "/v1/chat/completions", body).unwrap();
    let warning = format!(
        "toolcrib: the upstream {} cannot be reached: invalid peer certificate: UnknownIssuer",
        tls.address()
    );
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, body["error"]["message"].as_str()), (502, Some(warning.as_str())));
    assert!(conversation.provider.requests().is_empty(), "nothing was sent");
}
