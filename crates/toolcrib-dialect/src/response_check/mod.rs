//! Checks a response before a caller with a limited scope gets any of it.
//!
//! Hidden rounds already answer most calls of tools that the caller does not have. This check does not rely on
//! them: it reads what is about to be forwarded, in the client's API, and allows it only if every call is of a tool
//! that the request declares after narrowing. What cannot be read is not forwarded either, because the client may be
//! able to read it.
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
    /// It is compressed, although the request does not allow that.
    #[error("it is compressed")]
    Compressed,
    /// A complete response that is not a JSON object in UTF-8.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// A stream that is not made of events with JSON objects as their data.
    #[error("it is not a stream of events with JSON objects")]
    NotEventStream,
    /// A key occurs twice, and parsers disagree on which of the two counts.
    #[error("a key occurs twice in one object, or in an unusual spelling")]
    DuplicateKey,
    /// It is nested deeper than any response of these APIs, or has more calls than a turn may have.
    #[error("it is nested too deeply or has too many calls")]
    TooComplex,
    /// A call whose tool cannot be determined.
    #[error("it has a call in a form that is not known")]
    UnknownForm,
    /// A call of a tool that the request does not declare.
    #[error("it calls a tool that this caller does not have")]
    UndeclaredTool,
}

/// Checks the responses to one request.
#[derive(Debug)]
pub(crate) struct ResponseCheck {
    declared: DeclaredTools,
    names: StreamedCallNames,
    decoder: Decoder,
}

impl ResponseCheck {
    /// Creates a check against the tools in a body that was narrowed.
    pub(crate) fn new(request: &[u8]) -> Self {
        Self {
            declared: DeclaredTools::read(request),
            names: StreamedCallNames::default(),
            decoder: Decoder::default(),
        }
    }

    /// Checks a complete response.
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

    /// Checks bytes of a stream. Complete events are appended to `out`, up to the first event with a call that is not
    /// allowed.
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

    /// Checks the end of a stream. Some servers omit the blank line after the last event.
    pub(crate) fn rest(&mut self) -> Result<Bytes, WithheldReason> {
        let rest = self.decoder.take_rest();
        self.event(&Event::from_bytes(rest.clone()))?;
        Ok(rest)
    }

    /// Memory taken by an incomplete event, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    fn event(&mut self, event: &Event) -> Result<(), WithheldReason> {
        // A line that is not a field of an event may be JSON, which some clients read whatever the content type is.
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
        // Some clients read each line of an event on its own, and skip what they cannot parse.
        for line in data.lines().filter(|_| data.contains('\n')) {
            match calls::check(line.trim(), ResponseKind::Event, &self.declared, &mut self.names) {
                Err(WithheldReason::NotAnObject) | Ok(()) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }
}
