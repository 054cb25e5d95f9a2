//! What an upstream can do by itself, by API, host and model.
//!
//! A name alone tells little: many servers speak a provider's dialect without its features, and a
//! deployment may be called anything. So what is built in holds for the providers' own hosts and the
//! clouds that are known, the configuration outweighs it, and a refusal that was met outweighs both: a
//! feature that was configured and is refused would cost every request a round in vain.
//! Everything else gets no native feature, which always works.

mod learned;
mod model;
mod rules;
mod unsupported_feature;

pub use learned::{HOURS, LearnedUnsupported, REFUSALS};
pub use model::{Family, Model, normalise};
pub use unsupported_feature::{
    UnsupportedFeature, detect_unsupported_feature, is_feature_misused, is_thinking_rejected,
};

use std::fmt;

use serde::{Deserialize, Serialize};

use toolcrib_core::Settings;

use crate::api::Api;

/// Which search an upstream runs itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostedSupport {
    /// None.
    #[default]
    None,
    /// Anthropic's by patterns, not the one by words.
    Regex,
    /// Anthropic's, by patterns and by words.
    Both,
    /// OpenAI's.
    OpenAi,
}

/// What truly works natively, and why we believe so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a feature of its own")]
pub struct Capability {
    /// The search it runs itself.
    pub hosted: HostedSupport,
    /// Anthropic's `defer_loading` on tools and `tool_reference` in results.
    pub references: bool,
    /// OpenAI's `tool_search` that the client runs.
    pub client_search: bool,
    /// OpenAI's `additional_tools` items.
    pub additional_tools: bool,
    /// Anthropic's `tool_addition` in a system message, by reference.
    pub tool_addition: bool,
    /// The same with a whole definition.
    pub inline_tools: bool,
    /// Whether a forced tool choice is an error. About the model, whoever serves it.
    pub forced_choice_refused: bool,
    /// Whether thinking blocks are bound to the very prefix they were made with. About the model,
    /// whoever serves it; where in doubt, yes.
    pub binds_prefix: bool,
    /// Beta features to be asked for wherever `hosted` or `references` is used.
    pub betas: &'static [&'static str],
    /// The beta feature to be asked for where `tool_addition` is used.
    pub addition_beta: Option<&'static str>,
    /// Why.
    pub reason: CapabilityReason,
}

/// Why a capability is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapabilityReason {
    /// The configuration says so, of some of it at least.
    Configured,
    /// It has been refused.
    Refused(UnsupportedFeature),
    /// The provider's own host, and a model that has it.
    FirstParty,
    /// A cloud that serves such a model.
    Cloud,
    /// The API has nothing of the kind.
    Api,
    /// Nothing is known of the host.
    Host,
    /// The host names deployments and not models.
    Deployment,
    /// The model has it not, or nothing is known of it.
    Model,
    /// The settings do not allow it: with `reveals = false`, nothing may load what a search finds.
    NoReveals,
}

impl fmt::Display for CapabilityReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "the configuration says so",
            Self::Refused(UnsupportedFeature::Search) => "it has refused the search tool",
            Self::Refused(UnsupportedFeature::Bm25) => "it has refused the search by words",
            Self::Refused(UnsupportedFeature::References) => "it has refused deferred tools",
            Self::Refused(UnsupportedFeature::AdditionalTools) => "it has refused additional tools",
            Self::Refused(UnsupportedFeature::ToolAddition) => "it has refused added tools",
            Self::FirstParty => "the provider's own host serves such a model so",
            Self::Cloud => "this cloud serves such a model so",
            Self::Api => "the API has no such feature",
            Self::Host => "nothing is known of the host",
            Self::Deployment => "the host names deployments, not models: say which model it is",
            Self::Model => "the model has no such feature, or is not known",
            Self::NoReveals => "`reveals = false`: what a search finds is not loaded",
        })
    }
}

/// What a configuration says of a route or a model; what it leaves out is worked out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CapabilityOverrides {
    /// The model behind the name, where that is a deployment's.
    pub model: Option<String>,
    /// See [`Capability::hosted`].
    pub hosted: Option<HostedSupport>,
    /// See [`Capability::references`].
    pub references: Option<bool>,
    /// See [`Capability::client_search`].
    pub client_search: Option<bool>,
    /// See [`Capability::additional_tools`].
    pub additional_tools: Option<bool>,
    /// See [`Capability::tool_addition`].
    pub tool_addition: Option<bool>,
    /// See [`Capability::inline_tools`].
    pub inline_tools: Option<bool>,
    /// See [`Capability::forced_choice_refused`].
    pub forced_choice_refused: Option<bool>,
    /// See [`Capability::binds_prefix`].
    pub binds_prefix: Option<bool>,
}

/// What an upstream can do natively: what the configuration says, else what the rules promise, of
/// either what it has not refused. `now` is in seconds, on the clock of [`LearnedUnsupported::learn`].
pub fn resolve_capability(
    api: Api,
    host: &str,
    model: &str,
    configured: Option<&CapabilityOverrides>,
    learned: &LearnedUnsupported,
    now: u64,
) -> Capability {
    let stated = configured.and_then(|configured| configured.model.as_deref());
    let known = normalise(stated.unwrap_or(model));
    let mut capability = rules::built_in(api, &host_of(host), &known, stated.is_some());
    if let Some(configured) = configured {
        capability.set(configured);
    }
    for missing in learned.missing(api, host, model, now) {
        capability.strike(missing);
    }
    capability
}

impl Capability {
    /// Nothing native.
    fn none(reason: CapabilityReason) -> Self {
        Self {
            hosted: HostedSupport::None,
            references: false,
            client_search: false,
            additional_tools: false,
            tool_addition: false,
            inline_tools: false,
            forced_choice_refused: false,
            binds_prefix: false,
            betas: &[],
            addition_beta: None,
            reason,
        }
    }

    /// The same without what these settings do not allow: a reference loads a tool by its nature, so there is none
    /// with `reveals = false`.
    pub(crate) fn allowed_by(self, settings: &Settings) -> Self {
        let loads = self.references || self.client_search || self.additional_tools;
        if settings.reveals || !loads {
            return self;
        }
        Self {
            references: false,
            client_search: false,
            additional_tools: false,
            reason: CapabilityReason::NoReveals,
            ..self
        }
    }

    /// Takes away what was refused, and what cannot be without it.
    fn strike(&mut self, missing: UnsupportedFeature) {
        let before = self.clone();
        match missing {
            UnsupportedFeature::Search => {
                (self.hosted, self.client_search) = (HostedSupport::None, false)
            }
            UnsupportedFeature::Bm25 if self.hosted == HostedSupport::Both => {
                self.hosted = HostedSupport::Regex
            }
            UnsupportedFeature::Bm25 => {}
            UnsupportedFeature::References => {
                (self.hosted, self.references) = (HostedSupport::None, false);
                (self.tool_addition, self.inline_tools) = (false, false);
            }
            UnsupportedFeature::AdditionalTools => self.additional_tools = false,
            UnsupportedFeature::ToolAddition => {
                (self.tool_addition, self.inline_tools) = (false, false)
            }
        }
        if *self != before {
            self.reason = CapabilityReason::Refused(missing);
        }
    }

    fn set(&mut self, configured: &CapabilityOverrides) {
        fn put<T>(from: Option<T>, to: &mut T) -> bool {
            from.map(|value| *to = value).is_some()
        }
        let set = [
            put(configured.hosted, &mut self.hosted),
            put(configured.references, &mut self.references),
            put(configured.client_search, &mut self.client_search),
            put(configured.additional_tools, &mut self.additional_tools),
            put(configured.tool_addition, &mut self.tool_addition),
            put(configured.inline_tools, &mut self.inline_tools),
            put(configured.forced_choice_refused, &mut self.forced_choice_refused),
            put(configured.binds_prefix, &mut self.binds_prefix),
        ];
        if set.contains(&true) {
            self.reason = CapabilityReason::Configured;
        }
    }
}

/// A host by its name alone: in lower case, without port and final dot.
fn host_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
