//! Tests of presets in the four APIs: the first request that is sent, and how invalid calls are answered.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::{FourCharsPerToken, Preset, Settings};
use toolcrib_dialect::capability::CapabilityOverrides;
use toolcrib_dialect::exchange::action::ExchangeConfig;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset};

const APIS: [(Api, &str); 4] = [
    (Api::Chat, "/v1/chat/completions"),
    (Api::Responses, "/v1/responses"),
    (Api::Messages, "/v1/messages"),
    (Api::Gemini, "/v1beta/models/gemini-2.5-pro:generateContent"),
];

fn name(at: usize) -> String {
    format!("office__make_report_{at}")
}

/// Returns `count` tools in the form of an API.
fn tools(api: Api, count: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"month": {"type": "string",
        "description": "The month that the report is about."}}, "required": ["month"]});
    let about = "Makes the report of one month, as it is sent to the board of the company.";
    let plain = (0..count).map(|at| json!({"name": name(at), "description": about}));
    match api {
        Api::Chat => plain
            .map(|mut tool| {
                tool["parameters"] = schema.clone();
                json!({"type": "function", "function": tool})
            })
            .collect(),
        Api::Responses => plain
            .map(|mut tool| {
                (tool["type"], tool["parameters"]) = (json!("function"), schema.clone());
                tool
            })
            .collect(),
        Api::Messages => plain
            .map(|mut tool| {
                tool["input_schema"] = schema.clone();
                tool
            })
            .collect(),
        Api::Gemini => {
            let declared: Value = plain
                .map(|mut tool| {
                    tool["parameters"] = schema.clone();
                    tool
                })
                .collect();
            json!([{"functionDeclarations": declared}])
        }
    }
}

fn body(api: Api, tools: &Value) -> Value {
    let user_text = "Make the report of May.";
    match api {
        Api::Chat => json!({"model": "m", "tools": tools, "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": user_text}]}),
        Api::Responses => json!({"model": "m", "tools": tools, "input": user_text}),
        Api::Messages => json!({"model": "m", "max_tokens": 9, "tools": tools, "messages": [
            {"role": "user", "content": [{"type": "text", "text": user_text}]}]}),
        Api::Gemini => {
            json!({"tools": tools, "contents": [{"role": "user", "parts": [{"text": user_text}]}]})
        }
    }
}

/// Returns the first request that is sent, and a text with the chosen mode and the reason for it.
fn sent(
    (api, target): (Api, &str),
    body: &Value,
    settings: &Settings,
    requested: impl Into<RequestedMode>,
) -> (Value, String) {
    let (sent, report) =
        bytes_sent((api, target), body, settings, requested, CapabilityOverrides::default());
    (serde_json::from_str(&sent).unwrap(), report)
}

/// Like `sent`, but returns the request as raw text. `native` sets the native features that the upstream supports.
fn bytes_sent(
    (api, target): (Api, &str),
    body: &Value,
    settings: &Settings,
    requested: impl Into<RequestedMode>,
    native: CapabilityOverrides,
) -> (String, String) {
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    setup.upstream.overrides = Some(native);
    (setup.settings, setup.requested) = (Arc::new(settings.clone()), requested.into());
    let request = Request::read(api, target, body.to_string().into_bytes());
    let mut exchange = Exchange::new(api, target, request, setup);
    loop {
        match exchange.next_action().expect("an action") {
            Action::LoadRecords(keys) => exchange.records_loaded(vec![None; keys.len()]),
            Action::PrepareToolset(plan) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.toolset_prepared(Arc::new(toolset));
            }
            Action::Send(outgoing) => {
                let report = exchange.report().to_string();
                return (String::from_utf8(outgoing.body.to_vec()).unwrap(), report);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn first_text(api: Api, sent: &Value) -> String {
    let text = match api {
        Api::Chat => &sent["messages"][1]["content"],
        Api::Responses => &sent["input"][0]["content"],
        Api::Messages => &sent["messages"][0]["content"][0]["text"],
        Api::Gemini => &sent["contents"][0]["parts"][0]["text"],
    };
    match text {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn claude_code_lists_names_in_the_first_message_in_every_mode() {
    let settings = Preset::ClaudeCode.settings();
    for (api, target) in APIS {
        let body = body(api, &tools(api, 40));
        for requested in
            [DisclosureSetting::Reference, DisclosureSetting::Append, DisclosureSetting::Bridge]
        {
            let (sent, report) = sent((api, target), &body, &settings, requested);
            let text = first_text(api, &sent);
            for at in 0..40 {
                assert!(text.contains(&name(at)), "{api:?} {requested:?} {at}: {text}");
            }
            assert!(!sent["tools"].to_string().contains(&name(7)), "{api:?} {requested:?}");
            let mode = if requested == DisclosureSetting::Bridge { "bridge" } else { "append" };
            assert!(report.starts_with(mode), "{report}");
            assert!(sent.to_string().contains("Make the report of May."));
        }
    }
}

/// The upstream supports references. Both APIs that have references are tested, with and without reveals.
#[test]
fn claude_code_lists_names_in_the_first_message_with_references() {
    let searches =
        CapabilityOverrides { client_search: Some(true), ..CapabilityOverrides::default() };
    let adds =
        CapabilityOverrides { additional_tools: Some(true), ..CapabilityOverrides::default() };
    let refers = CapabilityOverrides { references: Some(true), ..CapabilityOverrides::default() };
    for (at, native) in [(1, searches), (1, adds), (2, refers)] {
        let (api, target) = APIS[at];
        let body = body(api, &tools(api, 40));
        for (reveals, mode) in [(true, "reference: "), (false, "append: ")] {
            let mut settings = Preset::ClaudeCode.settings();
            settings.reveals = reveals;
            let endpoint = (api, target);
            let (sent, report) = bytes_sent(
                endpoint,
                &body,
                &settings,
                DisclosureSetting::Reference,
                native.clone(),
            );
            assert!(report.starts_with(mode), "{report}");
            let sent: Value = serde_json::from_str(&sent).unwrap();
            let text = first_text(api, &sent);
            assert!((0..40).all(|at| text.contains(&name(at))), "{text}");
            // In reference mode, Anthropic's API requires that `tools` also contains the deferred tools. OpenAI's API
            // does not.
            let deferred = sent["tools"].to_string().matches(r#""defer_loading":true"#).count();
            let expected = if reveals && api == Api::Messages { 40 } else { 0 };
            assert_eq!(deferred, expected, "{api:?}");
        }
    }
}

/// The conversation begins with only a system message. There is no user message to add the names to, so they are sent
/// in a message of their own, and they stay there when a user message follows.
#[test]
fn the_listed_names_stay_where_they_were_first_sent() {
    let settings = Preset::ClaudeCode.settings();
    let mut body = body(Api::Chat, &tools(Api::Chat, 40));
    body["messages"] = json!([{"role": "system", "content": "Greet the user."}]);
    let (first, _) = sent(APIS[0], &body, &settings, DisclosureSetting::Append);
    let before = first["messages"].as_array().unwrap();
    assert!(before[1]["content"].as_str().unwrap().contains(&name(7)));
    let more = [
        json!({"role": "assistant", "content": "Hello."}),
        json!({"role": "user", "content": "Make the report of May."}),
    ];
    body["messages"].as_array_mut().unwrap().extend(more);
    let (second, _) = sent(APIS[0], &body, &settings, DisclosureSetting::Append);
    assert_eq!(second["messages"].as_array().unwrap()[..2], before[..]);
    assert_eq!(second.to_string().matches(&name(7)).count(), 1);
}

#[test]
fn everruns_defers_from_fifteen_tools_even_if_it_saves_nothing() {
    let settings = Preset::Everruns.settings();
    for (api, target) in APIS {
        for (count, mode) in [(14, "pass-through"), (15, "reveal"), (18, "reveal"), (200, "reveal")]
        {
            let requested = settings.disclosure;
            let body = body(api, &tools(api, count));
            let (_, report) = sent((api, target), &body, &settings, requested);
            assert!(report.starts_with(mode), "{api:?} {count}: {report}");
        }
    }
}

#[test]
fn the_listing_respects_the_configured_size() {
    let list = |settings: &str| {
        let settings = Settings::from_toml(settings).unwrap();
        let body = body(Api::Chat, &tools(Api::Chat, 40));
        let (sent, _) = sent(APIS[0], &body, &settings, DisclosureSetting::Bridge);
        let described = sent["tools"][0]["function"]["description"].as_str().unwrap().to_owned();
        (0..40).filter(|at| described.contains(&format!("{}: ", name(*at)))).count()
    };
    assert_eq!(list(""), 0, "the listing has no room for descriptions");
    let wide = "[listing]\ntokens = 4000\n[activation]\nonly_if_saving = false";
    assert_eq!(list(wide), 40);
}

#[test]
fn the_hot_list_depends_on_the_preset() {
    let mut tools = tools(Api::Chat, 30);
    let bash = json!({"type": "function", "function": {"name": "bash", "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}});
    tools.as_array_mut().unwrap().push(bash.clone());
    let body = body(Api::Chat, &tools);
    for (preset, is_kept) in [
        (Preset::Default, true),
        (Preset::Words, true),
        (Preset::Everruns, false),
        (Preset::Opencode, false),
        (Preset::ClaudeCode, false),
    ] {
        let settings = preset.settings();
        let (sent, report) = sent(APIS[0], &body, &settings, settings.disclosure);
        let has = sent["tools"].as_array().unwrap().contains(&bash);
        assert_eq!(has, is_kept, "{preset}: {report}");
    }
}

#[test]
fn a_client_with_its_own_search_is_passed_through() {
    for (api, target) in APIS {
        for own in [&["tool_search"][..], &["ToolSearch"], &["tool_describe", "tool_call"]] {
            let mut tools = tools(api, 40);
            let list =
                if api == Api::Gemini { &mut tools[0]["functionDeclarations"] } else { &mut tools };
            let list = list.as_array_mut().unwrap();
            for name in own {
                let text = list[0].to_string().replace("office__make_report_0", name);
                list.push(serde_json::from_str(&text).unwrap());
            }
            let body = body(api, &tools);
            let endpoint = (api, target);
            let (settings, native) = (Settings::default(), CapabilityOverrides::default());
            let (sent, report) =
                bytes_sent(endpoint, &body, &settings, DisclosureSetting::Auto, native);
            assert_eq!(report, "bypass: the client has a tool search of its own");
            assert_eq!(sent, body.to_string());
        }
    }
    // `tool_call` without `tool_describe` may be an ordinary tool, so the request is not passed through. The search and
    // call tools of the client's server `gate` do not cause a passthrough either. They are sent in full.
    let mut tools = tools(Api::Chat, 40);
    let list = tools.as_array_mut().unwrap();
    for name in ["gate__tool_search", "gate__tool_call", "tool_call"] {
        let text = list[0].to_string().replace("office__make_report_0", name);
        list.push(serde_json::from_str(&text).unwrap());
    }
    let body = body(Api::Chat, &tools);
    let (sent, report) = sent(APIS[0], &body, &Settings::default(), DisclosureSetting::Auto);
    assert!(report.starts_with("bridge: "), "{report}");
    let names: Vec<&str> = sent["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["gate__tool_search", "gate__tool_call"]);
    assert_eq!(names.len(), 5, "{names:?}");
}
