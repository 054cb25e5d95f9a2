//! What is built in: which host serves which model with which feature.

use super::model::{Family, Model};
use super::{Capability, CapabilityReason, HostedSupport};
use crate::api::Api;

/// Asks for tool search where it is not a matter of course.
const SEARCH_BETA: &str = "tool-search-tool-2025-10-19";
/// Asks for tools by value in the midst of a conversation, and by reference.
const INLINE_BETA: &str = "inline-tools-2026-09-15";
/// Asks for tools by reference alone, where the other is not known.
const CHANGES_BETA: &str = "mid-conversation-tool-changes-2026-07-01";

/// Who serves a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Anthropic,
    OpenAi,
    /// Bedrock's `InvokeModel`. Of its newer endpoint reports conflict, so it is a stranger.
    Bedrock,
    Vertex,
    Azure,
    Stranger,
}

impl Host {
    fn of(host: &str) -> Self {
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
            // Regions where data stays: `eu.api.openai.com`.
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
            _ => Self::Stranger,
        }
    }
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// What the rules promise. `stated` tells whether the configuration named the model, and not the
/// request alone.
pub(super) fn built_in(api: Api, host: &str, model: &Model, stated: bool) -> Capability {
    let host = Host::of(host);
    match api {
        Api::Chat | Api::Gemini => Capability::none(CapabilityReason::Api),
        Api::Messages => Capability {
            forced_choice_refused: refuses_forcing(model),
            binds_prefix: binds_prefix(model),
            ..messages(host, model)
        },
        Api::Responses => responses(host, model, stated),
    }
}

fn messages(host: Host, model: &Model) -> Capability {
    let (reason, hosted) = match host {
        Host::Anthropic => (CapabilityReason::FirstParty, HostedSupport::Both),
        Host::Vertex => (CapabilityReason::Cloud, HostedSupport::Both),
        Host::Bedrock => (CapabilityReason::Cloud, HostedSupport::Regex),
        Host::Azure => return Capability::none(CapabilityReason::Deployment),
        Host::OpenAi | Host::Stranger => return Capability::none(CapabilityReason::Host),
    };
    if !defers(model) {
        return Capability::none(CapabilityReason::Model);
    }
    let first = host == Host::Anthropic;
    let adds = adds(model);
    Capability {
        hosted,
        references: true,
        tool_addition: adds,
        inline_tools: adds && first,
        betas: if first { &[] } else { &[SEARCH_BETA] },
        addition_beta: adds.then_some(if first { INLINE_BETA } else { CHANGES_BETA }),
        ..Capability::none(reason)
    }
}

fn responses(host: Host, model: &Model, stated: bool) -> Capability {
    let reason = match host {
        Host::OpenAi => CapabilityReason::FirstParty,
        Host::Azure if stated => CapabilityReason::Cloud,
        Host::Azure => return Capability::none(CapabilityReason::Deployment),
        _ => return Capability::none(CapabilityReason::Host),
    };
    // Of the smallest tier nobody has seen it work.
    let searches = model.family() == Family::Gpt && model.since(5, 4) && !model.has("nano");
    if !searches && host == Host::Azure {
        return Capability::none(CapabilityReason::Model);
    }
    Capability {
        hosted: if searches { HostedSupport::OpenAi } else { HostedSupport::None },
        client_search: searches,
        // On the provider's own host any model takes them.
        additional_tools: host == Host::OpenAi,
        ..Capability::none(reason)
    }
}

/// `defer_loading`, `tool_reference` and hosted search.
fn defers(model: &Model) -> bool {
    match model.family() {
        Family::Opus | Family::Sonnet | Family::Haiku => model.since(4, 5),
        Family::Fable => model.since(5, 0),
        Family::Mythos => model.since(5, 0) || is_preview(model),
        Family::Gpt | Family::Other => false,
    }
}

/// `tool_addition`.
fn adds(model: &Model) -> bool {
    match model.family() {
        Family::Opus => model.since(4, 8),
        Family::Fable | Family::Mythos => model.since(5, 0),
        // Sonnet 5 has references and not this.
        Family::Sonnet | Family::Haiku => model.since(5, 5),
        Family::Gpt | Family::Other => false,
    }
}

fn refuses_forcing(model: &Model) -> bool {
    match model.family() {
        Family::Fable | Family::Mythos => true,
        Family::Opus | Family::Sonnet => model.since(5, 5),
        Family::Haiku | Family::Gpt | Family::Other => false,
    }
}

/// Enforced where it is known to be, and taken to be for whatever came later: being careful costs
/// nothing, and a broken binding costs the request.
fn binds_prefix(model: &Model) -> bool {
    match model.family() {
        Family::Fable => model.since(5, 1),
        Family::Opus => model.since(5, 5),
        Family::Mythos => model.since(5, 2),
        Family::Sonnet | Family::Haiku => model.since(5, 6),
        Family::Gpt => false,
        Family::Other => model.id().starts_with("claude-"),
    }
}

fn is_preview(model: &Model) -> bool {
    model.version().is_none() && model.has("preview")
}
