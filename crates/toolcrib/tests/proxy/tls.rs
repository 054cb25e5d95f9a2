//! TLS between the proxy, its provider and its Redis: certificates are checked against the
//! authorities of the system, or against those in `SSL_CERT_FILE`.

use serde_json::Value;
use toolcrib_testkit::redis::Server;
use toolcrib_testkit::tls::TlsTerminator;

use crate::http;
use crate::replica::Replica;
use crate::stage::Stage;
use crate::talk::Talk;
use crate::tools::{Size, tools};
use crate::way::{WAYS, Way};

const TURNS: usize = 10;
/// Chat Completions, where searches are rounds of the proxy and need its state.
const WAY: Way = WAYS[0];

fn stage() -> Stage {
    let tools = tools(100, Size::Usual);
    let steps = Talk::new(&tools, 3, WAY.calls_blind()).steps(TURNS);
    Stage::new(WAY, &tools, steps)
}

/// In front of a server that was given as `http://ADDRESS`.
fn front(url: &str) -> TlsTerminator {
    TlsTerminator::start(url.strip_prefix("http://").unwrap())
}

fn converse(stage: &mut Stage, replica: &Replica) {
    for _ in 0..TURNS {
        stage.turn(&replica.url);
    }
    stage.unbroken();
    stage.searched();
}

#[test]
fn a_provider_over_tls() {
    let mut stage = stage();
    let front = front(&stage.provider.url);
    let config = WAY.config(&format!("https://{}", front.address()), None);
    let replica = Replica::start_with(&config, &[("SSL_CERT_FILE", &front.ca_file())]);
    converse(&mut stage, &replica);
}

#[test]
fn a_redis_over_tls() {
    let redis = Server::start();
    let mut stage = stage();
    let front = TlsTerminator::start(&format!("127.0.0.1:{}", redis.port()));
    let config = WAY.config(&stage.provider.url, Some(&format!("rediss://{}", front.address())));
    let replica = Replica::start_with(&config, &[("SSL_CERT_FILE", &front.ca_file())]);
    converse(&mut stage, &replica);
    assert_ne!(redis.ask(&["DBSIZE"]), "0", "its state is there: {}", replica.log());
}

#[test]
fn a_provider_with_an_untrusted_certificate() {
    let stage = stage();
    let front = front(&stage.provider.url);
    let replica = Replica::start(&WAY.config(&format!("https://{}", front.address()), None));
    let body = r#"{"model": "any", "messages": [{"role": "user", "content": "Hi."}]}"#;
    let answer = http::post(&replica.url, "/v1/chat/completions", body).unwrap();
    let said = format!(
        "toolcrib: the upstream {} cannot be reached: invalid peer certificate: UnknownIssuer",
        front.address()
    );
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, body["error"]["message"].as_str()), (502, Some(said.as_str())));
    assert!(stage.provider.requests().is_empty(), "nothing was sent");
}
