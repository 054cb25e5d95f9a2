//! Chooses the mode in which a request is sent. If the upstream does not support this mode, chooses another one.
//!
//! An upstream rejects an unsupported feature the first time that a request uses it: in the first round, or with the
//! first answer to a search. The request is then sent again in another mode. The client does not notice, and the
//! unsupported feature is remembered once the other mode has worked.

use std::sync::Arc;

use toolcrib_core::Settings;
use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};

use crate::api::Api;
use crate::capability::{self, Capability, HostedSupport, LearnedUnsupported};
use crate::mode::{Mode, ModeReason, RequestedMode, choose_mode};
use crate::passthrough::PassthroughReason;
use crate::request::ClientDeferral;
use crate::toolset::Toolset;

use super::action::{DecisionReport, ModeFallback, UpstreamDescription};

/// Maximum number of times that a request is sent again in another mode.
const MAX_FALLBACKS: usize = 4;

/// Chooses the mode of each attempt to send a request.
#[derive(Debug)]
pub(super) struct Fallback {
    api: Api,
    upstream: UpstreamDescription,
    now: u64,
    requested: RequestedMode,
    settings: Arc<Settings>,
    /// The mode that earlier turns of the conversation used, if any.
    conversation_mode: Option<Mode>,
    /// Features that the upstream is known not to support, including those that it rejected in this exchange.
    learned: LearnedUnsupported,
    /// Whether the upstream rejected a feature in this exchange, and no attempt has succeeded after that rejection.
    has_unconfirmed: bool,
    /// Whether thinking blocks are removed from the request.
    strips_thinking: bool,
    fallbacks: usize,
}

/// One attempt to send a request, in one mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) mode: Mode,
    pub(super) reason: ModeReason,
    /// Beta features to request, because the mode needs them.
    pub(super) betas: &'static [&'static str],
    pub(super) strips_thinking: bool,
}

impl Attempt {
    /// An attempt that defers nothing. Its mode has no effect.
    pub(super) const PASSTHROUGH: Self = Self {
        mode: Mode::Bridge,
        reason: ModeReason::Configured,
        betas: &[],
        strips_thinking: false,
    };
}

impl Fallback {
    pub(super) fn new(
        api: Api,
        upstream: UpstreamDescription,
        (requested, settings): (RequestedMode, Arc<Settings>),
        learned: LearnedUnsupported,
        now: u64,
    ) -> Self {
        Self {
            api,
            upstream,
            now,
            requested,
            settings,
            conversation_mode: None,
            learned,
            has_unconfirmed: false,
            strips_thinking: false,
            fallbacks: 0,
        }
    }

    pub(super) fn requested(&self) -> RequestedMode {
        self.requested
    }

    pub(super) fn set_conversation_mode(&mut self, mode: Option<Mode>) {
        self.conversation_mode = mode;
    }

    /// Returns the native features of the upstream, as far as they are known.
    pub(super) fn capability(&self, model: &str) -> Capability {
        // A request that is translated to another API can use only that API's features.
        let api = self.upstream.other_api.unwrap_or(self.api);
        capability::resolve_capability(
            api,
            &self.upstream.host,
            model,
            self.upstream.overrides.as_ref(),
            &self.learned,
            self.now,
        )
    }

    /// Returns how to send the request, according to the features that are known now. Returns `None` if nothing is to
    /// be deferred.
    pub(super) fn next_attempt(&self, model: &str) -> Option<Attempt> {
        let capability = self.capability(model);
        // The setting `reveals` restricts only references. It is ignored if hosted search is requested, because a
        // hosted search always loads the tools that it finds.
        let capability = match self.requested {
            RequestedMode::Defer(DisclosureSetting::Hosted) => capability,
            _ => capability.allowed_by(&self.settings),
        };
        let otherwise = self.settings.fallback;
        let (mode, reason) =
            choose_mode(self.api, self.requested, &capability, otherwise, self.conversation_mode)?;
        let betas = if mode.is_native() { capability.betas } else { &[] };
        Some(Attempt { mode, reason, betas, strips_thinking: self.strips_thinking })
    }

    /// Whether an error with this status may be answered by sending the request again.
    pub(super) fn can_fall_back(&self, status: u16) -> bool {
        matches!(status, 400 | 422) && self.fallbacks < MAX_FALLBACKS
    }

    /// Examines an error of the upstream, and prepares the next attempt if one may succeed. Returns `None` if the
    /// request should not be sent again.
    pub(super) fn try_fallback(
        &mut self,
        mode: Mode,
        model: &str,
        status: u16,
        body: &[u8],
    ) -> Option<ModeFallback> {
        if !self.can_fall_back(status) {
            return None;
        }
        let unsupported = capability::detect_unsupported_feature(self.api, status, body)
            .filter(|_| mode.is_native());
        if let Some(feature) = unsupported {
            self.learned.learn(self.api, &self.upstream.host, model, feature, self.now);
            self.has_unconfirmed = true;
        } else if mode.is_native() && capability::is_feature_misused(self.api, status, body) {
            let fallback = self.settings.fallback.unwrap_or(DisclosureKind::Bridge);
            self.requested = DisclosureSetting::from(fallback).into();
            self.conversation_mode = None;
        } else if !self.strips_thinking && capability::is_thinking_rejected(body) {
            self.strips_thinking = true;
        } else {
            return None;
        }
        self.fallbacks += 1;
        Some(ModeFallback { from: mode, unsupported })
    }

    /// Returns the unsupported features to remember, now that the request has succeeded without them. Returns `None` if
    /// the upstream rejected no feature in this exchange, or if this was already called after the last rejection.
    pub(super) fn confirm_unsupported(&mut self) -> Option<LearnedUnsupported> {
        std::mem::take(&mut self.has_unconfirmed).then(|| self.learned.clone())
    }
}

/// Whether an upstream supports the way in which a client defers tools itself.
pub(super) fn supports_client_deferral(
    api: Api,
    deferral: ClientDeferral,
    capability: &Capability,
) -> bool {
    match (api, deferral) {
        (_, ClientDeferral::OwnSearch) => true,
        (Api::Messages, ClientDeferral::Hosted) => capability.hosted != HostedSupport::None,
        (Api::Messages, ClientDeferral::References) => capability.references,
        _ => capability.client_search || capability.hosted == HostedSupport::OpenAi,
    }
}

/// Returns the report about a request that is sent with this toolset in this attempt.
pub(super) fn decision_report(toolset: &Toolset, attempt: &Attempt) -> DecisionReport {
    let deferral = toolset.deferral_reason();
    let (mode, reason) = if toolset.passes_through() {
        (PassthroughReason::NotDeferred(deferral).mode_name(), deferral.to_string())
    } else {
        (toolset.mode().name(), format!("{deferral}; {}", attempt.reason))
    };
    let (tokens_before, tokens_after) = toolset.tokens();
    DecisionReport {
        mode,
        reason,
        tools: toolset.len(),
        deferred: toolset.deferred(),
        tokens_before,
        tokens_after,
    }
}
