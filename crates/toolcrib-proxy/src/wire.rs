//! What stands between a turn and the wire.
//!
//! Most upstreams speak the client's API, and then nothing does. Others speak another API, or an older
//! state of the same: what goes up is put into their words and what comes down into the client's, and
//! nobody above has to know. Each round is translated by itself, since its request tells all there is.

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use toolcrib_dialect::messages::unbind::strip_thinking;
use toolcrib_dialect::sse::{Decoder, Event};
use toolcrib_dialect::translate::{Adapter, Untranslatable, adapter};
use toolcrib_dialect::{Api, Inbound};

use crate::upstream::{Answer, Lost};

/// How requests of one client are put for one upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    /// The client's API.
    pub(crate) api: Api,
    /// The upstream's, where that is another.
    pub(crate) speaks: Option<Api>,
    /// Whether namespaces and the client's own search are to be said in plain functions.
    pub(crate) plain: bool,
    /// Whether thinking is left out: it was signed for a prompt that is no more.
    pub(crate) unbound: bool,
}

/// One round in other words.
pub(crate) struct Translation {
    inbound: Option<Inbound>,
    adapter: Option<Adapter>,
    decoder: Decoder,
}

impl Words {
    /// As they are.
    pub(crate) fn own(api: Api) -> Self {
        Self { api, speaks: None, plain: false, unbound: false }
    }

    /// Whether anything is said in other words.
    pub(crate) fn translates(self) -> bool {
        self.speaks.is_some() || self.plain || self.unbound
    }

    /// A body in the upstream's words, the path it goes to where that is another, and the way back.
    pub(crate) fn put(
        self,
        body: String,
    ) -> Result<(String, Option<&'static str>, Translation), Untranslatable> {
        let mut body = if self.unbound { strip_thinking(&body) } else { body };
        let inbound = if self.plain { Inbound::read(&body) } else { None };
        if let Some(inbound) = &inbound {
            inbound.request().clone_into(&mut body);
        }
        let mut path = None;
        let mut adapter = self.speaks.and_then(|speaks| adapter(self.api, speaks));
        if let Some(adapter) = &mut adapter {
            let adapted = adapter.request(&body)?;
            if !adapter.dropped().is_empty() {
                tracing::debug!(dropped = ?adapter.dropped(), "the upstream's API has no words for it");
            }
            (body, path) = (adapted.body, Some(adapted.path));
        }
        Ok((body, path, Translation { inbound, adapter, decoder: Decoder::default() }))
    }
}

impl Translation {
    fn changes(&self) -> bool {
        self.inbound.is_some() || self.adapter.is_some()
    }

    /// An answer in the client's words.
    pub(crate) async fn back(mut self, mut answer: Answer) -> Result<Answer, Lost> {
        if !self.changes() {
            return Ok(answer);
        }
        // Its length, and what guards it, are those of other words.
        for name in ["content-length", "content-md5", "digest", "etag"] {
            answer.headers.remove(name);
        }
        if !answer.is_events() {
            let status = answer.status;
            let (mut answer, body) = answer.parted().await?;
            let (status, body) = self.whole(status.as_u16(), &body);
            if let Ok(status) = axum::http::StatusCode::from_u16(status) {
                answer.status = status;
            }
            answer.body = Box::pin(stream::iter([Ok(Bytes::from(body))]));
            return Ok(answer);
        }
        let body = std::mem::replace(&mut answer.body, Box::pin(stream::empty()));
        let ended = body.map(Some).chain(stream::iter([None]));
        answer.body = Box::pin(ended.map(move |chunk| {
            let mut out = Vec::new();
            match chunk {
                Some(Ok(bytes)) => self.bytes(&bytes, &mut out),
                Some(Err(lost)) => return Err(lost),
                None => self.end(&mut out),
            }
            Ok(Bytes::from(out))
        }));
        Ok(answer)
    }

    fn whole(&mut self, status: u16, body: &[u8]) -> (u16, Vec<u8>) {
        let (status, body) = match &mut self.adapter {
            Some(adapter) => {
                let answer = adapter.whole(status, body);
                (answer.status, answer.body)
            }
            None => (status, body.to_vec()),
        };
        match (&self.inbound, std::str::from_utf8(&body)) {
            (Some(inbound), Ok(text)) => (status, inbound.whole(text).into_bytes()),
            _ => (status, body),
        }
    }

    fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match &mut self.adapter {
            Some(adapter) => {
                let mut theirs = Vec::new();
                adapter.bytes(bytes, &mut theirs);
                self.events(&theirs, out);
            }
            None => self.events(bytes, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(adapter) = &mut self.adapter {
            let mut theirs = Vec::new();
            adapter.end(&mut theirs);
            self.events(&theirs, out);
        }
        let rest = self.decoder.rest();
        match &mut self.inbound {
            // Some servers forget the blank line after the last event.
            Some(inbound) if !rest.is_empty() => inbound.event(&Event::from_bytes(rest), out),
            _ => out.extend_from_slice(&rest),
        }
    }

    fn events(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(inbound) = &mut self.inbound else {
            out.extend_from_slice(bytes);
            return;
        };
        self.decoder.push(bytes);
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => inbound.event(&event, out),
                Ok(None) => return,
                // Whoever reads next has the same limit, and says so.
                Err(_) => return out.extend_from_slice(&self.decoder.rest()),
            }
        }
    }
}
