//! Tests of every error message that is recognised as reporting an unsupported feature, and of similar messages that
//! must not be recognised as such.

use super::*;
use crate::api::Api::{Messages, Responses};

fn body(message: &str, param: Option<&str>) -> Vec<u8> {
    let error =
        serde_json::json!({"message": message, "param": param, "type": "invalid_request_error"});
    serde_json::json!({"type": "error", "error": error}).to_string().into_bytes()
}

#[rustfmt::skip]
const TEXTS: &[(Api, &str, Option<&str>, UnsupportedFeature)] = &[
    (Messages, "tools.3.custom.defer_loading: Extra inputs are not permitted", None, UnsupportedFeature::References),
    (Messages, "tools.3.defer_loading: Extra inputs are not permitted", None, UnsupportedFeature::References),
    (Messages, "tools.0.custom.clear_at: Extra inputs are not permitted", None, UnsupportedFeature::References),
    (Messages, "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' does not match any of the expected tags: 'text', 'image'", None, UnsupportedFeature::References),
    (Messages, "messages.2.content: value did not match any expected variant", None, UnsupportedFeature::References),
    (Messages, "BM25 tool search is not supported on Bedrock", None, UnsupportedFeature::Bm25),
    (Messages, "tools.0: Input tag 'tool_search_tool_bm25_20251119' found using 'type' does not match any of the expected tags: 'custom', 'tool_search_tool_regex_20251119'", None, UnsupportedFeature::Bm25),
    (Messages, "tools.0: Input tag 'tool_search_tool_bm25_20251119' found using 'type' does not match any of the expected tags: 'custom', 'bash_20250124'", None, UnsupportedFeature::Search),
    (Messages, "tools.0: Input tag 'tool_search_tool_regex' found using 'type' does not match any of the expected tags: 'custom'", None, UnsupportedFeature::Search),
    (Responses, "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.", Some("tools"), UnsupportedFeature::Search),
    (Responses, "Deferred tools require tools.tool_search.", None, UnsupportedFeature::Search),
    (Responses, "Invalid value: 'tool_search'. Supported values are: 'function' and 'custom'.", Some("tools[3].type"), UnsupportedFeature::Search),
    (Responses, "Unknown tool type: tool_search", None, UnsupportedFeature::Search),
    (Responses, "Invalid value: 'namespace'. Supported values are: 'function', 'custom', 'mcp'.", Some("tools[0].type"), UnsupportedFeature::Search),
    (Responses, "tools.14: tool type \"tool_search\" is not supported", None, UnsupportedFeature::Search),
    (Responses, "tools[7].type: unknown variant `tool_search`, expected `function`", None, UnsupportedFeature::Search),
    (Responses, "Hosted tool 'tool_search' is not supported with gpt-5.3.", Some("tools"), UnsupportedFeature::Search),
    (Responses, "Invalid value: 'additional_tools'. Supported values are: 'message'.", Some("input[2].type"), UnsupportedFeature::AdditionalTools),
];

#[test]
fn each_known_text_reports_its_feature() {
    for (api, message, param, missing) in TEXTS {
        let body = body(message, *param);
        assert_eq!(detect_unsupported_feature(*api, 400, &body), Some(*missing), "{message}");
        for other in [200, 401, 404, 429, 500] {
            assert_eq!(detect_unsupported_feature(*api, other, &body), None);
        }
        assert_eq!(detect_unsupported_feature(Api::Chat, 400, &body), None);
        assert!(!is_feature_misused(*api, 400, &body) && !is_thinking_rejected(&body), "{message}");
    }
}

#[test]
fn an_error_without_an_envelope_or_in_two_envelopes_is_recognised() {
    let bare = r#"{"message":"tools.21.custom.defer_loading: Extra inputs are not permitted"}"#;
    let around = body(&format!("{bare}. Received Model Group=x"), None);
    for body in [bare.as_bytes(), &around] {
        assert_eq!(
            detect_unsupported_feature(Messages, 400, body),
            Some(UnsupportedFeature::References)
        );
    }
}

#[test]
fn an_ordinary_error_reports_no_feature_even_if_it_quotes_a_known_text() {
    for message in [
        "messages.0.content.0.text: tools.3.custom.defer_loading: Extra inputs are not permitted",
        "Invalid content: `BM25 tool search is not supported on Bedrock`",
        "tools.3.custom.input_schema: Extra inputs are not permitted",
        "tools.3.custom.strict: Extra inputs are not permitted (see defer_loading)",
        "messages.1.defer_loading: Extra inputs are not permitted",
        "metadata.user_id: Invalid value: 'tool_search'",
        "tools.0: Input tag 'tool_search_tool_bm25x' found using 'type' does not match",
        "tools.0: Input tag 'web_search' found using 'type' does not match any of the expected tags: 'tool_search_tool_regex'",
        "Invalid value: 'tool_search_preview'. Supported values are: 'tool_search'.",
        "Tool 'tool_search' needs a description",
        "value did not match any expected variant",
        "tools.0: value did not match any expected variant",
        "max_tokens: Field required",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Tool names must be unique.",
        "",
    ] {
        for api in [Api::Messages, Api::Responses, Api::Chat, Api::Gemini] {
            assert_eq!(
                detect_unsupported_feature(api, 400, &body(message, None)),
                None,
                "{api} {message}"
            );
        }
    }
    // An error about `tool_choice` is the client's own mistake, so it must not be taken for an unsupported feature.
    let choice =
        r#"{"error":{"message":"Invalid value: 'tool_search'.","param":"tool_choice.type"}}"#;
    assert_eq!(detect_unsupported_feature(Api::Responses, 400, choice.as_bytes()), None);
    for body in ["", "null", "[]", "{}", "<html>defer_loading</html>", r#"{"error":"no"}"#] {
        assert_eq!(detect_unsupported_feature(Api::Messages, 400, body.as_bytes()), None);
    }
}

#[test]
fn a_misused_feature_is_not_an_unsupported_one() {
    for (api, message) in [
        (Api::Messages, "At least one tool must have defer_loading=false"),
        (Api::Messages, "All tools have defer_loading set"),
        (Api::Messages, "Tools with defer_loading cannot use prompt caching"),
        (Api::Messages, "Tool reference 'crm_find' not found in available tools"),
        (
            Api::Responses,
            "Missing namespace for function_call 'find'. It does not exist in the default namespace.",
        ),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert!(is_feature_misused(api, 400, body.as_bytes()), "{message}");
        assert!(
            !is_feature_misused(api, 500, body.as_bytes())
                && !is_feature_misused(Api::Chat, 400, body.as_bytes())
        );
        assert_eq!(detect_unsupported_feature(api, 400, body.as_bytes()), None, "{message}");
    }
}

#[test]
fn a_thinking_block_of_another_conversation_is_recognised() {
    let says = |message: &str| {
        is_thinking_rejected(
            serde_json::json!({"error": {"message": message}}).to_string().as_bytes(),
        )
    };
    let bound =
        "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    assert!(says(&format!("messages.1.content.0: {bound} See the guide.")));
    assert!(!says("messages.1.content.0: Invalid `signature` in `thinking` block"));
    assert!(!says(&format!("messages.1.content.0.text: the user wrote {bound}")));
    assert!(!says(&format!("tools.1: {bound}")));
}
