//! Tests of every preset through `serve`, with a real SDK in each API. The requests to the provider are compared, byte
//! for byte, with a golden file. `UPDATE_GOLDEN=1` writes the files.
//!
//! There are thirty tools, and one of them is needed. The context window is small, so that presets which defer above a
//! share of it do so.

use std::path::{Path, PathBuf};
use std::{env, fs};

use toolcrib_core::Preset;
use toolcrib_testkit::provider::{Options, Provider};

use super::client::{Client, run_first};
use super::proxy_with_settings;

const TOOLS: usize = 30;

/// Returns the config of the proxy, without its upstreams.
fn config(preset: Option<Preset>) -> String {
    let line = preset.map(|preset| format!("preset = '{preset}'\n")).unwrap_or_default();
    format!("{line}context = 8000\n")
}

/// Runs an agent, and returns the bodies that were sent to the provider, one per line.
fn sent(client: Client, preset: Option<Preset>) -> String {
    let provider = Provider::start(Options::default()).unwrap();
    let proxy = proxy_with_settings(&provider, &config(preset), "");
    let report = run_first(client, &proxy.url, TOOLS);
    let called = &report["turns"][0]["calls"][0];
    assert_eq!(called["name"], "weather__forecast", "{client:?} {preset:?}: {report}");
    assert_eq!(called["arguments"]["city"], "Oslo");
    let requests = provider.requests();
    let bodies = requests.iter().filter(|request| !request.path.contains("count_tokens"));
    bodies.map(|request| String::from_utf8(request.body.to_vec()).unwrap() + "\n").collect()
}

fn golden(client: Client, preset: Preset) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/sdk/golden");
    folder.join(preset.name().replace('@', "-")).join(format!("{client:?}.jsonl").to_lowercase())
}

fn compare(preset: Preset) {
    for client in [Client::Chat, Client::Responses, Client::Anthropic, Client::Gemini] {
        let sent = sent(client, Some(preset));
        let file = golden(client, preset);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &sent).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        let at = sent.lines().zip(expected.lines()).position(|(sent, expected)| sent != expected);
        let (file, lines) = (file.display(), (sent.lines().count(), expected.lines().count()));
        assert!(sent == expected, "{file} differs, first in line {at:?}, of {lines:?} lines");
    }
}

#[test]
fn default() {
    compare(Preset::Default);
}

#[test]
fn everruns() {
    compare(Preset::Everruns);
}

#[test]
fn everruns_050() {
    compare(Preset::Everruns050);
}

#[test]
fn hermes() {
    compare(Preset::Hermes);
}

#[test]
fn opencode() {
    compare(Preset::Opencode);
}

#[test]
fn claude_code() {
    compare(Preset::ClaudeCode);
}

/// Checks that the golden files differ from each other, and that requests without a `preset` line equal those of the
/// default preset. So the other tests would fail if the line had no effect.
#[test]
fn each_preset_sends_different_requests() {
    for client in [Client::Chat, Client::Responses, Client::Anthropic, Client::Gemini] {
        let without = sent(client, None);
        let mut texts = Vec::new();
        for preset in Preset::ALL.iter().copied().filter(|preset| *preset != Preset::Words) {
            let expected = fs::read_to_string(golden(client, preset)).unwrap();
            assert_eq!(without == expected, preset == Preset::Default, "{client:?} {preset}");
            texts.push(expected);
        }
        let all = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), all, "{client:?}");
    }
}
