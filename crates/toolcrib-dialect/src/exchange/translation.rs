//! Translates requests and responses between the client's API and the upstream's.
//!
//! Most upstreams speak the client's API and need no translation. Others speak another API, or an older
//! version of the same: requests are translated for them and responses translated back, and the rest of an
//! exchange works in the client's API throughout. Each round is translated separately, since
//! its request has everything that is needed.

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
    pub(super) api: Api,
    /// The upstream's, if that is another.
    pub(super) speaks: Option<Api>,
    /// Whether namespaces and the client's own search are written as plain functions.
    pub(super) plain: bool,
    /// Whether thinking is left out: it was signed for a prompt that is no more.
    pub(super) without_thinking: bool,
    pub(super) limits: ResponseLimits,
}

/// A request as the upstream gets it.
pub(super) struct Translated {
    pub(super) body: String,
    /// The path it goes to, if that is another.
    pub(super) path: Option<&'static str>,
    /// What the upstream's API has no words for.
    pub(super) dropped: Vec<String>,
}

/// The way back: one round's response, in the client's API.
#[derive(Debug)]
pub(super) struct Translation {
    emulation: Option<DeferralEmulation>,
    adapter: Option<Adapter>,
    decoder: Decoder,
}

impl Translator {
    /// Whether anything is translated.
    pub(super) fn translates(self) -> bool {
        self.speaks.is_some() || self.plain || self.without_thinking
    }

    /// A body for the upstream, and the way back for its response.
    pub(super) fn request(self, body: String) -> Result<(Translated, Translation), Untranslatable> {
        let mut body = if self.without_thinking { strip_thinking(&body) } else { body };
        let emulation = if self.plain { DeferralEmulation::read(&body) } else { None };
        if let Some(emulation) = &emulation {
            emulation.request().clone_into(&mut body);
        }
        let (mut path, mut dropped) = (None, Vec::new());
        let adapter = self.speaks.and_then(|speaks| adapter(self.api, speaks));
        let mut adapter = adapter.map(|adapter| adapter.with_limits(self.limits));
        if let Some(adapter) = &mut adapter {
            let adapted = adapter.request(&body)?;
            adapter.dropped().clone_into(&mut dropped);
            (body, path) = (adapted.body, Some(adapted.path));
        }
        let back = Translation { emulation, adapter, decoder: Decoder::default() };
        Ok((Translated { body, path, dropped }, back))
    }
}

impl Translation {
    /// Whether the response must be translated back.
    pub(super) fn changes(&self) -> bool {
        self.emulation.is_some() || self.adapter.is_some()
    }

    /// A complete response: its status and its body.
    pub(super) fn whole(&mut self, status: u16, body: Vec<u8>) -> (u16, Vec<u8>) {
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

    /// Takes bytes of a streamed response; those of the client's API go to `out`.
    pub(super) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.adapter {
            Some(adapter) => {
                let mut theirs = Vec::new();
                adapter.bytes(bytes, &mut theirs);
                self.events(&theirs, out);
            }
            None => self.events(bytes, out),
        }
    }

    /// The limit that the response exceeded, if it did. The client was told.
    pub(super) fn exceeded(&self) -> Option<LimitExceeded> {
        self.adapter.as_ref().and_then(Adapter::exceeded)
    }

    /// Bytes of the response that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.adapter.as_ref().map_or(0, Adapter::held_bytes) + self.decoder.held_bytes()
    }

    /// The streamed response is over.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(adapter) = &mut self.adapter {
            let mut theirs = Vec::new();
            adapter.end(&mut theirs);
            self.events(&theirs, out);
        }
        let rest = self.decoder.take_rest();
        match &mut self.emulation {
            // Some servers forget the blank line after the last event.
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
                // Too large to translate: forwarded as it is. A turn, if there is one, reports it.
                Err(_) => return out.extend_from_slice(&self.decoder.take_rest()),
            }
        }
    }
}
