//! Tests of what the model sees, turn by turn.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::{
    Catalog, Conversation, Crib, DefinitionFormat, Disclosure, Scope, Settings, TurnContext,
};

use crate::support::{Chat, crib_with, lines, office, strings, tool};

pub(crate) fn show(chat: &mut Chat<'_>) -> Arc<Disclosure> {
    chat.crib.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation)
}

fn parsed(disclosure: &Disclosure) -> Vec<Value> {
    let definitions = disclosure.definitions(DefinitionFormat::Own);
    definitions.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn shown_names(disclosure: &Disclosure) -> Vec<String> {
    parsed(disclosure).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Sixteen tools that are so large that deferring them saves tokens.
pub(crate) fn sixteen_tools() -> Vec<Value> {
    let schema = strings(&["alpha", "beta", "gamma", "delta"], 2);
    let description = "Does a thing with many words to say about it.";
    (0..16).map(|i| tool(&format!("s__t{i}"), description, &schema)).collect()
}

#[test]
fn the_bridge_is_three_tools_that_never_change() {
    let crib = crib_with(&office(), "[defer]\nnever = ['mail__send']\n");
    let mut chat = Chat::new(&crib);
    let first = show(&mut chat);
    assert_eq!(shown_names(&first), ["mail__send", "tool_search", "tool_describe", "tool_call"]);
    assert_eq!(parsed(&first)[0], office()[5], "a tool that is never deferred is unchanged");
    chat.search("select:github__create_issue,slack__post_message");
    chat.runs("mail__delete_message", r#"{"id":"1"}"#);
    assert_eq!(
        show(&mut chat).definitions(DefinitionFormat::Chat),
        first.definitions(DefinitionFormat::Chat)
    );
    assert!(first.own_tools[0].description.contains("- github__create_issue: \"Open a new issue"));
    assert!(
        first.instruction.as_ref().unwrap().contains("Do not say that a capability is missing")
    );
}

#[test]
fn reveal_stubs_every_schema_and_restores_loaded_ones() {
    let crib = crib_with(&office(), "disclosure = 'reveal'\n");
    let mut chat = Chat::new(&crib);
    let first = parsed(&show(&mut chat));
    assert_eq!(first.len(), 9);
    let stub = json!({"type": "object", "properties": {}, "additionalProperties": true});
    assert_eq!(first[0]["input_schema"], stub);
    assert_eq!(
        (&first[0]["name"], &first[0]["description"]),
        (&office()[0]["name"], &office()[0]["description"])
    );
    chat.search("select:github__create_issue");
    let second = parsed(&show(&mut chat));
    assert_eq!(second[0], office()[0], "a loaded tool has its full definition at its old position");
    assert_eq!(second[1..], first[1..]);
}

#[test]
fn a_stub_can_name_the_query_that_loads_it() {
    let crib = crib_with(&office(), "disclosure = 'reveal'\nstub = 'hint'\n");
    let first = parsed(&show(&mut Chat::new(&crib)));
    assert_eq!(
        first[0]["input_schema"]["description"],
        "Not loaded: call tool_search with the query github__create_issue first."
    );
}

#[test]
fn terse_keeps_parameters_and_withholds_descriptions() {
    let crib = crib_with(&office(), "disclosure = 'terse'\n[search]\nregex = true\n");
    let first = parsed(&show(&mut Chat::new(&crib)));
    assert_eq!(first[0]["description"], "[d]");
    assert_eq!(first[0]["input_schema"], office()[0]["input_schema"]);
    assert_eq!(
        (&first[8]["name"], &first[9]["name"]),
        (&json!("tool_search"), &json!("tool_search_regex"))
    );
}

#[test]
fn append_adds_found_tools_at_the_end_in_order_of_discovery() {
    let crib = crib_with(&office(), "disclosure = 'append'\n");
    let mut chat = Chat::new(&crib);
    let input = Value::from(office()).to_string();
    let array =
        |shown: &Disclosure| crib.tools_json(shown, &input, DefinitionFormat::Own).into_owned();
    let mut arrays = vec![array(&show(&mut chat))];
    for name in ["slack__post_message", "github__create_issue", "mail__send"] {
        chat.search(&format!("select:{name}"));
        arrays.push(array(&show(&mut chat)));
    }
    for pair in arrays.windows(2) {
        let prefix = pair[0].strip_suffix(']').unwrap();
        assert!(pair[1].starts_with(prefix), "each array begins with the one before");
    }
    let last = show(&mut chat);
    assert_eq!(
        shown_names(&last),
        ["tool_search", "slack__post_message", "github__create_issue", "mail__send"]
    );
    assert!(
        last.own_tools[0].description.contains("slack__post_message"),
        "a loaded tool keeps its line in the listing"
    );
}

#[test]
fn a_stub_has_the_format_of_the_original_definition() {
    let s = strings(&["q"], 1);
    let cases = [
        (
            DefinitionFormat::Mcp,
            json!([{"name": "a", "inputSchema": s, "annotations": {"readOnlyHint": true}}]),
        ),
        (
            DefinitionFormat::Chat,
            json!([{"type": "function", "function": {"name": "a", "parameters": s, "strict": true}}]),
        ),
        (
            DefinitionFormat::Responses,
            json!([{"type": "function", "name": "a", "parameters": s, "strict": true, "x": 1}]),
        ),
        (
            DefinitionFormat::Gemini,
            json!([{"functionDeclarations": [{"name": "a", "parameters": s}]}]),
        ),
    ];
    let stub = json!({"type": "object", "properties": {}, "additionalProperties": true});
    let want = [
        json!({"name": "a", "inputSchema": stub, "annotations": {"readOnlyHint": true}}),
        json!({"type": "function", "function": {"name": "a", "parameters": stub, "strict": false}}),
        json!({"type": "function", "name": "a", "parameters": stub, "strict": false, "x": 1}),
        json!({"name": "a", "parametersJsonSchema": stub}),
    ];
    for ((shape, input), want) in cases.into_iter().zip(want) {
        let settings =
            Settings::from_toml("disclosure = 'reveal'\n[activation]\nmode = 'on'").unwrap();
        let crib = Crib::new(Catalog::from_json(input.to_string().as_bytes()).unwrap(), settings);
        let shown = show(&mut Chat::new(&crib));
        let definitions = shown.definitions(shape);
        assert_eq!(serde_json::from_str::<Value>(&definitions[0]).unwrap(), want);
        let own: Value = serde_json::from_str(&definitions[1]).unwrap();
        assert!(own.to_string().contains("tool_search"));
    }
}

#[test]
fn servers_that_connect_later_are_announced_and_the_prompt_is_unchanged() {
    let first = crib_with(&office()[..3], "");
    let mut chat = Chat::new(&first);
    let before = show(&mut chat);
    let all = crib_with(&office(), "");
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&all) };
    let after = show(&mut later);
    assert_eq!(after.definitions(DefinitionFormat::Own), before.definitions(DefinitionFormat::Own));
    assert_eq!(
        after.announcement.as_deref(),
        Some(
            "Deferred tools now available too: \"mail__delete_message\", \"mail__search_messages\", \"mail__send\", \"slack__post_message\", \"slack__search_messages\"."
        )
    );
    assert_eq!(show(&mut later).announcement, None, "announced once");
}

#[test]
fn a_tool_that_leaves_the_scope_is_removed_from_the_listing() {
    let crib = crib_with(&office(), "");
    let mut chat = Chat::new(&crib);
    assert!(show(&mut chat).own_tools[0].description.contains("slack__post_message"));
    chat.scope = Scope::named(crib.catalog(), ["mail__send", "mail__search_messages"]);
    let shown = show(&mut chat);
    assert!(!format!("{shown:?}").contains("slack"), "{shown:?}");
}

#[test]
fn without_changes_the_disclosure_is_identical() {
    for (kind, same) in [("bridge", true), ("terse", true), ("reveal", false), ("append", false)] {
        let crib = crib_with(&office(), &format!("disclosure = '{kind}'\n"));
        let mut chat = Chat::new(&crib);
        let before = show(&mut chat);
        assert!(Arc::ptr_eq(&before, &show(&mut chat)));
        chat.search("select:mail__send");
        assert_eq!(Arc::ptr_eq(&before, &show(&mut chat)), same, "after a reveal: {kind}");
    }
}

#[test]
fn weak_models_get_a_longer_instruction() {
    let crib = crib_with(&office(), "");
    let scope = Scope::all(crib.catalog());
    let instruction = |model| {
        let turn = TurnContext::new(&scope).with_model(model);
        crib.disclose(&turn, &mut Conversation::new()).instruction.clone().unwrap()
    };
    assert!(instruction(Some("qwen3-14b")).contains("Example:"));
    assert!(!instruction(Some("anthropic/claude-opus-5")).contains("Example:"));
    assert!(instruction(None).contains("Example:"));
}

#[test]
fn a_renamed_tool_is_shown_under_its_new_name() {
    let mut builder = Catalog::builder();
    for server in ["github", "slack"] {
        let text = lines(&[json!({"name": "search", "description": server, "inputSchema": {}})]);
        builder.add(
            toolcrib_core::ingest(text.as_bytes(), Some(server), &toolcrib_core::Limits::default())
                .unwrap(),
        );
    }
    let mut settings = Settings::from_toml("[activation]\nmode = 'on'").unwrap();
    settings.disclosure = DisclosureSetting::Reveal;
    let crib = Crib::new(builder.build(), settings);
    assert_eq!(shown_names(&show(&mut Chat::new(&crib)))[..2], ["github__search", "slack__search"]);
}

#[test]
fn a_tools_array_is_edited_and_foreign_fields_are_kept() {
    let s = strings(&["q"], 1);
    let on = "disclosure = 'reveal'\n[activation]\nmode = 'on'";
    let written = |input: &Value, shape: DefinitionFormat| -> Value {
        let input = input.to_string();
        let crib = Crib::new(
            Catalog::from_json(input.as_bytes()).unwrap(),
            Settings::from_toml(on).unwrap(),
        );
        let shown = show(&mut Chat::new(&crib));
        serde_json::from_str(&crib.tools_json(&shown, &input, shape)).unwrap()
    };
    let stub = json!({"type": "object", "properties": {}, "additionalProperties": true});
    let anthropic = json!([{"type": "web_search_20250305", "name": "web_search"}, {"name": "a", "input_schema": s}]);
    let got = written(&anthropic, DefinitionFormat::Anthropic);
    assert_eq!(got[0], anthropic[0], "the provider's own tool keeps its position");
    assert_eq!(got[1], json!({"name": "a", "input_schema": stub}));
    assert_eq!(got[2]["name"], "tool_search");
    let gemini = json!([{"functionDeclarations": [{"name": "a", "parametersJsonSchema": s}]}, {"googleSearch": {}, "type": "x"}]);
    let got = written(&gemini, DefinitionFormat::Gemini);
    assert_eq!(
        got[0],
        json!({"functionDeclarations": [{"name": "a", "parametersJsonSchema": stub}]})
    );
    assert_eq!(got[1], gemini[1]);
    assert_eq!(got[2]["functionDeclarations"][0]["name"], "tool_search");
    // The client's spelling of the key must be kept, and the other spelling must not be added.
    let snake = json!([{"function_declarations": [{"name": "a", "parameters_json_schema": s, "response_json_schema": {}}]}]);
    let got = written(&snake, DefinitionFormat::Gemini);
    assert_eq!(
        got[0]["function_declarations"][0],
        json!({"name": "a", "parameters_json_schema": stub, "response_json_schema": {}})
    );
    let namespace = json!([{"type": "namespace", "name": "crm", "description": "d", "tools": [{"type": "function", "name": "a", "parameters": s}]}]);
    let got = written(&namespace, DefinitionFormat::Responses);
    assert_eq!((&got[0]["name"], &got[0]["tools"][0]["parameters"]), (&json!("crm"), &stub));
}

#[test]
fn finding_a_tool_that_is_never_deferred_changes_nothing() {
    let crib =
        crib_with(&office(), "disclosure = 'append'\n[defer]\nnever = ['github__create_issue']\n");
    let mut chat = Chat::new(&crib);
    let before = show(&mut chat);
    chat.search("select:github__create_issue");
    let after = show(&mut chat);
    assert_eq!(after.definitions(DefinitionFormat::Own), before.definitions(DefinitionFormat::Own));
    assert_eq!(after.announcement, None);
}

#[test]
fn a_scope_of_another_catalog_contains_nothing() {
    let (small, large) = (crib_with(&office()[..2], ""), crib_with(&office(), ""));
    for (crib, other) in [(&small, &large), (&large, &small)] {
        let scope = Scope::all(other.catalog());
        let reply = crib.search(
            &TurnContext::new(&scope),
            &mut Conversation::new(),
            &toolcrib_core::SearchRequest::query("issue"),
        );
        assert_eq!(reply.hits.len(), 0);
        assert_eq!(
            crib.disclose(&TurnContext::new(&scope), &mut Conversation::new()).tools.len(),
            0
        );
    }
}

/// An announcement is a message, so it can be sent again. The prompt with the frozen listing must not change because of
/// it.
#[test]
fn late_tools_can_be_announced_again_and_the_prompt_is_unchanged() {
    let all = office();
    let (few, more) = (crate::support::crib(&all[..3]), crate::support::crib(&all));
    let mut chat = Chat::new(&few);
    let first = few.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation);
    let mut chat = Chat { conversation: chat.conversation, ..Chat::new(&more) };
    let mut show = |again: bool| {
        if again {
            chat.conversation.announce_again();
        }
        more.disclose(&TurnContext::new(&chat.scope), &mut chat.conversation)
    };
    let late = show(false);
    assert!(late.announcement.is_some() && show(false).announcement.is_none());
    let again = show(true);
    assert_eq!((&again.announcement, &again.own_tools), (&late.announcement, &first.own_tools));
}

/// Indentation of the input must not count as tokens, because no client sends it.
#[test]
fn indentation_costs_nothing() {
    let compact = serde_json::to_string(&office()).unwrap();
    let pretty = serde_json::to_string_pretty(&office()).unwrap();
    let cost = |text: &str, kind: &str| {
        let toml = format!("disclosure = '{kind}'\n[activation]\nmode = 'on'");
        let settings = Settings::from_toml(&toml).unwrap();
        let crib = Crib::new(Catalog::from_json(text.as_bytes()).unwrap(), settings);
        let scope = Scope::all(crib.catalog());
        let shown = crib.disclose(&TurnContext::new(&scope), &mut Conversation::new());
        (shown.tokens_before, shown.tokens_after)
    };
    for kind in ["bridge", "reveal", "terse", "append"] {
        assert_eq!(cost(&compact, kind), cost(&pretty, kind), "{kind}");
    }
}
