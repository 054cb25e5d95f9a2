//! docs/presets/everruns-0.50.md through the proxy.

use serde_json::{Value, json};

use super::{Proxy, Setup, call, done, first, found, names, search, strings, tool, warnings};

const STUB: &str = r#"{"type":"object","properties":{},"additionalProperties":true}"#;

/// So many tools of a server, one parameter each.
fn tools(count: usize) -> Vec<Value> {
    let with = |at: usize| {
        let words = format!("Reads gauge number {at}.");
        tool(&format!("plant__gauge_{at}"), &words, &["unit"], 1)
    };
    (0..count).map(with).collect()
}

fn release() -> Setup {
    Setup::preset("everruns@0.50", "")
}

fn configured(config: &Value) -> Setup {
    let capabilities = json!({"capabilities": [{"ref": "tool_search", "config": config}]});
    Setup::file("everruns.json", capabilities.to_string())
}

#[test]
fn a_stub_is_an_open_object_without_a_hint() {
    let seen = first(&release(), &tools(15));
    assert_eq!((seen.mode(), seen.why()), ("reveal", "15 tools, the threshold is 15; configured"));
    assert_eq!(seen.schema(0, "plant__gauge_0").to_string(), STUB);
    assert!(
        seen.description(0, "tool_search").contains("Load one with `tool_search`"),
        "said once"
    );
    assert_eq!(first(&release(), &tools(14)).mode(), "pass-through");
}

#[test]
fn a_conversation_that_deferred_goes_on_when_its_tools_become_fewer() {
    let mut proxy = Proxy::start(&release(), [search("gauge_3"), done(), done()]);
    proxy.ask(&tools(15));
    let seen = proxy.go_on(&tools(2));
    assert_eq!(seen.why(), "this conversation already defers; the conversation began so");
    assert_eq!(seen.schema(0, "plant__gauge_0").to_string(), STUB);
}

#[test]
fn reveals_last_as_long_as_the_history_shows_the_turn_that_found_them() {
    let ran = call("plant__gauge_7", &json!({"unit": "bar"}));
    let mut proxy = Proxy::start(&release(), [search("gauge_7"), ran, done(), done()]);
    proxy.ask(&tools(15));
    let seen = proxy.go_on(&tools(15));
    assert_eq!(*seen.schema(0, "plant__gauge_7"), strings(&["unit"], 1));
    // A client that compacts its history cuts that turn out.
    proxy.history = vec![json!({"role": "user", "content": "A gauge was read."})];
    let seen = proxy.send(&tools(15));
    assert_eq!(seen.schema(0, "plant__gauge_7").to_string(), STUB);
}

#[test]
fn a_tool_whose_call_failed_has_its_schema_from_then_on() {
    let wrong = call("plant__gauge_7", &json!({"unit": 5}));
    let mut proxy = Proxy::start(&release(), [wrong, done(), done()]);
    let seen = proxy.ask(&tools(15));
    assert!(seen.reply(1).contains(&strings(&["unit"], 1).to_string()), "{}", seen.reply(1));
    assert_eq!(*seen.schema(1, "plant__gauge_7"), strings(&["unit"], 1));
    assert_eq!(*proxy.go_on(&tools(15)).schema(0, "plant__gauge_7"), strings(&["unit"], 1));
}

#[test]
fn found_tools_get_their_schemas_unless_reveal_says_otherwise() {
    for (reveal, changes) in [("redefine", true), ("in_result", false)] {
        let setup = configured(&json!({"reveal": reveal}));
        let seen = Proxy::start(&setup, [search("gauge_7"), done()]).ask(&tools(15));
        assert!(seen.reply(1).contains(&strings(&["unit"], 1).to_string()), "{}", seen.reply(1));
        assert_eq!(seen.tools(1) != seen.tools(0), changes, "{reveal}");
    }
}

#[test]
fn in_result_does_not_go_with_bounded_and_bounds_have_ranges() {
    let setup =
        configured(&json!({"reveal": "in_result", "bounded": true, "max_active_tools": 500}));
    let told = [
        "`capabilities.tool_search.reveal`: `in_result` does not go with `bounded`, `redefine` is used",
        "`capabilities.tool_search.max_active_tools`: 500 is not within 1 to 128, 128 is used",
    ];
    assert_eq!(warnings(&setup), told);
    assert_eq!(first(&setup, &tools(3)).mode(), "append");
}

#[test]
fn bounded_shows_no_deferred_tool_before_it_was_found() {
    let mut three = tools(2);
    three.push(tool("bash", "Run a command.", &["command"], 1));
    let setup = configured(&json!({"bounded": true}));
    let seen = Proxy::start(&setup, [search("gauge_1"), done()]).ask(&three);
    assert_eq!(seen.names(0), ["bash", "tool_search"], "from the first tool on");
    assert!(!seen.sent[0].to_string().contains("gauge"), "and nothing names it");
    assert_eq!(seen.names(1), ["bash", "tool_search", "plant__gauge_1"]);
}

#[test]
fn bounded_keeps_the_tools_that_were_loaded_last() {
    let setup = configured(&json!({"bounded": true, "max_active_tools": 2}));
    let load = |names: &str| search(&format!("select:{names}"));
    let answers = [
        load("plant__gauge_1"),
        load("plant__gauge_2"),
        load("plant__gauge_3"),
        done(),
        load("plant__gauge_1"),
        load("plant__gauge_5,plant__gauge_6,plant__gauge_7"),
        done(),
    ];
    let mut proxy = Proxy::start(&setup, answers);
    let seen = proxy.ask(&tools(20));
    assert_eq!(seen.names(3), ["tool_search", "plant__gauge_2", "plant__gauge_3"]);
    let seen = proxy.go_on(&tools(20));
    assert_eq!(seen.names(0), ["tool_search", "plant__gauge_2", "plant__gauge_3"]);
    assert_eq!(seen.names(1), ["tool_search", "plant__gauge_3", "plant__gauge_1"], "it is back");
    // The first of a reply goes before the others of it.
    assert_eq!(seen.names(2), ["tool_search", "plant__gauge_6", "plant__gauge_5"]);
}

#[test]
fn bounded_counts_the_bytes_of_what_is_shown() {
    let mut all = vec![tool("plant__wide", &"x".repeat(800), &["unit"], 1)];
    all.extend(tools(3));
    let setup = configured(&json!({"bounded": true, "max_active_bytes": 1024}));
    let answers = [search("select:plant__gauge_0"), search("select:plant__wide"), done()];
    let seen = Proxy::start(&setup, answers).ask(&all);
    assert_eq!(seen.names(1), ["tool_search", "plant__gauge_0"]);
    assert_eq!(seen.names(2), ["tool_search", "plant__wide"], "the newest fits alone");
}

#[test]
fn bounded_searches_parameters_too_and_a_miss_names_sources() {
    let mut all = tools(20);
    all.push(tool("plant__valve", "Turns.", &["angle"], 1));
    let answers = found(&configured(&json!({"bounded": true})), &all, &["angle", "submarine"]);
    assert_eq!(names(&answers[0], "tools"), ["plant__valve"]);
    assert_eq!(answers[1]["available_sources"], json!([{"name": "plant", "tools": 21}]));
    assert_eq!(answers[1]["available_tools"], Value::Null);
}

#[test]
fn without_bounded_the_ranking_is_that_of_the_earlier_editions() {
    let mut all = tools(14);
    all.push(tool("plant__valve", "Turns a gauge_1 on.", &["angle"], 1));
    let queries = ["gauge_1", "turns", "gauge"];
    let now = found(&release(), &all, &queries);
    assert_eq!(now, found(&Setup::preset("everruns", ""), &all, &queries));
    assert_eq!(names(&now[0], "tools"), ["plant__gauge_1"]);
    assert_eq!((names(&now[1], "tools"), names(&now[2], "tools").len()), (vec!["plant__valve"], 8));
}

#[test]
fn threshold_and_allowlist_are_read_from_a_list_of_references() {
    let config = json!({"threshold": 20, "never_defer": ["gauge_3"], "reveal": "redefine"});
    let seen = first(&configured(&config), &tools(20));
    assert_eq!(seen.schema(0, "plant__gauge_4").to_string(), STUB, "known by the key `reveal`");
    assert_eq!(*seen.schema(0, "plant__gauge_3"), strings(&["unit"], 1));
    assert_eq!(first(&configured(&config), &tools(19)).mode(), "pass-through");
}

mod hosted {
    use super::*;

    const MESSAGES: &str = "/v1/messages";
    const RESPONSES: &str = "/v1/responses";

    /// `openai_tool_search` or `claude_tool_search`, before an upstream that has what `native` says.
    fn capability(native: &str) -> Setup {
        let mode = "hosted";
        let route = format!(
            "[[proxy.routes]]\nmodels = ['*']\nurl = 'URL'\nclient_key = true\nnative = {{ {native} }}"
        );
        Setup::preset("everruns@0.50", &format!("disclosure = '{mode}'\n{route}"))
    }

    fn messages(setup: &Setup, model: &str) -> super::super::Seen {
        let tool = |at: usize| {
            json!({
                "name": format!("plant__gauge_{at}"), "description": format!("Reads gauge number {at}."),
                "input_schema": strings(&["unit"], 1),
            })
        };
        let body = json!({
            "model": model, "max_tokens": 100, "tools": (0..20).map(tool).collect::<Vec<_>>(),
            "messages": [{"role": "user", "content": "Hello."}],
        });
        Proxy::start(setup, []).post(MESSAGES, &body)
    }

    fn responses(setup: &Setup, model: &str) -> super::super::Seen {
        let tool = |at: usize| {
            json!({
                "type": "function", "name": format!("plant__gauge_{at}"),
                "description": format!("Reads gauge number {at}."), "parameters": strings(&["unit"], 1),
            })
        };
        let tools: Vec<Value> = (0..20).map(tool).collect();
        let body = json!({"model": model, "input": "Hello.", "tools": tools});
        Proxy::start(setup, []).post(RESPONSES, &body)
    }

    #[test]
    fn the_hosted_capabilities_leave_the_search_to_the_provider() {
        let setup = capability("hosted = 'both'");
        let seen = messages(&setup, "claude-opus-5");
        assert_eq!(seen.mode(), "hosted");
        let kinds: Vec<_> = seen.tools(0).iter().filter_map(|tool| tool["type"].as_str()).collect();
        assert_eq!(kinds, ["tool_search_tool_bm25_20251119"]);
        let deferred = seen.tools(0).iter().filter(|tool| tool["defer_loading"] == true).count();
        assert_eq!(deferred, 20, "{}", seen.sent[0]);
        let seen = responses(&capability("hosted = 'openai'"), "gpt-5.4");
        assert_eq!(seen.mode(), "hosted");
        assert!(seen.tools(0).iter().any(|tool| tool["type"] == "tool_search"), "{}", seen.sent[0]);
    }

    #[test]
    fn everruns_own_file_asks_for_the_providers_search_by_name() {
        for (id, mode) in [
            ("tool_search", "reveal"),
            ("auto_tool_search", "reveal"),
            ("openai_tool_search", "bridge"),
            ("claude_tool_search", "bridge"),
        ] {
            let config = json!({"capabilities": [{"ref": id, "config": {}}]});
            let setup = Setup::file("everruns.json", config.to_string());
            let seen = first(&setup.flags(&["--preset", "everruns@0.50"]), &tools(20));
            // Chat Completions has no search of its own.
            assert_eq!(seen.mode(), mode, "{id}: {}", seen.why());
        }
    }

    #[test]
    fn other_transports_have_no_search_of_their_own() {
        let setup = capability("");
        let seen = first(&setup.clone().model("gpt-5.4"), &tools(20));
        assert_eq!(seen.mode(), "bridge", "Chat Completions: {}", seen.why());
        let seen = messages(&setup, "anthropic/claude-opus-5");
        assert_eq!(seen.mode(), "bridge", "a host of which nothing is known: {}", seen.why());
    }

    /// Hosts other than the providers' own are not trusted by a model's name, so the routes say which models
    /// have a search.
    #[test]
    fn automatic_search_is_the_providers_on_models_that_have_one_and_stubs_elsewhere() {
        let route = |models: &str, native: &str| {
            format!(
                "[[proxy.routes]]\nmodels = [{models}]\nurl = 'URL'\nclient_key = true\n\
                 native = {{ hosted = '{native}' }}\n"
            )
        };
        let routes = [
            route("'gpt-5.4', 'gpt-5.5*'", "openai"),
            route("'claude-opus-5'", "both"),
            route("'*'", "none"),
        ];
        let settings = format!("disclosure = 'hosted'\nfallback = 'reveal'\n{}", routes.concat());
        let setup = Setup::preset("everruns@0.50", &settings);
        for (model, mode) in
            [("gpt-5.4", "hosted"), ("gpt-5.5-pro", "hosted"), ("gpt-5.2", "reveal")]
        {
            assert_eq!(responses(&setup, model).mode(), mode, "{model}");
        }
        for (model, mode) in [("claude-opus-5", "hosted"), ("claude-3-7-sonnet", "reveal")] {
            assert_eq!(messages(&setup, model).mode(), mode, "{model}");
        }
    }

    #[test]
    fn openais_search_is_on_the_models_that_have_it_on_its_own_host() {
        let setup = Setup::preset("everruns@0.50", "disclosure = 'hosted'\nfallback = 'reveal'");
        let setup = setup.real_hosts();
        for (model, mode) in [
            ("gpt-5.4", "hosted"),
            ("gpt-5.5-pro", "hosted"),
            ("gpt-6-sol", "hosted"),
            ("gpt-5.4-nano", "reveal"),
            ("gpt-5.2", "reveal"),
            ("o3", "reveal"),
        ] {
            let seen = responses(&setup, model);
            assert_eq!(seen.mode(), mode, "{model}: {}", seen.why());
        }
        let seen = first(&setup.model("gpt-5.4"), &tools(20));
        assert_eq!(seen.mode(), "reveal", "Chat Completions: {}", seen.why());
    }

    #[test]
    fn anthropics_search_is_on_the_models_that_have_it_on_its_own_host() {
        let setup = Setup::preset("everruns@0.50", "disclosure = 'hosted'\nfallback = 'reveal'");
        let setup = setup.real_hosts();
        for (model, mode) in [
            ("claude-opus-4-5", "hosted"),
            ("claude-sonnet-4-6", "hosted"),
            ("claude-haiku-4-5", "hosted"),
            ("claude-fable-5", "hosted"),
            ("claude-opus-4", "reveal"),
            ("claude-3-7-sonnet", "reveal"),
        ] {
            let seen = messages(&setup, model);
            assert_eq!(seen.mode(), mode, "{model}: {}", seen.why());
        }
    }

    #[test]
    fn a_client_that_sends_defer_loading_itself_is_passed_untouched() {
        let setup = capability("hosted = 'both', references = true");
        let tools = json!([
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
            {"name": "get", "description": "Get it.", "input_schema": {"type": "object"}, "defer_loading": true},
        ]);
        let messages = json!([{"role": "user", "content": "Hello."}]);
        let body = json!({"model": "claude-opus-5", "max_tokens": 100, "tools": tools, "messages": messages});
        let seen = Proxy::start(&setup, []).post(MESSAGES, &body);
        assert_eq!((seen.mode(), seen.why()), ("bypass", "the client defers by itself"));
        assert!(seen.is_untouched());
    }
}
