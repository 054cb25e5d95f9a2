//! Tests of reading the configurations of the opencode plugin and of the fork.

use serde_json::{Value, json};
use toolcrib_core::policy::{ActivationMode, Verdict, VerdictReason};
use toolcrib_core::{Conversation, Crib, Preset, Settings, TurnContext};

use super::{coding, descriptions, sent, show};
use crate::presets::{configured, warnings};
use crate::support::{Chat, catalog, strings, tool};

#[test]
fn the_plugin_alone_means_the_defaults() {
    for config in [
        json!({"plugin": ["opencode-tool-search"]}),
        json!({"plugin": ["other", ["opencode-tool-search@0.4.3", {}]]}),
        json!(["opencode-tool-search", {}]),
        json!({}),
    ] {
        assert_eq!(configured(Preset::Opencode, &config), Preset::Opencode.settings(), "{config}");
    }
    let settings = Preset::Opencode.settings();
    assert_eq!((settings.search.limit, &*settings.mark), (5, "[d]"));
    assert_eq!((settings.rank.bm25.k1, settings.rank.bm25.b), (0.9, 0.4));
    assert_eq!(settings.rules.never, []);
}

#[test]
fn the_plugin_entry_is_read_from_the_registry_and_from_a_path() {
    let kept = ["read", "write", "edit", "bash", "glob", "grep"];
    let toml = format!("preset = 'opencode'\n[defer]\nnever = {kept:?}");
    for plugin in ["opencode-tool-search", "file:///path/to/opencode-tool-search/dist/index.js"] {
        let config = json!({"plugin": [[plugin, {"alwaysLoad": kept}]]});
        assert_eq!(Preset::of_config(&config), Some(Preset::Opencode));
        let settings = Settings::from_toml(&toml).unwrap();
        assert_eq!(configured(Preset::Opencode, &config), settings, "{plugin}");
    }
}

#[test]
fn every_option_is_read() {
    let config = json!(["opencode-tool-search", {
        "alwaysLoad": ["read", "write", "edit", "bash"],
        "bm25": {"k1": 1.5, "b": 0.75},
        "searchLimit": 10,
        "deferDescription": "(search for me)",
    }]);
    assert_eq!(Preset::of_config(&config), Some(Preset::Opencode));
    let toml = "preset = 'opencode'\nmark = '(search for me)'\n\
        [rank.bm25]\nk1 = 1.5\nb = 0.75\n[search]\nlimit = 10\nmax_limit = 10\n\
        [defer]\nnever = ['read', 'write', 'edit', 'bash']";
    let settings = configured(Preset::Opencode, &config);
    assert_eq!(settings, Settings::from_toml(toml).unwrap());
    let crib = Crib::new(catalog(&coding()), settings);
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(descriptions(&shown, &["glob"]), ["(search for me)"]);
}

#[test]
fn a_number_out_of_range_is_clamped_with_a_warning() {
    for (options, told) in [
        (json!({"bm25": {"k1": 3}}), "`bm25.k1`: 3 is not within 0.5 to 2; using 2"),
        (json!({"bm25": {"k1": 0.1}}), "`bm25.k1`: 0.1 is not within 0.5 to 2; using 0.5"),
        (json!({"bm25": {"b": -1}}), "`bm25.b`: -1 is not within 0 to 1; using 0"),
        (json!({"bm25": {"b": 1.5}}), "`bm25.b`: 1.5 is not within 0 to 1; using 1"),
        (json!({"searchLimit": 0}), "`searchLimit`: 0 is not within 1 to 50; using 1"),
        (json!({"searchLimit": 99}), "`searchLimit`: 99 is not within 1 to 50; using 50"),
    ] {
        assert_eq!(warnings(Preset::Opencode, &options), [told]);
    }
    let config = json!({"searchLimit": 99, "bm25": {"k1": 3, "b": -1}});
    let settings = Preset::Opencode.configured(&config).unwrap().settings;
    assert_eq!(
        (settings.search.limit, settings.rank.bm25.k1, settings.rank.bm25.b),
        (50, 2.0, 0.0)
    );
}

#[test]
fn a_value_of_the_wrong_type_falls_back_to_the_default_with_a_warning() {
    for (options, told) in [
        (json!({"searchLimit": "many"}), "`searchLimit`: \"many\" is not a number; using 5"),
        (json!({"searchLimit": "10"}), "`searchLimit`: \"10\" is not a number; using 5"),
        (json!({"searchLimit": 5.5}), "`searchLimit`: 5.5 is not a whole number; using 5"),
        (json!({"bm25": {"k1": null}}), "`bm25.k1`: null is not a number; using 0.9"),
        (json!({"bm25": {"b": []}}), "`bm25.b`: [] is not a number; using 0.4"),
        (json!({"bm25": 1.5}), "`bm25`: 1.5 is not an object; using the defaults"),
        (json!({"deferDescription": 1}), "`deferDescription`: 1 is not a string; using `[d]`"),
        (json!({"alwaysLoad": "read"}), "`alwaysLoad`: \"read\" is not a list of names; ignored"),
        (json!({"alwaysLoad": [1]}), "`alwaysLoad.0`: 1 is not a name; ignored"),
        (
            json!({"limit": 3, "searchLimit": 5}),
            "`limit`: unknown and ignored; the known keys are `alwaysLoad`, `searchLimit`, `bm25`, \
             `deferDescription`",
        ),
        (json!("x"), "`(whole file)`: \"x\" is not a configuration; using the defaults"),
        (
            json!({"plugin": ["opencode-tool-search", {"searchLimit": 9}]}),
            "`plugin.1`: options are written with the name, [\"opencode-tool-search\", {…}]; ignored",
        ),
        (
            json!({"deferDescription": " "}),
            "`deferDescription`: \" \" is not 1 to 64 plain characters; using `[d]`",
        ),
        (json!(["opencode-tool-search", 5]), "`1`: 5 is not an object; using the defaults"),
        (
            json!({"plugin": [["opencode-tool-search", {"searchLimit": {}}]]}),
            "`plugin.0.1.searchLimit`: {} is not a number; using 5",
        ),
    ] {
        assert_eq!(warnings(Preset::Opencode, &options), [told]);
        let settings = Preset::Opencode.configured(&options).unwrap().settings;
        assert_eq!(settings, Preset::Opencode.settings(), "{options}");
    }
}

#[test]
fn without_the_plugin_nothing_is_deferred() {
    let config = json!({"plugin": ["some-other-plugin"]});
    assert_eq!(
        warnings(Preset::Opencode, &config),
        ["`plugin`: `opencode-tool-search` is not listed, so tool search is off"]
    );
    let settings = Preset::Opencode.configured(&config).unwrap().settings;
    assert_eq!(settings.activation.mode, ActivationMode::Off);
}

#[test]
fn the_forks_own_configuration_is_read() {
    let off = configured(Preset::Opencode, &json!({"toolSearch": {"enabled": false}}));
    assert_eq!(off.activation.mode, ActivationMode::Off);
    let config = json!({
        "toolSearch": {"enabled": true},
        "mcp": {"github": {"deferLoading": false}, "logs": {"deferLoading": true}},
    });
    assert_eq!(Preset::of_config(&config), Some(Preset::Opencode));
    let tools =
        [tool("github__get", "", &strings(&[], 0)), tool("logs__get", "", &strings(&[], 0))];
    let crib = Crib::new(catalog(&tools), configured(Preset::Opencode, &config));
    let sent = sent(&show(&mut Chat::new(&crib)));
    assert_eq!(sent.iter().filter(|tool| tool["name"] == "github__get").count(), 1);
    assert_eq!(sent.len(), 3, "`github__get` and the two search tools");
}

#[test]
fn an_invalid_value_in_the_forks_configuration_causes_a_warning() {
    for (config, told) in [
        (
            json!({"toolSearch": {"enabled": "no"}}),
            "`toolSearch.enabled`: \"no\" is neither true nor false; using true",
        ),
        (json!({"toolSearch": true}), "`toolSearch`: true is not an object; using the defaults"),
    ] {
        assert_eq!(warnings(Preset::Opencode, &config), [told]);
        let settings = Preset::Opencode.configured(&config).unwrap().settings;
        assert_eq!(settings.activation.mode, ActivationMode::On);
    }
}

#[test]
fn the_fork_is_not_the_plugin_and_a_file_without_either_is_off() {
    let off = |config: &Value| {
        let configured = Preset::Opencode.configured(config).unwrap();
        (configured.settings.activation.mode, configured.warnings[0].to_string())
    };
    let warning =
        "`plugin`: `opencode-tool-search` is not listed, so tool search is off".to_owned();
    let fork = json!({"plugin": ["opencode-tool-search-tool"]});
    assert_eq!(off(&fork), (ActivationMode::Off, warning.clone()));
    let whole = json!({"$schema": "https://opencode.ai/config.json", "model": "a/b", "mcp": {}});
    assert_eq!(off(&whole), (ActivationMode::Off, warning));
    for path in
        ["./plugins/opencode-tool-search.ts", "file:///a/opencode-tool-search/dist/index.js"]
    {
        let local = json!({"plugin": ["other", path]});
        assert_eq!(configured(Preset::Opencode, &local), Preset::Opencode.settings(), "{path}");
    }
    let list = json!(["opencode-tool-search", "other"]);
    assert_eq!(configured(Preset::Opencode, &list), Preset::Opencode.settings());
    let both = json!({"tools": {"tool_search": true}, "plugin": ["opencode-tool-search"]});
    assert_eq!(
        Preset::of_config(&both),
        Some(Preset::Opencode),
        "`plugin` decides, not the map of tools"
    );
}

#[test]
fn always_load_knows_opencodes_own_names() {
    let tools = [
        tool("dev__read_file", "Read a file.", &strings(&["path"], 1)),
        tool("dev__read_files", "Read files.", &strings(&["paths"], 1)),
        tool("ops__restart", "Restart a service.", &strings(&["name"], 1)),
    ];
    let config = json!({"plugin": [["opencode-tool-search", {"alwaysLoad": ["dev_read_file", "ops_restart"]}]]});
    let crib = Crib::new(catalog(&tools), configured(Preset::Opencode, &config));
    let chat = Chat::new(&crib);
    let shown = crib.disclose(&TurnContext::new(&chat.scope), &mut Conversation::new());
    let verdicts: Vec<_> = shown.tools.iter().map(|shown| shown.verdict.clone()).collect();
    let rule = |name: &str| Verdict::Full(VerdictReason::Rule(name.into()));
    assert_eq!(
        verdicts,
        [rule("dev_read_file"), Verdict::Deferred(VerdictReason::Active), rule("ops_restart")]
    );
}
