//! Translates requests and responses between the client's API and the upstream's.
//!
//! Most upstreams speak the client's API and need no translation. Others speak another API, or an older version of the
//! same API. For these, requests are translated, and their responses are translated back. All other parts of an
//! exchange work in the client's API. Rounds are translated independently of each other, because the request of each
//! round contains everything that its translation needs.

use crate::api::Api;
use crate::limits::{LimitExceeded, ResponseLimits};
use crate::messages::thinking::strip_thinking;
use crate::responses::DeferralEmulation;
use crate::sse::{Decoder, Event};
use crate::translate::{Adapter, Untranslatable, adapter};

/// How the requests of one exchange are translated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Translator {
    /// The client's API.
    api: Api,
    /// The upstream's API, if it differs from the client's.
    other_api: Option<Api>,
    /// Whether the client's namespaces and its own search are replaced by plain functions.
    pub(super) emulates_deferral: bool,
    /// Whether thinking blocks are removed, because the upstream rejected their signatures.
    pub(super) strips_thinking: bool,
    limits: ResponseLimits,
}

pub(super) struct TranslatedRequest {
    pub(super) body: String,
    /// The path to send the request to, if it differs from the path of the client's request.
    pub(super) path: Option<&'static str>,
    /// Parts of the request that the upstream's API cannot express.
    pub(super) dropped: Vec<String>,
}

/// Translates the response of one round into the client's API.
#[derive(Debug)]
pub(super) struct ResponseTranslation {
    emulation: Option<DeferralEmulation>,
    adapter: Option<Adapter>,
    decoder: Decoder,
}

impl Translator {
    pub(super) fn new(api: Api, other_api: Option<Api>, limits: ResponseLimits) -> Self {
        Self { api, other_api, emulates_deferral: false, strips_thinking: false, limits }
    }

    /// Whether the upstream's API differs from the client's.
    pub(super) fn has_other_api(self) -> bool {
        self.other_api.is_some()
    }

    /// Whether requests must be changed in any way.
    pub(super) fn is_needed(self) -> bool {
        self.other_api.is_some() || self.emulates_deferral || self.strips_thinking
    }

    /// Translates a request. Also returns the translation for the response to this request.
    pub(super) fn translate_request(
        self,
        body: String,
    ) -> Result<(TranslatedRequest, ResponseTranslation), Untranslatable> {
        let mut body = if self.strips_thinking { strip_thinking(&body) } else { body };
        let emulation = if self.emulates_deferral { DeferralEmulation::read(&body) } else { None };
        if let Some(emulation) = &emulation {
            emulation.request().clone_into(&mut body);
        }
        let (mut path, mut dropped) = (None, Vec::new());
        let adapter = self.other_api.and_then(|other| adapter(self.api, other));
        let mut adapter = adapter.map(|adapter| adapter.with_limits(self.limits));
        if let Some(adapter) = &mut adapter {
            let adapted = adapter.request(&body)?;
            adapter.dropped().clone_into(&mut dropped);
            (body, path) = (adapted.body, Some(adapted.path));
        }
        let response = ResponseTranslation { emulation, adapter, decoder: Decoder::default() };
        Ok((TranslatedRequest { body, path, dropped }, response))
    }
}

impl ResponseTranslation {
    /// Whether the response must be translated.
    pub(super) fn is_needed(&self) -> bool {
        self.emulation.is_some() || self.adapter.is_some()
    }

    /// Translates a complete response, and returns the status and body for the client.
    pub(super) fn complete_response(&mut self, status: u16, body: Vec<u8>) -> (u16, Vec<u8>) {
        let (status, body) = match &mut self.adapter {
            Some(adapter) => {
                let answer = adapter.complete_response(status, &body);
                (answer.status, answer.body)
            }
            None => (status, body),
        };
        match (&self.emulation, std::str::from_utf8(&body)) {
            (Some(emulation), Ok(text)) => (status, emulation.restore_response(text).into_bytes()),
            _ => (status, body),
        }
    }

    /// Translates bytes of a streamed response, and appends the bytes for the client to `out`.
    pub(super) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.adapter {
            Some(adapter) => {
                let mut translated = Vec::new();
                adapter.bytes(bytes, &mut translated);
                self.events(&translated, out);
            }
            None => self.events(bytes, out),
        }
    }

    /// Returns the limit that the response exceeded, if any. The error event for the client is already written.
    pub(super) fn exceeded(&self) -> Option<LimitExceeded> {
        self.adapter.as_ref().and_then(Adapter::exceeded)
    }

    /// Returns how many bytes of the response are held in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.adapter.as_ref().map_or(0, Adapter::held_bytes) + self.decoder.held_bytes()
    }

    /// Ends a streamed response, and appends the remaining bytes for the client to `out`.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(adapter) = &mut self.adapter {
            let mut translated = Vec::new();
            adapter.end(&mut translated);
            self.events(&translated, out);
        }
        let rest = self.decoder.take_rest();
        match &mut self.emulation {
            // Some servers omit the blank line after the last event, so the rest may be an event.
            Some(emulation) if !rest.is_empty() => {
                emulation.restore_event(&Event::from_bytes(rest), out);
            }
            _ => out.extend_from_slice(&rest),
        }
    }

    fn events(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(emulation) = &mut self.emulation else {
            out.extend_from_slice(bytes);
            return;
        };
        self.decoder.push(bytes);
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => emulation.restore_event(&event, out),
                Ok(None) => return,
                // The event is too large to be translated, so it is forwarded unchanged. If there is a turn, the turn
                // ends with an error when it reads this event.
                Err(_) => return out.extend_from_slice(&self.decoder.take_rest()),
            }
        }
    }
}
