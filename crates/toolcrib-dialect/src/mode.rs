//! How deferred tools are shown, and why in this way.
//!
//! The engine knows four disclosures. Two more exist only if a provider's API has the words for them:
//! references, where our search answers with blocks that load a tool's definition, and hosted search,
//! where the provider searches itself. Neither changes `tools` after the first request.
//!
//! [`choose_mode`] chooses the mode of a conversation. Whether anything is deferred at all depends on the
//! numbers, in [`pass`](crate::passthrough).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};

use crate::api::Api;
use crate::capability::{Capability, CapabilityReason, HostedSupport};

/// Maximum number of tools that one answer may load by reference. More reportedly invalidate the provider's
/// prompt cache.
pub(crate) const REFERENCES: usize = 5;

/// How deferred tools are shown and become callable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// `tool_search`, `tool_describe`, `tool_call`; nothing of it changes. Works everywhere.
    Bridge,
    /// Stubs that become definitions once found.
    Reveal,
    /// Names and parameters; descriptions are found.
    Terse,
    /// A listing; definitions are appended once found.
    Append,
    /// Our search, answered with what the API loads a definition by.
    Reference(ReferenceKind),
    /// The provider's own search.
    Hosted(HostedSearch),
}

/// What an API has to load a definition in the middle of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceKind {
    /// Anthropic: `tool_reference` blocks in a result, for tools sent with `defer_loading`.
    ToolReference,
    /// OpenAI: `tool_search_output` for a `tool_search` that the client executes.
    SearchOutput,
    /// OpenAI: an `additional_tools` item after the result of a function.
    AdditionalTools,
}

/// A provider's own search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostedSearch {
    /// Anthropic's by pattern.
    Regex,
    /// Anthropic's by words.
    Bm25,
    /// OpenAI's, over namespaces.
    Namespaces,
}

impl Mode {
    /// Whether the model sees nothing of a deferred tool but its line in the listing. Then a turn that needs
    /// the tool has to search. Reveal and terse show every tool, and cannot save half of the tokens.
    pub(crate) fn hides_tools(self) -> bool {
        !matches!(self, Self::Reveal | Self::Terse)
    }

    /// The engine's disclosure behind it. References and hosted search need the listing and the one
    /// search tool of `append`, and nothing appended.
    pub(crate) fn kind(self) -> DisclosureKind {
        match self {
            Self::Bridge => DisclosureKind::Bridge,
            Self::Reveal => DisclosureKind::Reveal,
            Self::Terse => DisclosureKind::Terse,
            Self::Append | Self::Reference(_) | Self::Hosted(_) => DisclosureKind::Append,
        }
    }

    /// Whether it needs a feature of the upstream.
    pub(crate) fn is_native(self) -> bool {
        matches!(self, Self::Reference(_) | Self::Hosted(_))
    }

    /// Whether `tools` changes with what was found.
    pub(crate) fn grows(self) -> bool {
        matches!(self, Self::Append | Self::Reveal)
    }

    /// Its name in headers, logs and configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Reveal => "reveal",
            Self::Terse => "terse",
            Self::Append => "append",
            Self::Reference(_) => "reference",
            Self::Hosted(_) => "hosted",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The mode that the configuration, the command line or a request's header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestedMode {
    /// Nothing is deferred.
    Off,
    /// Tools are deferred in this way, or in the nearest one that the upstream has.
    ///
    /// `auto` never becomes hosted search: our own ranking finds more, and no list of tools is kept
    /// elsewhere.
    Defer(DisclosureSetting),
}

impl RequestedMode {
    /// Every name.
    pub const NAMES: [&str; 8] =
        ["auto", "off", "bridge", "reveal", "terse", "append", "reference", "hosted"];

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        let setting = DisclosureSetting::ALL.into_iter().find(|setting| setting.name() == name);
        setting.map(Self::Defer).or((name == "off").then_some(Self::Off))
    }
}

impl Default for RequestedMode {
    fn default() -> Self {
        Self::Defer(DisclosureSetting::Auto)
    }
}

impl From<DisclosureSetting> for RequestedMode {
    fn from(setting: DisclosureSetting) -> Self {
        Self::Defer(setting)
    }
}

impl<'de> Deserialize<'de> for RequestedMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

/// Why tools are deferred the way they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeReason {
    /// The configuration says so.
    Configured,
    /// The conversation already uses this mode; another one would invalidate the prompt cache.
    AlreadyInUse,
    /// It is native here.
    Native(CapabilityReason),
    /// No native mode is available here.
    NativeUnavailable(CapabilityReason),
}

impl fmt::Display for ModeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured"),
            Self::AlreadyInUse => f.write_str("the conversation began so"),
            Self::Native(reason) | Self::NativeUnavailable(reason) => reason.fmt(f),
        }
    }
}

impl From<DisclosureKind> for Mode {
    fn from(kind: DisclosureKind) -> Self {
        match kind {
            DisclosureKind::Bridge => Self::Bridge,
            DisclosureKind::Reveal => Self::Reveal,
            DisclosureKind::Terse => Self::Terse,
            DisclosureKind::Append => Self::Append,
        }
    }
}

/// Chooses the mode. `fallback` replaces a native mode that is unavailable; `past` is the mode that the
/// conversation already uses. Returns `None` if nothing is deferred.
pub fn choose_mode(
    api: Api,
    requested: RequestedMode,
    capability: &Capability,
    fallback: Option<DisclosureKind>,
    past: Option<Mode>,
) -> Option<(Mode, ModeReason)> {
    let RequestedMode::Defer(setting) = requested else { return None };
    if let Some(past) = past.filter(|past| works(api, *past, capability)) {
        return Some((past, ModeReason::AlreadyInUse));
    }
    let native = match setting {
        DisclosureSetting::Auto | DisclosureSetting::Reference => {
            reference(api, capability).map(Mode::Reference)
        }
        DisclosureSetting::Hosted => hosted(api, capability).map(Mode::Hosted),
        DisclosureSetting::Bridge
        | DisclosureSetting::Reveal
        | DisclosureSetting::Terse
        | DisclosureSetting::Append => {
            return Some((setting.kind().into(), ModeReason::Configured));
        }
    };
    let Some(mode) = native else {
        let mode = fallback.unwrap_or(setting.kind()).into();
        return Some((mode, ModeReason::NativeUnavailable(capability.reason)));
    };
    Some((mode, ModeReason::Native(capability.reason)))
}

/// Whether a mode is still to be had.
fn works(api: Api, mode: Mode, capability: &Capability) -> bool {
    match mode {
        Mode::Reference(ReferenceKind::ToolReference) => {
            api == Api::Messages && capability.references
        }
        Mode::Reference(ReferenceKind::SearchOutput) => {
            api == Api::Responses && capability.client_search
        }
        Mode::Reference(ReferenceKind::AdditionalTools) => {
            api == Api::Responses && capability.additional_tools
        }
        Mode::Hosted(HostedSearch::Regex) => {
            matches!(capability.hosted, HostedSupport::Regex | HostedSupport::Both)
        }
        Mode::Hosted(HostedSearch::Bm25) => capability.hosted == HostedSupport::Both,
        Mode::Hosted(HostedSearch::Namespaces) => capability.hosted == HostedSupport::OpenAi,
        Mode::Bridge | Mode::Reveal | Mode::Terse | Mode::Append => true,
    }
}

fn reference(api: Api, capability: &Capability) -> Option<ReferenceKind> {
    match api {
        Api::Messages if capability.references => Some(ReferenceKind::ToolReference),
        Api::Responses if capability.client_search => Some(ReferenceKind::SearchOutput),
        Api::Responses if capability.additional_tools => Some(ReferenceKind::AdditionalTools),
        _ => None,
    }
}

fn hosted(api: Api, capability: &Capability) -> Option<HostedSearch> {
    match (api, capability.hosted) {
        (Api::Messages, HostedSupport::Both) => Some(HostedSearch::Bm25),
        (Api::Messages, HostedSupport::Regex) => Some(HostedSearch::Regex),
        (Api::Responses, HostedSupport::OpenAi) => Some(HostedSearch::Namespaces),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{LearnedUnsupported, resolve_capability};

    fn at(
        api: Api,
        host: &str,
        model: &str,
        setting: impl Into<RequestedMode>,
        past: Option<Mode>,
    ) -> Option<(Mode, String)> {
        let capability =
            resolve_capability(api, host, model, None, &LearnedUnsupported::default(), 0);
        choose_mode(api, setting.into(), &capability, None, past)
            .map(|(mode, because)| (mode, because.to_string()))
    }

    #[test]
    fn native_where_it_works_and_the_bridge_elsewhere() {
        let (anthropic, openai) = ("api.anthropic.com", "api.openai.com");
        let mode = |api, host, model, setting: DisclosureSetting| {
            at(api, host, model, setting, None).unwrap().0
        };
        assert_eq!(
            mode(Api::Messages, anthropic, "claude-opus-4-5", DisclosureSetting::Auto),
            Mode::Reference(ReferenceKind::ToolReference)
        );
        assert_eq!(
            mode(Api::Messages, anthropic, "claude-opus-4-5", DisclosureSetting::Hosted),
            Mode::Hosted(HostedSearch::Bm25)
        );
        assert_eq!(
            mode(Api::Messages, anthropic, "claude-opus-4-1", DisclosureSetting::Auto),
            Mode::Bridge
        );
        assert_eq!(
            mode(Api::Messages, "localhost", "claude-opus-4-5", DisclosureSetting::Auto),
            Mode::Bridge
        );
        assert_eq!(
            mode(Api::Responses, openai, "gpt-5.4", DisclosureSetting::Auto),
            Mode::Reference(ReferenceKind::SearchOutput)
        );
        assert_eq!(
            mode(Api::Responses, openai, "gpt-4o-mini", DisclosureSetting::Auto),
            Mode::Reference(ReferenceKind::AdditionalTools)
        );
        assert_eq!(mode(Api::Chat, openai, "gpt-5.4", DisclosureSetting::Auto), Mode::Bridge);
        assert_eq!(mode(Api::Chat, openai, "gpt-5.4", DisclosureSetting::Append), Mode::Append);
        assert_eq!(at(Api::Chat, openai, "gpt-5.4", RequestedMode::Off, Some(Mode::Bridge)), None);
    }

    #[test]
    fn a_conversation_goes_on_as_it_began_while_that_works() {
        let past = |mode| {
            at(
                Api::Messages,
                "api.anthropic.com",
                "claude-opus-5",
                DisclosureSetting::Auto,
                Some(mode),
            )
        };
        let begun = "the conversation began so".to_owned();
        assert_eq!(past(Mode::Bridge), Some((Mode::Bridge, begun)));
        assert_ne!(
            past(Mode::Hosted(HostedSearch::Namespaces)).unwrap().0,
            Mode::Hosted(HostedSearch::Namespaces)
        );
    }
}
