//! The `opencode` preset, behaviour by behaviour: docs/presets/opencode.md names these tests.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::disclose::{SEARCH, SEARCH_REGEX};
use toolcrib_core::policy::{Mode, Reason};
use toolcrib_core::{
    Ask, Conversation, Crib, Disclosure, Outcome, Preset, Reply, Scope, Settings, Shape, Turn,
    Words,
};

use super::{configured, crib, warnings};
use crate::support::{Chat, catalog, names, strings, tool};

/// A coding agent's tools, and those of two servers.
fn coding() -> Vec<Value> {
    let tools = [
        ("read", "Read a file from disk.", "path"),
        ("write", "Write a file to disk.", "path"),
        ("edit", "Replace text in a file.", "path"),
        ("glob", "Find a file by the pattern of its name.", "pattern"),
        ("bash", "Run a shell command.", "command"),
        ("grep", "Search code by regular expression: the fastest code search.", "pattern"),
        ("ast_grep_search", "Match the syntax tree of code.", "rule"),
        ("lsp_hover", "Show the type of a symbol.", "symbol"),
        ("lsp_rename", "Rename a symbol everywhere.", "symbol"),
        ("github_list_issues", "List what is open in a repository.", "repo"),
        ("github_create_issue", "Report a bug in a repository.", "repo"),
        ("jenkins_start", "Start a job.", "job"),
        ("ci_status", "Tell whether the last build passed.", "branch"),
    ];
    let with = |(name, words, argument)| tool(name, words, &strings(&[argument], 1));
    tools.into_iter().map(with).collect()
}

fn opencode() -> Crib {
    crib(Preset::Opencode, &coding())
}

fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&Turn::new(&chat.scope), &mut chat.conversation)
}

fn sent(shown: &Disclosure) -> Vec<Value> {
    let definitions = shown.definitions(Shape::Own);
    definitions.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// The descriptions the model gets of these tools.
fn descriptions(shown: &Disclosure, names: &[&str]) -> Vec<String> {
    let sent = sent(shown);
    let of = |name: &&str| sent.iter().find(|tool| tool["name"] == **name).unwrap();
    names.iter().map(|name| of(name)["description"].as_str().unwrap().to_owned()).collect()
}

fn answer(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Answer(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// What a call of one of the search tools finds.
fn found(crib: &Crib, tool: &str, input: &str) -> Vec<String> {
    let reply = answer(Chat::new(crib).call(tool, input));
    names(&reply).into_iter().map(str::to_owned).collect()
}

// What the model sees.

#[test]
fn every_tool_is_deferred_from_the_first_one_on() {
    let one = crib(Preset::Opencode, &coding()[..1]);
    let shown = show(&mut Chat::new(&one));
    assert_eq!(shown.decision.reason, Reason::On);
    assert_eq!(descriptions(&shown, &["read"]), ["[d]"]);
}

#[test]
fn a_deferred_tool_keeps_its_slot_its_name_and_its_parameters_and_a_mark_for_a_description() {
    let crib = opencode();
    let shown = sent(&show(&mut Chat::new(&crib)));
    for (shown, came) in shown.iter().zip(coding()) {
        let mut expected = came;
        expected["description"] = "[d]".into();
        assert_eq!(*shown, expected);
    }
    assert_eq!(shown.len(), coding().len() + 2);
}

#[test]
fn a_tool_in_always_load_keeps_its_full_description() {
    let config = json!({"alwaysLoad": ["read", "bash"]});
    let crib = Crib::new(catalog(&coding()), configured(Preset::Opencode, &config));
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(
        descriptions(&shown, &["read", "write", "bash"]),
        ["Read a file from disk.", "[d]", "Run a shell command."]
    );
}

#[test]
fn both_search_tools_are_always_there_with_full_descriptions() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    let own: Vec<&str> = first.own.iter().map(|own| own.name).collect();
    assert_eq!(own, ["tool_search", "tool_search_regex"]);
    assert_eq!(
        descriptions(&first, &own),
        [
            "Finds tools whose description is cut to a mark, and returns it in full.",
            "Finds deferred tools by a pattern.",
        ]
    );
    chat.search("file");
    assert_eq!(show(&mut chat).own, first.own);
}

#[test]
fn the_search_tools_never_find_themselves() {
    let crib = opencode();
    assert!(found(&crib, SEARCH, r#"{"query": "tool_search"}"#).iter().all(|name| name != SEARCH));
    assert!(found(&crib, SEARCH_REGEX, r#"{"pattern": "^tool_search"}"#).is_empty());
}

#[test]
fn where_every_tool_is_always_loaded_nothing_is_added() {
    let config = json!({"alwaysLoad": ["*"]});
    let crib = Crib::new(catalog(&coding()), configured(Preset::Opencode, &config));
    let shown = show(&mut Chat::new(&crib));
    assert_eq!(shown.decision.reason, Reason::NothingToDefer);
    assert_eq!((shown.own.len(), &shown.instruction), (0, &None));
}

#[test]
fn the_system_prompt_sends_the_model_to_tool_search() {
    let crib = opencode();
    let scope = Scope::all(crib.catalog());
    let turn = Turn { model: Some("claude-sonnet-4-5"), ..Turn::new(&scope) };
    let shown = crib.disclose(&turn, &mut Conversation::new());
    let instruction = shown.instruction.as_ref().unwrap();
    for said in ["a mark", "get them from `tool_search` before the first use"] {
        assert!(instruction.contains(said), "{instruction}");
    }
    assert!(!instruction.contains(char::is_numeric), "no counts: they would break the cache");
}

#[test]
fn models_of_other_providers_are_told_not_to_call_before_they_have_searched() {
    let crib = opencode();
    let scope = Scope::all(crib.catalog());
    let told = |model| {
        let turn = Turn { model, ..Turn::new(&scope) };
        crib.disclose(&turn, &mut Conversation::new()).instruction.clone().unwrap()
    };
    let anthropic = told(Some("claude-sonnet-4-5"));
    assert!(!anthropic.contains("Never call"));
    for model in [Some("gpt-5.4"), Some("gemini-3-pro"), Some("qwen3-coder"), None] {
        let other = told(model);
        let more = other.strip_prefix(&anthropic).unwrap();
        assert!(
            more.starts_with(" Never call a tool described only by a mark before `tool_search`"),
            "{model:?}: {more}"
        );
    }
}

#[test]
fn what_is_sent_does_not_change_with_what_was_found() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    chat.search("github issues");
    assert_eq!(show(&mut chat), first);
}

// Searching.

#[test]
fn an_answer_has_full_descriptions_and_parameter_schemas() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let reply = answer(chat.call(SEARCH, r#"{"query": "syntax"}"#));
    assert_eq!(
        reply.for_model(),
        "### `ast_grep_search`\n\n> Match the syntax tree of code.\n\n```json\n\
         {\"type\":\"object\",\"properties\":{\"rule\":{\"type\":\"string\"}},\"required\":[\"rule\"]}\n\
         ```\n\n"
    );
}

#[test]
fn words_find_the_tools_that_have_them() {
    let crib = opencode();
    let file = found(&crib, SEARCH, r#"{"query": "file"}"#);
    assert_eq!(file, ["read", "write", "edit", "glob"]);
    assert_eq!(found(&crib, SEARCH, r#""file operations""#), file);
    let code = found(&crib, SEARCH, r#"{"query": "search code"}"#);
    assert_eq!(code, ["grep", "ast_grep_search"]);
    let issues = found(&crib, SEARCH, r#"{"query": "github issues"}"#);
    assert_eq!(issues, ["github_list_issues", "github_create_issue"]);
}

#[test]
fn a_pattern_finds_names_and_descriptions_in_any_case() {
    let crib = opencode();
    let github = found(&crib, SEARCH_REGEX, r#"{"pattern": "GitHub.*Issue"}"#);
    assert_eq!(github, ["github_create_issue", "github_list_issues"]);
    let lsp = found(&crib, SEARCH_REGEX, r#"{"pattern": "^lsp_"}"#);
    assert_eq!(lsp, ["lsp_hover", "lsp_rename"]);
    let builds = found(&crib, SEARCH_REGEX, r#"{"pattern": "jenkins|build"}"#);
    assert_eq!(builds, ["jenkins_start", "ci_status"]);
}

#[test]
fn a_pattern_reads_parameters_too_after_names_and_descriptions() {
    let crib = opencode();
    let patterns = found(&crib, SEARCH_REGEX, r#"{"pattern": "pattern"}"#);
    assert_eq!(patterns, ["glob", "grep"], "glob by its description, grep by its parameter");
}

#[test]
fn a_bad_pattern_and_one_without_a_match_are_answered() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    let bad = answer(chat.call(SEARCH_REGEX, r#"{"pattern": "("}"#));
    assert_eq!(
        bad.notes,
        ["The pattern cannot be used: unclosed group. \
             Use plain words with tool_search instead."]
    );
    let none = answer(chat.call(SEARCH_REGEX, r#"{"pattern": "^zzz"}"#));
    assert_eq!(none.notes, ["No tool matches the pattern."]);
}

#[test]
fn five_tools_are_returned_at_most() {
    let tools: Vec<Value> =
        (0..9).map(|i| tool(&format!("note_{i}"), "Note it.", &strings(&[], 0))).collect();
    let crib = crib(Preset::Opencode, &tools);
    for (tool, input) in [
        (SEARCH, r#"{"query": "note"}"#),
        (SEARCH, r#"{"query": "note", "limit": 9}"#),
        (SEARCH_REGEX, r#"{"pattern": "note"}"#),
        (SEARCH_REGEX, r#"{"pattern": "note", "limit": 9}"#),
    ] {
        let found = found(&crib, tool, input);
        assert_eq!(found, ["note_0", "note_1", "note_2", "note_3", "note_4"], "{tool} {input}");
    }
}

#[test]
fn the_score_is_bm25_with_k1_0_9_and_b_0_4_over_name_and_description() {
    // Four words and two, three on average; `mail` is in one of two tools, and twice.
    let crib = crib(
        Preset::Opencode,
        &[
            tool("mail_send", "Sends mail.", &strings(&["mail"], 0)),
            tool("fax", "Faxes.", &strings(&["mail"], 0)),
        ],
    );
    let rarity = (1.0_f32 + (2.0 - 1.0 + 0.5) / (1.0 + 0.5)).ln();
    let (k1, b) = (0.9_f32, 0.4);
    let expected = rarity * 2.0 * (k1 + 1.0) / (2.0 + k1 * (1.0 - b + b * 4.0 / 3.0));
    let reply = Chat::new(&crib).search("Mail!");
    assert_eq!(names(&reply), ["mail_send"], "the parameters are not searched");
    assert!((reply.hits[0].score - expected).abs() < 1e-6, "{} {expected}", reply.hits[0].score);
}

#[test]
fn a_weak_match_is_returned_and_a_part_of_a_word_is_none() {
    let crib = opencode();
    let reply = Chat::new(&crib).search("report a bug");
    assert_eq!(names(&reply)[0], "github_create_issue");
    let weakest = reply.hits.last().unwrap().score / reply.hits[0].score;
    assert!(reply.hits.len() == 5 && weakest < 0.2, "`a` alone is enough: {weakest}");
    assert!(found(&crib, SEARCH, r#"{"query": "git"}"#).is_empty());
}

#[test]
fn a_higher_k1_lets_repeated_words_count_for_more() {
    let tools = catalog(&[
        tool("a", "log log log log", &json!({})),
        tool("b", "log one two three", &json!({})),
    ]);
    let lead = |config: &Value| {
        let crib = Crib::new(tools.clone(), configured(Preset::Opencode, config));
        let scope = Scope::all(crib.catalog());
        let hits = crib.rank(&Words::plain("log", &crib.settings().limits), &scope, 2);
        hits[0].score / hits[1].score
    };
    let (vague, specific) = (json!({}), json!({"bm25": {"k1": 1.5}}));
    assert!(lead(&specific) > lead(&vague));
}

#[test]
fn an_empty_query_and_a_miss_list_the_names() {
    let crib = crib(Preset::Opencode, &coding()[..3]);
    let mut chat = Chat::new(&crib);
    let listed = "{\"available\":{\"names\":[\"edit\",\"read\",\"write\"]}}\n";
    assert_eq!(answer(chat.call(SEARCH, r#"{"query": ""}"#)).for_model(), listed);
    let miss = answer(chat.call(SEARCH, r#"{"query": "calendar"}"#)).for_model();
    let note = "Nothing matches \"calendar\". Try another word for it, or fewer words.\n";
    assert_eq!(miss, format!("{listed}{note}"));
}

#[test]
fn only_what_the_caller_may_use_is_found() {
    let crib = opencode();
    let mut chat = Chat::within(&crib, &["read", "bash"]);
    assert_eq!(names(&chat.search("file")), ["read"]);
    let ask = Ask { pattern: Some(".".into()), ..Ask::default() };
    assert_eq!(names(&chat.ask(&ask)), ["bash", "read"]);
}

#[test]
fn a_tool_that_is_gone_is_not_found_and_one_that_changed_is_found_as_it_is() {
    let mut tools = coding();
    tools.remove(1);
    tools[0]["input_schema"] = strings(&["uri"], 1);
    let crib = crib(Preset::Opencode, &tools);
    let reply = Chat::new(&crib).search("disk");
    assert_eq!(names(&reply), ["read"]);
    assert!(reply.hits[0].input_schema.as_ref().unwrap().get().contains("uri"));
}

#[test]
fn select_loads_by_name() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    assert_eq!(names(&chat.search("select:bash,read")), ["bash", "read"]);
}

// Calling.

#[test]
fn a_deferred_tool_that_is_called_directly_runs_with_the_arguments_as_written() {
    let crib = opencode();
    let mut chat = Chat::new(&crib);
    show(&mut chat);
    let arguments = r#"{ "command": "ls  -l" }"#;
    assert_eq!(chat.runs("bash", arguments), ("bash".into(), arguments.into()));
}

#[test]
fn a_call_without_arguments_never_reaches_a_tool_that_needs_some() {
    let crib = opencode();
    for input in ["", "{}", "null"] {
        let refusal = Chat::new(&crib).refused("bash", input);
        let schema = refusal.input_schema.unwrap();
        assert_eq!(schema.get(), crib.catalog().tools()[4].schema(), "{input:?}");
    }
}

// Configuration.

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
fn a_number_out_of_range_is_clamped_and_said() {
    for (options, told) in [
        (json!({"bm25": {"k1": 3}}), "`bm25.k1`: 3 is not within 0.5 to 2, 2 is used"),
        (json!({"bm25": {"k1": 0.1}}), "`bm25.k1`: 0.1 is not within 0.5 to 2, 0.5 is used"),
        (json!({"bm25": {"b": -1}}), "`bm25.b`: -1 is not within 0 to 1, 0 is used"),
        (json!({"bm25": {"b": 1.5}}), "`bm25.b`: 1.5 is not within 0 to 1, 1 is used"),
        (json!({"searchLimit": 0}), "`searchLimit`: 0 is not within 1 to 50, 1 is used"),
        (json!({"searchLimit": 99}), "`searchLimit`: 99 is not within 1 to 50, 50 is used"),
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
fn a_value_of_the_wrong_kind_falls_back_to_the_default_and_is_said() {
    for (options, told) in [
        (json!({"searchLimit": "many"}), "`searchLimit`: \"many\" is not a number, 5 is used"),
        (json!({"searchLimit": "10"}), "`searchLimit`: \"10\" is not a number, 5 is used"),
        (json!({"searchLimit": 5.5}), "`searchLimit`: 5.5 is not a whole number, 5 is used"),
        (json!({"bm25": {"k1": null}}), "`bm25.k1`: null is not a number, 0.9 is used"),
        (json!({"bm25": {"b": []}}), "`bm25.b`: [] is not a number, 0.4 is used"),
        (json!({"bm25": 1.5}), "`bm25`: 1.5 is not an object, the defaults are used"),
        (json!({"deferDescription": 1}), "`deferDescription`: 1 is not a text, `[d]` is used"),
        (
            json!({"alwaysLoad": "read"}),
            "`alwaysLoad`: \"read\" is not a list of names, none is used",
        ),
        (json!({"alwaysLoad": [1]}), "`alwaysLoad.0`: 1 is no name, left out"),
        (
            json!({"limit": 3, "searchLimit": 5}),
            "`limit`: not known, left out; known are `alwaysLoad`, `searchLimit`, `bm25`, \
             `deferDescription`",
        ),
        (json!("x"), "`(all of it)`: \"x\" is no configuration, the defaults are used"),
        (
            json!({"plugin": ["opencode-tool-search", {"searchLimit": 9}]}),
            "`plugin.1`: options stand beside the name, [\"opencode-tool-search\", {…}]; left out",
        ),
        (
            json!({"deferDescription": " "}),
            "`deferDescription`: \" \" is not 1 to 64 plain characters, `[d]` is used",
        ),
        (json!(["opencode-tool-search", 5]), "`1`: 5 is not an object, the defaults are used"),
        (
            json!({"plugin": [["opencode-tool-search", {"searchLimit": {}}]]}),
            "`plugin.0.1.searchLimit`: {} is not a number, 5 is used",
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
        ["`plugin`: `opencode-tool-search` is not among them: it is off"]
    );
    let settings = Preset::Opencode.configured(&config).unwrap().settings;
    assert_eq!(settings.activation.mode, Mode::Off);
}

// The fork.

#[test]
fn in_the_fork_a_tool_is_hidden_until_it_is_found() {
    let settings = configured(Preset::Opencode, &json!({"toolSearch": {"alwaysLoad": ["read"]}}));
    let toml = "preset = 'opencode'\ndisclosure = 'append'\n[listing]\nform = 'none'\n\
        [defer]\nnever = ['read']";
    assert_eq!(settings, Settings::from_toml(toml).unwrap());
    let crib = Crib::new(catalog(&coding()), settings);
    let mut chat = Chat::new(&crib);
    let sent_names = |shown: &Disclosure| -> Vec<String> {
        sent(shown).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = show(&mut chat);
    assert_eq!(sent_names(&first), ["read", "tool_search", "tool_search_regex"]);
    assert!(!first.own[0].description.contains("bash"), "nor does a listing name it");
    chat.search("shell");
    let second = show(&mut chat);
    assert_eq!(sent_names(&second), ["read", "tool_search", "tool_search_regex", "bash"]);
    assert_eq!(sent(&second)[3], coding()[4]);
}

#[test]
fn the_forks_own_configuration_is_read() {
    let off = configured(Preset::Opencode, &json!({"toolSearch": {"enabled": false}}));
    assert_eq!(off.activation.mode, Mode::Off);
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
    assert_eq!(sent.len(), 3, "and the two search tools");
}

#[test]
fn a_bad_value_in_the_forks_configuration_is_said() {
    for (config, told) in [
        (
            json!({"toolSearch": {"enabled": "no"}}),
            "`toolSearch.enabled`: \"no\" is neither true nor false, true is used",
        ),
        (json!({"toolSearch": true}), "`toolSearch`: true is not an object, the defaults are used"),
    ] {
        assert_eq!(warnings(Preset::Opencode, &config), [told]);
        let settings = Preset::Opencode.configured(&config).unwrap().settings;
        assert_eq!(settings.activation.mode, Mode::On);
    }
}

#[test]
fn the_fork_is_not_the_plugin_and_a_file_without_either_is_off() {
    let off = |config: &Value| {
        let configured = Preset::Opencode.configured(config).unwrap();
        (configured.settings.activation.mode, configured.warnings[0].to_string())
    };
    let told = "`plugin`: `opencode-tool-search` is not among them: it is off".to_owned();
    let fork = json!({"plugin": ["opencode-tool-search-tool"]});
    assert_eq!(off(&fork), (Mode::Off, told.clone()));
    let whole = json!({"$schema": "https://opencode.ai/config.json", "model": "a/b", "mcp": {}});
    assert_eq!(off(&whole), (Mode::Off, told));
    for path in
        ["./plugins/opencode-tool-search.ts", "file:///a/opencode-tool-search/dist/index.js"]
    {
        let local = json!({"plugin": ["other", path]});
        assert_eq!(configured(Preset::Opencode, &local), Preset::Opencode.settings(), "{path}");
    }
    let list = json!(["opencode-tool-search", "other"]);
    assert_eq!(configured(Preset::Opencode, &list), Preset::Opencode.settings());
    let both = json!({"tools": {"tool_search": true}, "plugin": ["opencode-tool-search"]});
    assert_eq!(Preset::of_config(&both), Some(Preset::Opencode), "it has a map of tools as well");
}
