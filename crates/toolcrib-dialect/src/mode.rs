//! Chooses the mode: how deferred tools are shown to the model and become callable.
//!
//! Four modes are the engine's disclosures and work everywhere. Two more need a feature of the provider's API. With
//! references, a search is answered with blocks that load definitions. With hosted search, the provider runs the
//! search. Neither of these two changes `tools` after the first request.
//!
//! [`choose_mode`] chooses the mode of a conversation. Whether anything is deferred at all is decided in
//! [`passthrough`](crate::passthrough).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};

use crate::api::Api;
use crate::capability::{Capability, CapabilityReason, HostedSupport};

/// Maximum number of tools that one answer loads by reference. An answer that loads more reportedly invalidates the
/// provider's prompt cache.
pub(crate) const MAX_REFERENCES: usize = 5;

/// How deferred tools are shown and become callable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// The model sees `tool_search`, `tool_describe` and `tool_call`, whose definitions never change.
    Bridge,
    /// The model sees stubs. Each stub is replaced by the tool's definition once the tool is found.
    Reveal,
    /// The model sees names and parameters of all tools. A search returns the descriptions.
    Terse,
    /// The model sees a listing of the deferred tools. The definition of a found tool is appended to `tools`.
    Append,
    /// Toolcrib runs the search, and answers it with blocks of the API that load definitions.
    Reference(ReferenceKind),
    /// The provider runs the search.
    Hosted(HostedSearch),
}

/// How an API loads a definition in the middle of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReferenceKind {
    /// Anthropic: `tool_reference` blocks in a tool result. The tools are sent with `defer_loading`.
    ToolReference,
    /// OpenAI: `tool_search_output` as the answer to a `tool_search` that the client executes.
    SearchOutput,
    /// OpenAI: an `additional_tools` item after the result of a function call.
    AdditionalTools,
}

/// A search that the provider runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HostedSearch {
    /// Anthropic's search by regular expressions.
    Regex,
    /// Anthropic's search by keywords.
    Bm25,
    /// OpenAI's search over namespaces.
    Namespaces,
}

impl Mode {
    /// Whether the model sees a deferred tool only as a line in the listing. A turn that needs such a tool takes two
    /// requests, one of them for the search, so deferral must save more than half of the tokens. Reveal and terse are
    /// exempt from this check, because they show every tool and often save less than that.
    pub(crate) fn hides_tools(self) -> bool {
        !matches!(self, Self::Reveal | Self::Terse)
    }

    /// Returns the engine's disclosure for this mode. References and hosted search use the listing and the search tool
    /// of `append`, but append nothing to `tools`.
    pub(crate) fn kind(self) -> DisclosureKind {
        match self {
            Self::Bridge => DisclosureKind::Bridge,
            Self::Reveal => DisclosureKind::Reveal,
            Self::Terse => DisclosureKind::Terse,
            Self::Append | Self::Reference(_) | Self::Hosted(_) => DisclosureKind::Append,
        }
    }

    /// Whether the mode needs a native feature of the upstream.
    pub(crate) fn is_native(self) -> bool {
        matches!(self, Self::Reference(_) | Self::Hosted(_))
    }

    /// Whether `tools` changes when a tool is found.
    pub(crate) fn grows(self) -> bool {
        matches!(self, Self::Append | Self::Reveal)
    }

    /// Returns the name of the kind of reference or hosted search. Empty for all other modes.
    pub(crate) fn variant_name(self) -> &'static str {
        match self {
            Self::Reference(ReferenceKind::ToolReference) => "tool_reference",
            Self::Reference(ReferenceKind::SearchOutput) => "search_output",
            Self::Reference(ReferenceKind::AdditionalTools) => "additional_tools",
            Self::Hosted(HostedSearch::Regex) => "regex",
            Self::Hosted(HostedSearch::Bm25) => "bm25",
            Self::Hosted(HostedSearch::Namespaces) => "namespaces",
            Self::Bridge | Self::Reveal | Self::Terse | Self::Append => "",
        }
    }

    /// Returns the mode's name in headers, logs and configs.
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

/// The mode that was requested in the configuration, on the command line or in a header of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestedMode {
    /// Nothing is deferred.
    Off,
    /// Tools are deferred in this way or, if the upstream does not support it, in another way.
    ///
    /// `auto` never chooses hosted search: Toolcrib's ranking finds more, and the provider need not store the list of
    /// tools.
    Defer(DisclosureSetting),
}

impl RequestedMode {
    /// The names of all modes that can be requested.
    pub const NAMES: [&str; 8] =
        ["auto", "off", "bridge", "reveal", "terse", "append", "reference", "hosted"];

    /// Returns the mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
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
        Self::from_name(&name).ok_or_else(|| de::Error::unknown_variant(&name, &Self::NAMES))
    }
}

/// The schema of what [`RequestedMode::deserialize`] accepts.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for RequestedMode {
    fn schema_name() -> Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": Self::NAMES })
    }
}

/// Why a mode was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeReason {
    /// The configuration requests this mode.
    Configured,
    /// The conversation already uses this mode, and another mode would invalidate the prompt cache.
    AlreadyInUse,
    /// The upstream supports this native mode.
    Native(CapabilityReason),
    /// The upstream does not support the requested native mode.
    NativeUnavailable(CapabilityReason),
}

impl fmt::Display for ModeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured"),
            Self::AlreadyInUse => f.write_str("the conversation already uses this mode"),
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

/// Chooses the mode. `fallback` is used if the requested native mode is unavailable. `current` is the mode that the
/// conversation already uses. Returns `None` if tool search is off.
pub fn choose_mode(
    api: Api,
    requested: RequestedMode,
    capability: &Capability,
    fallback: Option<DisclosureKind>,
    current: Option<Mode>,
) -> Option<(Mode, ModeReason)> {
    let RequestedMode::Defer(setting) = requested else { return None };
    if let Some(mode) = current.filter(|mode| is_supported(api, *mode, capability)) {
        return Some((mode, ModeReason::AlreadyInUse));
    }
    let native = match setting {
        DisclosureSetting::Auto | DisclosureSetting::Reference => {
            supported_reference(api, capability).map(Mode::Reference)
        }
        DisclosureSetting::Hosted => supported_hosted_search(api, capability).map(Mode::Hosted),
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

/// Whether the upstream supports a mode.
fn is_supported(api: Api, mode: Mode, capability: &Capability) -> bool {
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

fn supported_reference(api: Api, capability: &Capability) -> Option<ReferenceKind> {
    match api {
        Api::Messages if capability.references => Some(ReferenceKind::ToolReference),
        Api::Responses if capability.client_search => Some(ReferenceKind::SearchOutput),
        Api::Responses if capability.additional_tools => Some(ReferenceKind::AdditionalTools),
        _ => None,
    }
}

fn supported_hosted_search(api: Api, capability: &Capability) -> Option<HostedSearch> {
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
    fn auto_is_native_if_supported_and_the_bridge_otherwise() {
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
    fn a_conversation_keeps_its_mode_while_it_is_supported() {
        let past = |mode| {
            at(
                Api::Messages,
                "api.anthropic.com",
                "claude-opus-5",
                DisclosureSetting::Auto,
                Some(mode),
            )
        };
        let in_use = "the conversation already uses this mode".to_owned();
        assert_eq!(past(Mode::Bridge), Some((Mode::Bridge, in_use)));
        assert_ne!(
            past(Mode::Hosted(HostedSearch::Namespaces)).unwrap().0,
            Mode::Hosted(HostedSearch::Namespaces)
        );
    }
}
