//! A table of APIs, hosts and model ids. Each row has the normalised id and the capability, written as letters.

use super::*;
use crate::api::Api::{Chat, Gemini, Messages, Responses};

#[rustfmt::skip]
const TABLE: &[(Api, &str, &str, &str, &str)] = &[
    // Anthropic's own host.
    (Messages, ANTHROPIC, "claude-2.1", "claude-2-1", ""),
    (Messages, ANTHROPIC, "claude-3-haiku-20240307", "claude-haiku-3", ""),
    (Messages, ANTHROPIC, "claude-3-5-sonnet-20241022", "claude-sonnet-3-5", ""),
    (Messages, ANTHROPIC, "claude-3-5-sonnet-latest", "claude-sonnet-3-5", ""),
    (Messages, ANTHROPIC, "claude-3-7-sonnet-20250219", "claude-sonnet-3-7", ""),
    (Messages, ANTHROPIC, "claude-opus-4-20250514", "claude-opus-4", ""),
    (Messages, ANTHROPIC, "claude-opus-4-0", "claude-opus-4", ""),
    (Messages, ANTHROPIC, "claude-opus-4-1", "claude-opus-4-1", ""),
    (Messages, ANTHROPIC, "claude-opus-4-1-20250805", "claude-opus-4-1", ""),
    (Messages, ANTHROPIC, "claude-sonnet-4-20250514", "claude-sonnet-4", ""),
    (Messages, ANTHROPIC, "claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-sonnet-4-5[1m]", "claude-sonnet-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-sonnet-4-6", "claude-sonnet-4-6", "bd"),
    (Messages, ANTHROPIC, "claude-haiku-4-5", "claude-haiku-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-haiku-4-5-20251001", "claude-haiku-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-5", "claude-opus-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4.5", "claude-opus-4-5", "bd"),
    (Messages, ANTHROPIC, "Claude-Opus-4-5", "claude-opus-4-5", "bd"),
    (Messages, ANTHROPIC, "anthropic/claude-opus-4.5", "claude-opus-4-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-5-thinking", "claude-opus-4-5-thinking", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-7", "claude-opus-4-7", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-8", "claude-opus-4-8", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-10", "claude-opus-4-10", "bd"),
    (Messages, ANTHROPIC, "claude-sonnet-5", "claude-sonnet-5", "bd"),
    (Messages, ANTHROPIC, "claude-sonnet-5-5", "claude-sonnet-5-5", "bd"),
    (Messages, ANTHROPIC, "claude-sonnet-5-6", "claude-sonnet-5-6", "bd"),
    (Messages, ANTHROPIC, "claude-haiku-5-5", "claude-haiku-5-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-5", "claude-opus-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-5-5", "claude-opus-5-5", "bd"),
    (Messages, ANTHROPIC, "claude-opus-5-5-20261001", "claude-opus-5-5", "bd"),
    (Messages, ANTHROPIC, "claude-fable-5", "claude-fable-5", "bd"),
    (Messages, ANTHROPIC, "claude-fable-5-1", "claude-fable-5-1", "bd"),
    (Messages, ANTHROPIC, "claude-mythos-preview", "claude-mythos-preview", "bd"),
    (Messages, ANTHROPIC, "claude-mythos-5", "claude-mythos-5", "bd"),
    (Messages, ANTHROPIC, "claude-mythos-5-1", "claude-mythos-5-1", "bd"),
    (Messages, ANTHROPIC, "claude-opus-4-5-6", "claude-opus-4-5-6", ""),
    (Messages, ANTHROPIC, "claude-saga-7", "claude-saga-7", ""),
    (Messages, ANTHROPIC, "gpt-5.4", "gpt-5.4", ""),
    (Messages, "API.Anthropic.com.:443", "claude-opus-4-5", "claude-opus-4-5", "bd"),
    // Clouds that serve Claude models.
    (Messages, BEDROCK, "us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5", "rd"),
    (Messages, BEDROCK, "anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "rd"),
    (Messages, BEDROCK, "global.anthropic.claude-opus-4-8-v1", "claude-opus-4-8", "rd"),
    (Messages, BEDROCK, "anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-sonnet-3-5", ""),
    (Messages, BEDROCK, "arn:aws:bedrock:us-east-1:1234:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", "rd"),
    (Messages, BEDROCK, "arn:aws:bedrock:us-east-1:1234:application-inference-profile/ab12", "ab12", ""),
    (Messages, "bedrock-runtime.cn-north-1.amazonaws.com.cn", "claude-opus-4-5", "claude-opus-4-5", "rd"),
    (Messages, "bedrock-mantle.us-east-1.api.aws", "anthropic.claude-opus-4-8", "claude-opus-4-8", ""),
    (Messages, VERTEX, "claude-opus-4-5@20251101", "claude-opus-4-5", "bd"),
    (Messages, VERTEX, "publishers/anthropic/models/claude-opus-4-8@default", "claude-opus-4-8", "bd"),
    (Messages, "aiplatform.googleapis.com", "claude-sonnet-4-6", "claude-sonnet-4-6", "bd"),
    (Messages, "aiplatform.eu.rep.googleapis.com", "claude-sonnet-4-6", "claude-sonnet-4-6", "bd"),
    (Messages, "x.services.ai.azure.com", "claude-opus-5-5", "claude-opus-5-5", ""),
    // Unknown hosts have no native features, whatever the model's name is.
    (Messages, "openrouter.ai", "anthropic/claude-opus-4.8:thinking", "claude-opus-4-8", ""),
    (Messages, "api.anthropic.com.example.org", "claude-opus-4-5", "claude-opus-4-5", ""),
    (Messages, "notapi.anthropic.com", "claude-opus-4-5", "claude-opus-4-5", ""),
    (Messages, "evil-aiplatform.googleapis.com.example.org", "claude-opus-4-5", "claude-opus-4-5", ""),
    (Messages, "localhost:8080", "claude-opus-5-5", "claude-opus-5-5", ""),
    // OpenAI's own host.
    (Responses, OPENAI, "gpt-3.5-turbo", "gpt-3.5-turbo", "t"),
    (Responses, OPENAI, "gpt-4o", "gpt-4o", "t"),
    (Responses, OPENAI, "gpt-4o-mini-2024-07-18", "gpt-4o-mini", "t"),
    (Responses, OPENAI, "ft:gpt-4o-mini-2024-07-18:acme::ab12", "gpt-4o-mini", "t"),
    (Responses, OPENAI, "gpt-4.1-nano", "gpt-4.1-nano", "t"),
    (Responses, OPENAI, "gpt-4-0613", "gpt-4-0613", "t"),
    (Responses, OPENAI, "o3", "o3", "t"),
    (Responses, OPENAI, "chatgpt-4o-latest", "chatgpt-4o", "t"),
    (Responses, OPENAI, "gpt-5-2025-08-07", "gpt-5", "t"),
    (Responses, OPENAI, "gpt-5-codex", "gpt-5-codex", "t"),
    (Responses, OPENAI, "gpt-5.3", "gpt-5.3", "t"),
    (Responses, OPENAI, "gpt-5.3-codex", "gpt-5.3-codex", "t"),
    (Responses, OPENAI, "gpt-5.4", "gpt-5.4", "oct"),
    (Responses, OPENAI, "gpt-5-4", "gpt-5.4", "oct"),
    (Responses, OPENAI, "openai/gpt-5.4", "gpt-5.4", "oct"),
    (Responses, OPENAI, "gpt-5.4-2026-03-05", "gpt-5.4", "oct"),
    (Responses, OPENAI, "gpt-5.4-mini", "gpt-5.4-mini", "oct"),
    (Responses, OPENAI, "gpt-5.4-pro", "gpt-5.4-pro", "oct"),
    (Responses, OPENAI, "gpt-5.4-nano", "gpt-5.4-nano", "t"),
    (Responses, OPENAI, "gpt-5.6", "gpt-5.6", "oct"),
    (Responses, OPENAI, "gpt-5.10", "gpt-5.10", "oct"),
    (Responses, OPENAI, "gpt-6-astra", "gpt-6-astra", "oct"),
    (Responses, OPENAI, "gpt-oss-120b", "gpt-oss-120b", "t"),
    (Responses, "eu.api.openai.com", "gpt-5.5", "gpt-5.5", "oct"),
    (Responses, "a.b.api.openai.com", "gpt-5.4", "gpt-5.4", ""),
    (Responses, "x.openai.azure.com", "gpt-5.4", "gpt-5.4", ""),
    (Responses, "x.openai.azure.com", "our-deployment", "our-deployment", ""),
    (Responses, "openrouter.ai", "openai/gpt-5.4", "gpt-5.4", ""),
    (Responses, "api.openai.com.example.org", "gpt-5.4", "gpt-5.4", ""),
    (Responses, ANTHROPIC, "claude-opus-4-8", "claude-opus-4-8", ""),
    // APIs without native features.
    (Chat, OPENAI, "gpt-5.4", "gpt-5.4", ""),
    (Chat, "localhost", "qwen3:32b", "qwen3", ""),
    (Gemini, "generativelanguage.googleapis.com", "models/gemini-3-pro", "gemini-3-pro", ""),
    (Gemini, VERTEX, "claude-opus-4-8", "claude-opus-4-8", ""),
];

#[test]
fn every_spelling_of_an_id_has_the_capability_of_its_model() {
    for (api, host, id, normal, letters) in TABLE {
        assert_eq!(normalise_model(id).id(), *normal, "{id}");
        assert_eq!(short(&plain(*api, host, id)), *letters, "{api} {host} {id}");
    }
    // Azure writes version 3.5 as `35`, which must not be read as version 35.
    assert_eq!(normalise_model("gpt-35-turbo").version(), Some((3, 5)));
}
