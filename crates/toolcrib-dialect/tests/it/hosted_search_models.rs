//! Compares the models that have a hosted search according to the agent system everruns (version 0.50) with those in
//! Toolcrib's own list.

use toolcrib_dialect::Api;
use toolcrib_dialect::capability::{HostedSupport, LearnedUnsupported, resolve_capability};

fn hosted(api: Api, host: &str, model: &str) -> HostedSupport {
    resolve_capability(api, host, model, None, &LearnedUnsupported::default(), 0).hosted
}

#[test]
fn openai_models_with_hosted_search_match_everruns() {
    let openai = |model| hosted(Api::Responses, "api.openai.com", model);
    for model in [
        "gpt-5.4",
        "gpt-5.4-mini",
        "gpt-5.4-pro",
        "gpt-5.5",
        "gpt-5.5-pro",
        "gpt-5.6",
        "gpt-5.6-sol",
        "gpt-5.6-terra",
        "gpt-5.6-luna",
        "gpt-6-astra",
        "gpt-6-sol",
        "gpt-6-luna",
        "gpt-6.1-sol",
        "gpt-6.1-terra",
    ] {
        assert_eq!(openai(model), HostedSupport::OpenAi, "{model}");
    }
    for model in ["gpt-4.1", "gpt-5", "gpt-5.2", "gpt-5.3-codex", "o3", "o4-mini"] {
        assert_eq!(openai(model), HostedSupport::None, "{model}");
    }
    assert_eq!(openai("gpt-5.4-nano"), HostedSupport::None, "only everruns lists this model");
}

#[test]
fn anthropic_models_with_hosted_search_match_everruns() {
    let anthropic = |model| hosted(Api::Messages, "api.anthropic.com", model);
    for model in [
        "claude-opus-4-5",
        "claude-opus-4-6",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-opus-5-5",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
        "claude-sonnet-5-5",
        "claude-haiku-4-5",
        "claude-haiku-5-5",
        "claude-fable-5",
        "claude-fable-5-1",
    ] {
        assert_eq!(anthropic(model), HostedSupport::Both, "{model}");
    }
    for model in ["claude-3-5-haiku", "claude-3-7-sonnet", "unknown-model"] {
        assert_eq!(anthropic(model), HostedSupport::None, "{model}");
    }
    assert_eq!(anthropic("claude-opus-4"), HostedSupport::None, "only everruns lists this model");
}

#[test]
fn other_transports_have_no_hosted_search() {
    for (api, host, model) in [
        (Api::Responses, "openrouter.ai", "openai/gpt-5.4"),
        (Api::Responses, "x.openai.azure.com", "gpt-5.4"),
        (Api::Chat, "api.openai.com", "gpt-5.4"),
        (Api::Chat, "openrouter.ai", "anthropic/claude-opus-4.8"),
        (Api::Gemini, "generativelanguage.googleapis.com", "gemini-3-pro"),
    ] {
        assert_eq!(hosted(api, host, model), HostedSupport::None, "{host} {model}");
    }
    let bedrock = "bedrock-runtime.us-east-1.amazonaws.com";
    let model = "us.anthropic.claude-opus-4-5-20251101-v1:0";
    assert_eq!(hosted(Api::Messages, bedrock, model), HostedSupport::Regex, "through InvokeModel");
}
