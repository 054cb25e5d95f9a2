//! Tests of presets on the command line, and of the config files of other systems.

use serde_json::Value;

use crate::{file, toolcrib};

/// Returns the reason why tools are deferred or not under a config, and the warnings about the config.
fn decided(name: &str, text: &str, more: &[&str]) -> (String, String) {
    let config = file(name, text);
    let run = toolcrib(&[&["stats", "--json", "--config", &config], more].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let stderr = run.err.replace(&config, "FILE");
    (run.json()["reason"].as_str().unwrap().to_owned(), stderr)
}

fn found(args: &[&str]) -> Vec<String> {
    let reply = toolcrib(&[&["search", "--json"], args].concat()).json();
    let hits = reply["hits"].as_array().unwrap().iter();
    hits.map(|hit| hit["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_hermes_config_is_read_unchanged() {
    let yaml = "\
# Hermes' own file, with what it says about other things.
model: some/model
tools:
  tool_search:
    enabled: auto       # auto (default), on, or off
    threshold_pct: 10   # percentage of context
    search_default_limit: 2
    max_search_limit: 20
";
    let (reason, printed) = decided("hermes.yaml", yaml, &[]);
    assert_eq!(
        reason,
        "50754 tokens of tools, the threshold is 20000 (10 % of the 200000-token context window)"
    );
    assert_eq!(printed, "note: reading `FILE` as a configuration of hermes\n");
    let config = file("hermes.yaml", yaml);
    assert_eq!(found(&["--config", &config, "create an issue"]).len(), 2);
}

/// The file also contains keys that have nothing to do with tools, and things that stricter YAML parsers reject, such
/// as a duplicate key. Hermes' parser accepts them.
#[test]
fn unrelated_keys_in_a_file_are_ignored() {
    let yaml = "\u{feff}ratio: .inf\nmodel: a\nmodel: b\ntools:\n  tool_search:\n    threshold_pct: .nan\n";
    let (reason, printed) = decided("odd.yaml", yaml, &["--preset", "hermes"]);
    assert_eq!(
        reason,
        "50754 tokens of tools, the threshold is 20000 (10 % of the 200000-token context window)"
    );
    let warning = "`tools.tool_search.threshold_pct`: \".nan\" is not a number; using 10";
    assert_eq!(printed, format!("warning: `FILE`: {warning}\n"));
}

/// The tools in a request to a model belong to the agent, whatever the name of the file. The tools in a server's list
/// belong to the server that the file is named after.
#[test]
fn core_tools_stay_in_full_whatever_the_file_is_called() {
    let request = r#"[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{}}},
                      {"type":"function","function":{"name":"acme__run","description":"Runs.","parameters":{}}}]"#;
    let mixed = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"b"}]}"#;
    let run = toolcrib(&["stats", "--json", "--catalog", &file("files.json", mixed)]);
    assert_eq!(
        run.json()["servers"][0]["server"],
        "files",
        "a server's list is named after its file"
    );
    let catalog = file("agent_request.json", request);
    let config = file("on.yaml", "tools:\n  tool_search:\n    enabled: on\n");
    let run = toolcrib(&["stats", "--json", "--catalog", &catalog, "--config", &config]);
    let servers: Vec<Value> = run.json()["servers"].as_array().unwrap().clone();
    let names: Vec<&str> = servers.iter().map(|s| s["server"].as_str().unwrap()).collect();
    assert_eq!(names, ["acme", "(none)"]);
    let args = ["explain", "--catalog", &catalog, "--config", &config, "read", "read_file"];
    assert!(toolcrib(&args).out.contains("`read_file` is not ranked"));
}

#[test]
fn hermes_flags_are_read_as_its_own_parser_reads_them() {
    for (value, reason) in [
        (
            "true",
            "50754 tokens of tools, the threshold is 20000 (10 % of the 200000-token context window)",
        ),
        (
            "on",
            "50754 tokens of tools, the threshold is 20000 (10 % of the 200000-token context window)",
        ),
        ("off", "tool search is off"),
        ("false", "tool search is off"),
        ("{enabled: on}", "tool search is on"),
        ("{enabled: no}", "tool search is off"),
    ] {
        let yaml = format!("tools:\n  tool_search: {value}\n");
        let decision = decided("flag.yml", &yaml, &["--preset", "hermes"]);
        assert_eq!(decision, (reason.to_owned(), String::new()), "{value}");
    }
}

#[test]
fn invalid_values_are_handled_as_in_that_system_with_a_warning() {
    let yaml = "tools:\n  tool_search:\n    enabled: sometimes\n    threshold_pct: 250\n    max_search_limit: 0\n    treshold: 1\n";
    let (reason, printed) = decided("bad.yaml", yaml, &[]);
    assert_eq!(reason, "below the thresholds");
    assert_eq!(
        printed,
        "\
note: reading `FILE` as a configuration of hermes
warning: `FILE`: `tools.tool_search.treshold`: unknown and ignored; the known keys are `enabled`, `threshold_pct`, `search_default_limit`, `max_search_limit`
warning: `FILE`: `tools.tool_search.enabled`: \"sometimes\" is not one of `auto`, `on`, `off`; using `auto`
warning: `FILE`: `tools.tool_search.threshold_pct`: 250 is not within 0 to 100; using 100
warning: `FILE`: `tools.tool_search.max_search_limit`: 0 is not within 1 to 50; using 1
"
    );
}

#[test]
fn everruns_config_is_read_both_ways() {
    let everruns = ["--preset", "everruns"];
    let (reason, printed) = decided("list.json", r#"{"capabilities": ["tool_search"]}"#, &everruns);
    assert_eq!((reason.as_str(), printed.as_str()), ("272 tools, the threshold is 15", ""));
    let object =
        r#"{"capabilities": {"tool_search": {"threshold": 300, "never_defer": ["bash"]}}}"#;
    let (reason, printed) = decided("object.json", object, &everruns);
    assert_eq!((reason.as_str(), printed.as_str()), ("below the thresholds", ""));
}

#[test]
fn opencode_jsonc_is_read_with_its_comments() {
    let jsonc = r#"{
  // The plugin, with its options.
  "plugin": [
    "something-else",
    ["opencode-tool-search@1.2.0", {
      "alwaysLoad": ["read", "write"], /* never cut */
      "searchLimit": 2,
    }],
  ],
}"#;
    let config = file("opencode.jsonc", jsonc);
    let hits = found(&["--config", &config, "create github issue"]);
    assert_eq!(hits, ["github__create_issue", "github__add_issue_comment"]);
    let (reason, printed) = decided("opencode.jsonc", jsonc, &["--preset", "opencode"]);
    assert_eq!((reason.as_str(), printed.as_str()), ("tool search is on", ""));
}

#[test]
fn claude_code_settings_are_read() {
    for (value, reason) in [
        ("true", "tool search is on"),
        ("false", "tool search is off"),
        (
            "auto",
            "50754 tokens of tools, the threshold is 20000 (10 % of the 200000-token context window)",
        ),
        ("auto:90", "below the thresholds"),
    ] {
        let json = format!(r#"{{"env": {{"ENABLE_TOOL_SEARCH": "{value}"}}}}"#);
        let decision = decided("settings.json", &json, &["--preset", "claude-code"]);
        assert_eq!(decision, (reason.to_owned(), String::new()), "{value}");
    }
}

#[test]
fn our_own_config_can_name_a_preset_and_override_it() {
    let toml = "preset = 'everruns'\n[activation]\ntools = 300\n";
    let config = file("preset.toml", toml);
    assert_eq!(decided("preset.toml", toml, &[]).0, "below the thresholds");
    let first = found(&["--config", &config, "create an issue"]);
    assert_eq!(first.len(), 8, "other settings are those of everruns: {first:?}");
    let hermes = found(&["--config", &config, "--preset", "hermes", "create an issue"]);
    assert_eq!(hermes.len(), 5, "the command line has precedence");
}

#[test]
fn files_of_no_known_system_are_input_errors_with_a_hint() {
    // Each line contains the previous line nine times, so the document is huge when its aliases are expanded.
    let line =
        |i: usize| format!("a{}: &a{} [{}]", i + 1, i + 1, vec![format!("*a{i}"); 9].join(", "));
    let bomb: Vec<String> = (0..8).map(line).collect();
    let bomb = format!("a0: &a0 [x, x, x, x, x, x, x, x, x]\n{}\n", bomb.join("\n"));
    for (name, text, problem, hint) in [
        ("nobody.json", "{\"a\": 1}", "not a configuration of a known system", "name the system"),
        ("broken.yaml", "tools: [", "at line 1, column 8", "must be YAML"),
        ("two.yaml", "a: 1\n---\nb: 2\n", "more than one YAML document", "keep one document"),
        (
            "bomb.yaml",
            &bomb,
            "with aliases expanded",
            "keep only the settings about tools in the file",
        ),
        ("broken.jsonc", "{\"plugin\": ", "", "must be JSON"),
    ] {
        let config = file(name, text);
        let run = toolcrib(&["stats", "--json", "--config", &config]);
        assert_eq!(run.code, 2, "{run:?}");
        let error = run.json();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        assert!(text("error").contains(name) && text("error").contains(problem), "{error}");
        assert!(text("hint").contains(hint), "{error}");
        // The gateway and the proxy read YAML in the same way.
        let commands = [&["mcp", "--own"][..], &["serve", "--listen", "127.0.0.1:0"]];
        for command in commands.into_iter().filter(|_| name.contains(".yaml")) {
            let run = toolcrib(&[command, &["--config", &config]].concat());
            let is_told = run.err.contains(problem) && run.err.contains(hint);
            assert!(run.code == 2 && is_told, "{command:?}: {run:?}");
        }
    }
    let ours = file("ours.json", "{\"capabilities\": []}");
    let run = toolcrib(&["stats", "--config", &ours, "--preset", "words"]);
    assert_eq!((run.code, run.err.contains("the preset `words` has no configuration")), (2, true));
    let run = toolcrib(&["search", "--preset", "hermess", "x"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("hermes") && run.err.contains("hint:"), "{}", run.err);
}

/// Each preset has its own ranker. `explain` shows the numbers of that ranker, and they must add up to the score.
#[test]
fn explain_shows_each_rankers_own_numbers() {
    for (preset, score) in [("everruns", 9.0), ("hermes", 0.0), ("opencode", 0.0)] {
        let run = toolcrib(&["explain", "--json", "--preset", preset, "create github issue"]);
        let first: &Value = &run.json()["tools"][0];
        assert_eq!(first["name"], "github__create_issue", "{preset}");
        let words = first["words"].as_array().unwrap();
        let sum: f64 = words.iter().map(|word| word["points"].as_f64().unwrap()).sum();
        let total = first["score"].as_f64().unwrap();
        assert!((sum - total).abs() < 1e-4 && words.len() == 3, "{preset}: {first}");
        assert!(score == 0.0 || (total - score).abs() < 1e-6, "{preset}: {first}");
    }
}

/// A preset's maximum number of results also applies in `eval`, although `eval` measures only the ranking.
#[test]
fn eval_measures_every_presets_ranking() {
    for (preset, most) in [("everruns", 8), ("hermes", 10), ("opencode", 10), ("claude-code", 10)] {
        let out = file("preset-run.jsonl", "");
        let run =
            toolcrib(&["eval", "--json", "--preset", preset, "--run-file", &out, crate::sample()]);
        assert_eq!(run.json()["preset"], preset);
        let lines = std::fs::read_to_string(&out).unwrap();
        let ranked = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["ranked"].as_array().unwrap().len()
        };
        assert_eq!(lines.lines().map(ranked).max(), Some(most), "{preset}");
    }
}
