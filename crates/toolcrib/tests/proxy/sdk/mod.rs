//! Tests with real SDKs as clients: `openai` (Chat Completions and Responses), `anthropic` and `google-genai`. Each
//! runs in an ordinary agent loop with 200 tools, against the scripted provider of `toolcrib-testkit`.
//!
//! The agents connect to `toolcrib serve`, which is in front of the provider. The model needs only a few of the tools,
//! and one of them is in the middle of the list. An SDK must see the calls of those tools and nothing else, streaming
//! or not.

mod client;
mod presets;

use std::collections::HashSet;

use client::{Client, expected, ids, run, visible};
use toolcrib_testkit::provider::{Options, Provider};

use crate::replica::Replica;

/// Starts a proxy in front of the provider. `more` contains further lines of its `[proxy]` section.
fn proxy(provider: &Provider, more: &str) -> Replica {
    proxy_with_settings(provider, "", more)
}

/// Starts a proxy in front of the provider, with settings of the engine before the `[proxy]` section.
fn proxy_with_settings(provider: &Provider, settings: &str, more: &str) -> Replica {
    let url = &provider.url;
    let upstreams = format!("openai = \"{url}\"\nanthropic = \"{url}\"\ngemini = \"{url}\"");
    Replica::start(&format!("{settings}[proxy]\n{upstreams}\n{more}"))
}

fn converse(client: Client) {
    for stream in [false, true] {
        let provider =
            Provider::start(Options { bind_thinking: true, ..Options::default() }).unwrap();
        let proxy = proxy(&provider, "");
        let report = run(client, &proxy.url, stream);
        assert_eq!(visible(&report), expected(client), "stream={stream}");
        let ids = ids(&report);
        let distinct: HashSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{ids:?}");
        // The provider counts four bytes as one token. The SDK must see the sum of the tokens of all rounds.
        let counted: u64 = provider
            .requests()
            .iter()
            .filter(|request| !request.path.contains("count_tokens"))
            .map(|request| request.body.len().div_ceil(4) as u64)
            .sum();
        let turns = report["turns"].as_array().unwrap();
        let usage: u64 = turns.iter().filter_map(|turn| turn["usage"]["input"].as_u64()).sum();
        assert_eq!(usage, counted);
        // The search result must contain the schema of the tool. This text is the same in every SDK, whereas the
        // spelling of the schema's keys differs.
        let has_schema = |body: &[u8]| String::from_utf8_lossy(body).contains("Name of the city.");
        assert!(provider.requests().iter().any(|request| has_schema(&request.body)), "{client:?}");
        // There must have been hidden rounds, or the test would prove nothing.
        assert!(provider.requests().len() > turns.len());
        assert!(proxy.modes().contains(&"bridge".to_owned()), "{:?}", proxy.modes());
    }
}

/// Without a proxy, the same agents see the expected conversation.
#[test]
fn direct() {
    for client in Client::ALL {
        for stream in [false, true] {
            let provider = Provider::start(Options::default()).unwrap();
            let report = run(client, &provider.url, stream);
            assert_eq!(visible(&report), expected(client), "{client:?} stream={stream}");
        }
    }
}

#[test]
fn openai_chat() {
    converse(Client::Chat);
}

#[test]
fn openai_responses() {
    converse(Client::Responses);
}

#[test]
fn openai_responses_by_previous_id() {
    converse(Client::Chained);
}

#[test]
fn anthropic() {
    converse(Client::Anthropic);
}

#[test]
fn google_genai() {
    converse(Client::Gemini);
}

#[test]
fn google_genai_with_its_own_schemas() {
    converse(Client::GeminiSchema);
}

#[test]
fn google_genai_2() {
    converse(Client::OlderGemini);
}
