//! The built-in rules: which host supports which native features for which model.

use super::model::{ModelFamily, ModelId};
use super::{Capability, CapabilityReason, HostedSupport};
use crate::api::Api;

/// The name of the beta feature that enables tool search, for hosts on which it is still in beta.
const SEARCH_BETA: &str = "tool-search-tool-2025-10-19";

/// The kinds of hosts that have their own rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownHost {
    Anthropic,
    OpenAi,
    /// Bedrock's `InvokeModel`. There are conflicting reports about Bedrock's newer endpoint, so that endpoint's host
    /// counts as unknown.
    Bedrock,
    Vertex,
    Azure,
    Unknown,
}

impl KnownHost {
    fn from_name(host: &str) -> Self {
        let bedrock = || {
            let name = host.strip_prefix("bedrock-runtime").unwrap_or_default();
            let name = name.strip_prefix("-fips").unwrap_or(name);
            let region = name.strip_suffix(".cn").unwrap_or(name).strip_suffix(".amazonaws.com");
            region.and_then(|region| region.strip_prefix('.')).is_some_and(is_label)
        };
        let vertex = || {
            let region = host.strip_suffix("aiplatform.googleapis.com");
            let first = region.and_then(|region| region.strip_suffix('-')).is_some_and(is_label);
            let jurisdiction = host.strip_prefix("aiplatform.").unwrap_or_default();
            let rep = jurisdiction.strip_suffix(".rep.googleapis.com").is_some_and(is_label);
            first || rep || region == Some("")
        };
        match host {
            "api.anthropic.com" => Self::Anthropic,
            "api.openai.com" => Self::OpenAi,
            // Regional hosts for data residency, such as `eu.api.openai.com`.
            _ if host.strip_suffix(".api.openai.com").is_some_and(is_label) => Self::OpenAi,
            _ if bedrock() => Self::Bedrock,
            _ if vertex() => Self::Vertex,
            _ if [
                ".openai.azure.com",
                ".cognitiveservices.azure.com",
                ".services.ai.azure.com",
            ]
            .iter()
            .any(|suffix| host.strip_suffix(suffix).is_some_and(is_label)) =>
            {
                Self::Azure
            }
            _ => Self::Unknown,
        }
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns the capability according to the built-in rules. `is_configured` is true if the configuration names the
/// model. On Azure, the model is otherwise unknown.
pub(super) fn built_in(api: Api, host: &str, model: &ModelId, is_configured: bool) -> Capability {
    let host = KnownHost::from_name(host);
    match api {
        Api::Chat | Api::Gemini => Capability::none(CapabilityReason::Api),
        Api::Messages => messages(host, model),
        Api::Responses => responses(host, model, is_configured),
    }
}

fn messages(host: KnownHost, model: &ModelId) -> Capability {
    let (reason, hosted) = match host {
        KnownHost::Anthropic => (CapabilityReason::FirstParty, HostedSupport::Both),
        KnownHost::Vertex => (CapabilityReason::Cloud, HostedSupport::Both),
        KnownHost::Bedrock => (CapabilityReason::Cloud, HostedSupport::Regex),
        KnownHost::Azure => return Capability::none(CapabilityReason::Deployment),
        KnownHost::OpenAi | KnownHost::Unknown => return Capability::none(CapabilityReason::Host),
    };
    if !supports_deferral(model) {
        return Capability::none(CapabilityReason::Model);
    }
    Capability {
        hosted,
        references: true,
        betas: if host == KnownHost::Anthropic { &[] } else { &[SEARCH_BETA] },
        ..Capability::none(reason)
    }
}

fn responses(host: KnownHost, model: &ModelId, is_configured: bool) -> Capability {
    let reason = match host {
        KnownHost::OpenAi => CapabilityReason::FirstParty,
        KnownHost::Azure if is_configured => CapabilityReason::Cloud,
        KnownHost::Azure => return Capability::none(CapabilityReason::Deployment),
        _ => return Capability::none(CapabilityReason::Host),
    };
    // `nano` models are excluded, because no report says that search works for the smallest models.
    let searches =
        model.family() == ModelFamily::Gpt && model.is_at_least(5, 4) && !model.has_word("nano");
    if !searches && host == KnownHost::Azure {
        return Capability::none(CapabilityReason::Model);
    }
    Capability {
        hosted: if searches { HostedSupport::OpenAi } else { HostedSupport::None },
        client_search: searches,
        // OpenAI's own host accepts `additional_tools` items for every model.
        additional_tools: host == KnownHost::OpenAi,
        ..Capability::none(reason)
    }
}

/// Whether a model has `defer_loading`, `tool_reference` and hosted search.
fn supports_deferral(model: &ModelId) -> bool {
    match model.family() {
        ModelFamily::Opus | ModelFamily::Sonnet | ModelFamily::Haiku => model.is_at_least(4, 5),
        ModelFamily::Fable => model.is_at_least(5, 0),
        ModelFamily::Mythos => model.is_at_least(5, 0) || is_preview(model),
        ModelFamily::Gpt | ModelFamily::Other => false,
    }
}

fn is_preview(model: &ModelId) -> bool {
    model.version().is_none() && model.has_word("preview")
}
