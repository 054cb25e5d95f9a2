//! Tests of modes that an API does not support: the log (once) and `doctor` report which mode is used instead.

use std::fs;
use std::process::Command;

use super::{Proxy, Setup, done};
use crate::behaviours::claude_code::session;

/// Configs, each with the notices that it causes.
const CASES: [(&str, &[&str]); 9] = [
    ("preset = 'default'", &[]),
    ("preset = 'hermes'", &[]),
    ("preset = 'everruns'", &[]),
    ("preset = 'claude-code'\n[activation]\nmode = 'off'", &[]),
    (
        "preset = 'claude-code'",
        &[
            "the LLM proxy cannot use `disclosure = \"reference\"` for clients of `chat` and `gemini`, because the API has \
             no such feature; it uses `append` instead",
        ],
    ),
    (
        "preset = 'everruns'\n[proxy]\nmode = 'hosted'",
        &[
            "the LLM proxy cannot use `proxy.mode = \"hosted\"` for clients of `chat` and `gemini`, because the API has no \
             such feature; it uses `bridge` instead",
        ],
    ),
    (
        "[[proxy.routes]]\nmodels = ['qwen*']\nurl = 'http://localhost:1'\napi = 'messages'\nspeaks = 'chat'\nmode = 'reference'",
        &[
            "the LLM proxy cannot use `proxy.routes.mode = \"reference\"` (route for `qwen*`) for clients of `messages`, \
             because the upstream's API, `chat`, has no such feature; it uses `append` instead",
        ],
    ),
    (
        "disclosure = 'hosted'\n[[proxy.routes]]\nmodels = ['qwen*']\nurl = 'http://localhost:1'\napi = 'messages'\nspeaks = 'chat'",
        &[
            "the LLM proxy cannot use `disclosure = \"hosted\"` for clients of `chat` and `gemini`, because the API has \
             no such feature; it uses `bridge` instead",
            "the LLM proxy cannot use `disclosure = \"hosted\"` (route for `qwen*`) for clients of `messages`, because \
             the upstream's API, `chat`, has no such feature; it uses `bridge` instead",
        ],
    ),
    (
        "disclosure = 'reference'\nreveals = false",
        &[
            "the LLM proxy cannot use `disclosure = \"reference\"` with `reveals = false`, because a reference loads the \
             tool; it uses `append` instead",
        ],
    ),
];

/// Returns the notices about the LLM proxy in a text, one per line.
fn notices(text: &str) -> Vec<&str> {
    let lines =
        text.lines().filter_map(|line| line.find("the LLM proxy cannot").map(|at| &line[at..]));
    lines.collect()
}

#[test]
fn a_mode_that_an_api_does_not_support_is_logged_once() {
    for (config, expected) in CASES {
        let mut proxy = Proxy::start(&Setup::file("toolcrib.toml", config), [done(), done()]);
        proxy.ask(&session());
        proxy.ask(&session());
        assert_eq!(notices(&proxy.replica.log()), expected, "{config}");
    }
}

#[test]
fn doctor_reports_a_mode_that_an_api_does_not_support() {
    for (config, expected) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolcrib.toml");
        fs::write(&file, config).unwrap();
        let doctor = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(["doctor", "--config"])
            .arg(&file)
            .env("HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path())
            .output()
            .unwrap();
        assert_eq!(notices(&String::from_utf8_lossy(&doctor.stdout)), expected, "{config}");
    }
}
