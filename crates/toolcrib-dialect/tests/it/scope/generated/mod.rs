//! Requests that are generated from bytes, with tools in every part of a body where an API allows them.
//!
//! The caller may use only tools with `show` in their names. Tools with `hide` in their names are hidden, and all
//! others are not allowed either: `tools = ["*show*"]`, `hidden = ["*hide*"]`. Every generated request is either
//! refused or sent without any `hide`, in every mode and every round, translated or not. A valid request that is sent
//! with tool search off and without translation keeps all tools of the caller. The fuzz targets include this module.

mod request;

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::disclosure::DisclosureSetting;
use toolcrib_core::policy::ActivationMode as Activation;
use toolcrib_core::{FourCharsPerToken, Settings};
use toolcrib_dialect::capability::{CapabilityOverrides, HostedSupport};
use toolcrib_dialect::exchange::action::ExchangeConfig;
use toolcrib_dialect::mode::RequestedMode;
use toolcrib_dialect::{Action, Api, Exchange, Request, Toolset};

use self::request::{Choices, RequestGenerator};

/// Whether a tool with these names is in the caller's scope.
pub(crate) fn visible(names: &[&str]) -> bool {
    let any = |part: &str| names.iter().any(|name| name.contains(part));
    any("show") && !any("hide")
}

pub(crate) fn target(api: Api) -> &'static str {
    match api {
        Api::Chat => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Messages => "/v1/messages",
        Api::Gemini => "/v1beta/models/m:generateContent",
    }
}

/// Returns a flag and the bodies that the upstream receives for a request, one for each round. The flag says whether
/// tool search was off and the request was not translated. Returns `None` if the request is refused.
fn sent(api: Api, body: &str, choices: &mut Choices<'_>) -> Option<(bool, Vec<String>)> {
    let read = Request::read_in_scope(api, target(api), body.as_bytes().to_vec(), &visible).ok()?;
    let mut setup = ExchangeConfig::new("localhost", Arc::new(FourCharsPerToken));
    let mut settings = Settings::default();
    settings.activation.mode = Activation::On;
    setup.settings = Arc::new(settings);
    setup.checks_calls = true;
    let modes = [
        DisclosureSetting::Auto,
        DisclosureSetting::Bridge,
        DisclosureSetting::Reveal,
        DisclosureSetting::Terse,
        DisclosureSetting::Append,
        DisclosureSetting::Reference,
        DisclosureSetting::Hosted,
    ];
    let pick = choices.below(modes.len() + 1);
    let is_off = pick == 0;
    setup.requested =
        if is_off { RequestedMode::Off } else { RequestedMode::from(modes[pick - 1]) };
    setup.upstream.overrides = Some(CapabilityOverrides {
        references: Some(choices.below(2) == 1),
        client_search: Some(choices.below(2) == 1),
        additional_tools: Some(choices.below(2) == 1),
        hosted: Some(match (api, choices.below(2)) {
            (Api::Responses, 1) => HostedSupport::OpenAi,
            (Api::Messages, 1) => HostedSupport::Both,
            _ => HostedSupport::None,
        }),
        ..CapabilityOverrides::default()
    });
    let translates = matches!(api, Api::Messages | Api::Responses) && choices.rarely();
    if translates {
        setup.upstream.other_api = Some(Api::Chat);
    }
    let mut exchange = Exchange::new(api, target(api), read, setup);
    let (mut bodies, mut rounds) = (Vec::new(), 0);
    loop {
        match exchange.next_action() {
            Some(Action::LoadRecords(keys)) => exchange.records_loaded(vec![None; keys.len()]),
            Some(Action::PrepareToolset(plan)) => {
                let toolset = Toolset::new(*plan, exchange.tools());
                exchange.toolset_prepared(Arc::new(toolset));
            }
            Some(Action::Send(request)) => {
                bodies.push(String::from_utf8(request.body.to_vec()).expect("text"));
                exchange.response_started(200, false);
                let speaks = if translates { Api::Chat } else { api };
                exchange.response_bytes(answer(speaks, rounds).into());
                exchange.response_ended();
                rounds += 1;
            }
            Some(Action::Done(_)) | None => return Some((is_off && !translates, bodies)),
            Some(_) => {}
        }
    }
}

/// Returns the upstream's answer in a round: a search in the first two rounds, then text.
fn answer(api: Api, round: usize) -> &'static str {
    match (api, round) {
        (Api::Chat, 0 | 1) => {
            r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"call_search_00001","type":"function","function":{"name":"tool_search","arguments":"{\"query\":\"office\"}"}}]},"finish_reason":"tool_calls"}]}"#
        }
        (Api::Chat, _) => {
            r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}"#
        }
        (Api::Responses, 0 | 1) => {
            r#"{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"call_search_00001","name":"tool_search","arguments":"{\"query\":\"office\"}"}]}"#
        }
        (Api::Responses, _) => r#"{"id":"r","status":"completed","output":[]}"#,
        (Api::Messages, 0 | 1) => {
            r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_search_00001","name":"tool_search","input":{"query":"office"}}],"stop_reason":"tool_use"}"#
        }
        (Api::Messages, _) => {
            r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}"#
        }
        (Api::Gemini, 0 | 1) => {
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"tool_search","args":{"query":"office"}}}]},"finishReason":"STOP"}]}"#
        }
        (Api::Gemini, _) => {
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Done."}]},"finishReason":"STOP"}]}"#
        }
    }
}

/// Appends every string of a body to `out`, including keys.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => {
            for (key, value) in fields {
                out.push(key.clone());
                texts(value, out);
            }
        }
        _ => {}
    }
}

/// Generates a request from bytes and checks what the upstream receives. Returns `false` if the request was refused.
pub(crate) fn check(data: &[u8]) -> bool {
    let mut choices = Choices { bytes: data.iter() };
    let api = Api::ALL[choices.below(4)];
    let mut generator = RequestGenerator::new(api, choices);
    let body = generator.body();
    let Some((is_plain, bodies)) = sent(api, &body, &mut generator.choices) else {
        assert!(generator.is_odd, "refused without a reason: {body}");
        return false;
    };
    assert!(!bodies.is_empty(), "nothing was sent: {body}");
    for sent_body in &bodies {
        assert!(!sent_body.to_lowercase().contains("hide"), "{body}\n became \n{sent_body}");
        let value: Value = serde_json::from_str(sent_body).expect("the request is JSON");
        let mut all = Vec::new();
        texts(&value, &mut all);
        let leaked = all.iter().find(|text| text.contains("hide"));
        assert_eq!(leaked, None, "{body}\n became \n{sent_body}");
        if is_plain && !generator.is_odd {
            for name in &generator.shown {
                let is_there = all.iter().any(|text| text == name);
                assert!(is_there, "{name} is gone: {body}\n became \n{sent_body}");
            }
        }
    }
    true
}
