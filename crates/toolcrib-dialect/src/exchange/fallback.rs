//! Chooses the mode of a request, and another one if the upstream refuses it.
//!
//! An upstream shows that it does not know a feature when it first meets it: with the first round, or with
//! the first answer to a search. The request is then sent again in another mode. The client sees nothing
//! of it, and the refusal is remembered once the other mode has worked.

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

/// Maximum number of times that a request is sent again after a refusal.
const FALLBACKS: usize = 4;

/// The mode of a request, and what is known about others.
#[derive(Debug)]
pub(super) struct Fallback {
    api: Api,
    upstream: UpstreamDescription,
    now: u64,
    requested: RequestedMode,
    settings: Arc<Settings>,
    /// How the conversation deferred before.
    begun: Option<Mode>,
    /// What is known of refusals, with those of this request.
    learned: LearnedUnsupported,
    /// Whether there is a refusal that is not remembered yet.
    learns: bool,
    /// Whether thinking is left out.
    without_thinking: bool,
    times: usize,
}

/// One way to send a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) mode: Mode,
    pub(super) reason: ModeReason,
    /// Beta features it needs.
    pub(super) betas: &'static [&'static str],
    pub(super) without_thinking: bool,
}

impl Attempt {
    /// Nothing is deferred, so that the mode does not matter.
    pub(super) const PLAIN: Self = Self {
        mode: Mode::Bridge,
        reason: ModeReason::Configured,
        betas: &[],
        without_thinking: false,
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
            begun: None,
            learned,
            learns: false,
            without_thinking: false,
            times: 0,
        }
    }

    pub(super) fn requested(&self) -> RequestedMode {
        self.requested
    }

    /// The conversation deferred like this before.
    pub(super) fn continues(&mut self, begun: Option<Mode>) {
        self.begun = begun;
    }

    /// What the upstream can do natively, as far as is known.
    pub(super) fn capability(&self, model: &str) -> Capability {
        // A request in another API's words has only that API's features.
        let api = self.upstream.other_api.unwrap_or(self.api);
        let overrides = self.upstream.overrides.as_ref();
        capability::resolve_capability(
            api,
            &self.upstream.host,
            model,
            overrides,
            &self.learned,
            self.now,
        )
    }

    /// The way to send the request as things stand; `None` if nothing is to be deferred.
    pub(super) fn attempt(&self, model: &str) -> Option<Attempt> {
        let capability = self.capability(model);
        // A search of the provider's loads what it finds, whatever the settings: only references are at issue.
        let capability = match self.requested {
            RequestedMode::Defer(DisclosureSetting::Hosted) => capability,
            _ => capability.allowed_by(&self.settings),
        };
        let otherwise = self.settings.fallback;
        let (mode, reason) =
            choose_mode(self.api, self.requested, &capability, otherwise, self.begun)?;
        let betas = if mode.is_native() { capability.betas } else { &[] };
        Some(Attempt { mode, reason, betas, without_thinking: self.without_thinking })
    }

    /// Whether a response with this status may be a refusal that leads to another attempt.
    pub(super) fn may_follow(&self, status: u16) -> bool {
        matches!(status, 400 | 422) && self.times < FALLBACKS
    }

    /// Takes an error in; `Some` if there is another way to try.
    pub(super) fn refused(
        &mut self,
        mode: Mode,
        model: &str,
        status: u16,
        body: &[u8],
    ) -> Option<ModeFallback> {
        if !self.may_follow(status) {
            return None;
        }
        let unsupported = capability::detect_unsupported_feature(self.api, status, body)
            .filter(|_| mode.is_native());
        if let Some(feature) = unsupported {
            self.learned.learn(self.api, &self.upstream.host, model, feature, self.now);
            self.learns = true;
        } else if mode.is_native() && capability::is_feature_misused(self.api, status, body) {
            let plain =
                DisclosureSetting::from(self.settings.fallback.unwrap_or(DisclosureKind::Bridge))
                    .into();
            (self.requested, self.begun) = (plain, None);
        } else if !self.without_thinking && capability::is_thinking_rejected(body) {
            self.without_thinking = true;
        } else {
            return None;
        }
        self.times += 1;
        Some(ModeFallback { from: mode, unsupported })
    }

    /// The refusals to remember, once the request has worked without what was refused.
    pub(super) fn worked(&mut self) -> Option<LearnedUnsupported> {
        std::mem::take(&mut self.learns).then(|| self.learned.clone())
    }
}

/// Whether an upstream supports the way in which a client defers tools itself.
pub(super) fn understands(api: Api, defers: ClientDeferral, capability: &Capability) -> bool {
    match (api, defers) {
        (_, ClientDeferral::OwnSearch) => true,
        (Api::Messages, ClientDeferral::Hosted) => capability.hosted != HostedSupport::None,
        (Api::Messages, ClientDeferral::References) => capability.references,
        _ => capability.client_search || capability.hosted == HostedSupport::OpenAi,
    }
}

/// What is decided about a request that is sent in this way.
pub(super) fn report(toolset: &Toolset, attempt: &Attempt) -> DecisionReport {
    let why = toolset.why();
    let (mode, why) = if toolset.passes_through() {
        (PassthroughReason::NotDeferred(why).mode_name(), why.to_string())
    } else {
        (toolset.mode().name(), format!("{why}; {}", attempt.reason))
    };
    let (tokens_before, tokens_after) = toolset.tokens();
    DecisionReport {
        mode,
        reason: why,
        tools: toolset.len(),
        deferred: toolset.deferred(),
        tokens_before,
        tokens_after,
    }
}
