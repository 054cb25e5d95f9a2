//! Checks a response before a caller with a limited scope gets any of it.
//!
//! Hidden rounds already answer most calls of tools that the caller does not have. This check does not rely on them. It
//! reads the response that is about to be forwarded, in the client's API. It allows the response only if the request,
//! without the tools outside the scope, declares every tool that is called. A response that cannot be read is withheld
//! too, because the client may be able to read it.
//!
//! Reading order: `declared_tools` (what a request declares), `calls` (the calls in a JSON value), this file (complete
//! bodies and streams).

mod calls;
mod declared_tools;

use bytes::Bytes;

use self::calls::{ResponseKind, StreamedCallNames};
use self::declared_tools::DeclaredTools;
use crate::sse::{Decoder, Event};

/// Why a response is withheld from a caller with a limited scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WithheldReason {
    /// The response is compressed, although the request does not allow that.
    #[error("it is compressed")]
    Compressed,
    /// A complete response is not a JSON object in UTF-8.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// A stream contains something other than events with JSON objects as their data.
    #[error("it is not a stream of events with JSON objects")]
    NotEventStream,
    /// A key occurs twice in one object, or in an unusual spelling. Parsers disagree on how to read such an object.
    #[error("a key occurs twice in one object, or in an unusual spelling")]
    DuplicateKey,
    /// The response is nested deeper than any response of these APIs, or it has too many calls.
    #[error("it is nested too deeply or has too many calls")]
    TooComplex,
    /// The response contains a call whose tool cannot be determined.
    #[error("it has a call in an unknown form")]
    UnknownForm,
    /// The response contains a call of a tool that the request does not declare.
    #[error("it calls a tool that this caller does not have")]
    UndeclaredTool,
}

/// Checks all responses to one request.
#[derive(Debug)]
pub(crate) struct ResponseCheck {
    declared: DeclaredTools,
    names: StreamedCallNames,
    decoder: Decoder,
}

impl ResponseCheck {
    /// Creates a check. `request` is a body from which the tools outside the caller's scope were removed.
    pub(crate) fn new(request: &[u8]) -> Self {
        Self {
            declared: DeclaredTools::read(request),
            names: StreamedCallNames::default(),
            decoder: Decoder::default(),
        }
    }

    /// Checks a response that was received completely. `is_events` says whether its body is a stream of events.
    pub(crate) fn complete(&mut self, body: &[u8], is_events: bool) -> Result<(), WithheldReason> {
        if is_events {
            self.events(body, &mut Vec::new())?;
            return self.rest().map(drop);
        }
        let text = std::str::from_utf8(body).map_err(|_| WithheldReason::NotAnObject)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.trim_ascii_start().starts_with('{') {
            return Err(WithheldReason::NotAnObject);
        }
        calls::check(text, ResponseKind::Complete, &self.declared, &mut self.names)
    }

    /// Checks bytes of a stream. Complete events are appended to `out`, up to the first event that is not allowed.
    pub(crate) fn events(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WithheldReason> {
        self.decoder.push(bytes);
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => {
                    self.event(&event)?;
                    out.extend_from_slice(event.raw());
                }
                Ok(None) => return Ok(()),
                Err(_) => return Err(WithheldReason::NotEventStream),
            }
        }
    }

    /// Checks the end of a stream, and returns the bytes after the last complete event. They may be an event too,
    /// because some servers omit the blank line after the last event.
    pub(crate) fn rest(&mut self) -> Result<Bytes, WithheldReason> {
        let rest = self.decoder.take_rest();
        self.event(&Event::from_bytes(rest.clone()))?;
        Ok(rest)
    }

    /// Returns the memory that an incomplete event takes, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    fn event(&mut self, event: &Event) -> Result<(), WithheldReason> {
        // A line that is not a field of an event may be JSON. Some clients read such JSON, whatever the content type
        // is.
        if !event.has_only_fields() {
            return Err(WithheldReason::NotEventStream);
        }
        let Some(data) = event.data() else { return Ok(()) };
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if !data.starts_with('{') {
            return Err(WithheldReason::NotEventStream);
        }
        match calls::check(data, ResponseKind::Event, &self.declared, &mut self.names) {
            Err(WithheldReason::NotAnObject) => return Err(WithheldReason::NotEventStream),
            result => result?,
        }
        // Some clients parse each line of an event separately, and skip lines that they cannot parse.
        for line in data.lines().filter(|_| data.contains('\n')) {
            match calls::check(line.trim(), ResponseKind::Event, &self.declared, &mut self.names) {
                Err(WithheldReason::NotAnObject) | Ok(()) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}
