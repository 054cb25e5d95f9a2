//! Which native features an upstream supports, by API, host and model.
//!
//! A model's name alone says little: many servers speak a provider's API without its features, and a deployment can
//! have any name. So there are three sources, each of which takes precedence over the one before:
//!
//! 1. Built-in rules, for the providers' own hosts and for known clouds (`rules`).
//! 2. The configuration ([`CapabilityOverrides`]).
//! 3. Features that the upstream rejected ([`LearnedUnsupported`], `unsupported_feature`). If the configuration took
//!    precedence over these, every request would first be sent with the feature, be rejected, and be sent again.
//!
//! For an upstream that none of these sources covers, no native feature is used, because that always works.

mod learned;
mod model;
mod rules;
mod unsupported_feature;

pub use learned::LearnedUnsupported;
pub(crate) use model::normalise_model;
pub use unsupported_feature::UnsupportedFeature;
pub(crate) use unsupported_feature::{
    detect_unsupported_feature, is_feature_misused, is_thinking_rejected,
};

use std::fmt;

use serde::{Deserialize, Serialize};

use toolcrib_core::Settings;

use crate::api::Api;

/// The hosted searches that an upstream supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HostedSupport {
    /// The upstream has no hosted search.
    #[default]
    None,
    /// Only Anthropic's search by regular expressions, not its search by keywords.
    Regex,
    /// Both of Anthropic's searches: by regular expressions and by keywords.
    Both,
    /// OpenAI's hosted search.
    OpenAi,
}

/// The native features that an upstream supports for a model, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The searches that the provider itself can run.
    pub hosted: HostedSupport,
    /// Whether Anthropic's `defer_loading` on tools and `tool_reference` in results are supported.
    pub references: bool,
    /// Whether OpenAI's `tool_search` is supported with searches that the client executes.
    pub client_search: bool,
    /// Whether OpenAI's `additional_tools` items are supported.
    pub additional_tools: bool,
    /// Beta features to request if `hosted` or `references` is used.
    pub betas: &'static [&'static str],
    /// Why these features are supported, or why none is.
    pub reason: CapabilityReason,
}

/// Why an upstream supports certain native features, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapabilityReason {
    /// At least one feature is set in the configuration.
    Configured,
    /// The upstream rejected this feature.
    Unsupported(UnsupportedFeature),
    /// The host is the provider's own, and the model has native features.
    FirstParty,
    /// The host is a known cloud, and the model has native features.
    Cloud,
    /// The API has no native features for deferred tools.
    Api,
    /// The host is unknown.
    Host,
    /// On this host, requests name deployments, and the name of a deployment does not identify a model.
    Deployment,
    /// The model has no native features for deferred tools, or is unknown.
    Model,
    /// The settings do not allow references: with `reveals = false`, search results must not load tools.
    NoReveals,
}

impl fmt::Display for CapabilityReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configured => "it is set in the configuration",
            Self::Unsupported(UnsupportedFeature::Search) => {
                "the upstream has rejected the search tool"
            }
            Self::Unsupported(UnsupportedFeature::Bm25) => {
                "the upstream has rejected the search by keywords"
            }
            Self::Unsupported(UnsupportedFeature::References) => {
                "the upstream has rejected deferred tools"
            }
            Self::Unsupported(UnsupportedFeature::AdditionalTools) => {
                "the upstream has rejected additional tools"
            }
            Self::FirstParty => "the provider's own host supports it for this model",
            Self::Cloud => "this cloud supports it for this model",
            Self::Api => "the API has no such feature",
            Self::Host => "the host is unknown",
            Self::Deployment => {
                "on this host, model names are names of deployments: set `native.model` to the model"
            }
            Self::Model => "the model does not have this feature, or is unknown",
            Self::NoReveals => "with `reveals = false`, tools that a search finds are not loaded",
        })
    }
}

/// Capabilities that the configuration sets for a route. A field that is not set is determined by the built-in rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CapabilityOverrides {
    /// The model that runs behind a deployment, for hosts where requests name a deployment instead of a model.
    pub model: Option<String>,
    /// See [`Capability::hosted`].
    #[cfg_attr(
        feature = "schema",
        schemars(description = "The provider's own tool search that the upstream supports.")
    )]
    pub hosted: Option<HostedSupport>,
    /// See [`Capability::references`].
    #[cfg_attr(
        feature = "schema",
        schemars(description = "Whether the upstream supports tool references.")
    )]
    pub references: Option<bool>,
    /// See [`Capability::client_search`].
    #[cfg_attr(
        feature = "schema",
        schemars(description = "Whether the upstream supports tool search that the client runs.")
    )]
    pub client_search: Option<bool>,
    /// See [`Capability::additional_tools`].
    #[cfg_attr(
        feature = "schema",
        schemars(description = "Whether the upstream accepts additional tools in the input.")
    )]
    pub additional_tools: Option<bool>,
}

/// Returns the native features of an upstream: the configured ones, or else those of the built-in rules, except
/// features that are known to be unsupported. `now` is in seconds, on the clock of [`LearnedUnsupported::learn`].
pub fn resolve_capability(
    api: Api,
    host: &str,
    model: &str,
    configured: Option<&CapabilityOverrides>,
    learned: &LearnedUnsupported,
    now: u64,
) -> Capability {
    let configured_model = configured.and_then(|configured| configured.model.as_deref());
    let known = normalise_model(configured_model.unwrap_or(model));
    let mut capability =
        rules::built_in(api, &normalise_host(host), &known, configured_model.is_some());
    if let Some(configured) = configured {
        capability.override_with(configured);
    }
    for feature in learned.unsupported(api, host, model, now) {
        capability.remove(feature);
    }
    capability
}

impl Capability {
    /// Returns a capability without any native feature.
    fn none(reason: CapabilityReason) -> Self {
        Self {
            hosted: HostedSupport::None,
            references: false,
            client_search: false,
            additional_tools: false,
            betas: &[],
            reason,
        }
    }

    /// Removes the features that the settings do not allow. With `reveals = false`, search results must not load tools,
    /// so every feature that loads tools by reference is removed.
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

    /// Removes an unsupported feature, and the features that depend on it.
    fn remove(&mut self, feature: UnsupportedFeature) {
        let before = self.clone();
        match feature {
            UnsupportedFeature::Search => {
                (self.hosted, self.client_search) = (HostedSupport::None, false);
            }
            UnsupportedFeature::Bm25 if self.hosted == HostedSupport::Both => {
                self.hosted = HostedSupport::Regex;
            }
            UnsupportedFeature::Bm25 => {}
            UnsupportedFeature::References => {
                (self.hosted, self.references) = (HostedSupport::None, false);
            }
            UnsupportedFeature::AdditionalTools => self.additional_tools = false,
        }
        if *self != before {
            self.reason = CapabilityReason::Unsupported(feature);
        }
    }

    fn override_with(&mut self, configured: &CapabilityOverrides) {
        fn set<T>(from: Option<T>, to: &mut T) -> bool {
            from.map(|value| *to = value).is_some()
        }
        let was_set = [
            set(configured.hosted, &mut self.hosted),
            set(configured.references, &mut self.references),
            set(configured.client_search, &mut self.client_search),
            set(configured.additional_tools, &mut self.additional_tools),
        ];
        if was_set.contains(&true) {
            self.reason = CapabilityReason::Configured;
        }
    }
}

/// Returns a host name in lower case, without its port and final dot.
fn normalise_host(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
