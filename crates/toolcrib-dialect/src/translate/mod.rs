//! Translates between a client of one API and a backend of another.
//!
//! Claude Code uses Messages and Codex uses Responses, but most self-hosted backends support only Chat Completions. The
//! rounds of an [`Exchange`](crate::Exchange) always use the client's API. An [`Adapter`] translates the request of
//! each round to Chat Completions, and the backend's response to the client's API.
//!
//! ```text
//! a round's body  ──► adapter.request()           ──► backend
//! its events      ◄── adapter.bytes()             ◄── backend, streaming
//! its response    ◄── adapter.complete_response() ◄── backend, otherwise
//! ```
//!
//! The translation is deterministic, and the translation of a longer history begins with the bytes of the shorter one,
//! so that the backend's prompt cache works. The translation is not lossless: content without a counterpart is left out
//! and listed in [`Adapter::dropped`].
//!
//! Reading order: `chat_request` (requests), `chat_response` and `chunk_assembler` (complete and streamed responses),
//! `backend_error`, and one folder for each client API.

mod backend_error;
mod chat_request;
mod chat_response;
mod chunk_assembler;
mod lenient;
mod messages;
mod responses;

use self::backend_error::BackendError;
use self::chat_response::ChatResponse;
use self::chunk_assembler::{ChunkAssembler, StreamStep};
use self::lenient::DroppedContent;
use crate::api::Api;
use crate::limits::{LimitExceeded, ResponseLimits};
use crate::sse::{Decoder, Event};

/// A translated request for the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedRequest {
    /// The path of the request.
    pub path: &'static str,
    /// The body of the request.
    pub body: String,
}

/// A response, translated to the client's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedResponse {
    /// The backend's status, or an error status if the backend reported success but the response was invalid.
    pub status: u16,
    /// The body of the response.
    pub body: Vec<u8>,
}

/// The reason why a request cannot be translated to the upstream's API. The client must change the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    /// The body is not a JSON object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// This field of the request refers to state on the servers of the client's API.
    #[error(
        "`{0}` refers to state on a server, but this backend stores none: send the complete history"
    )]
    NeedsServerState(&'static str),
}

impl Untranslatable {
    /// Returns the field that caused the error. OpenAI's errors report it as `param`.
    pub fn param(self) -> Option<&'static str> {
        match self {
            Self::NotAnObject => None,
            Self::NeedsServerState(field) => Some(field),
        }
    }
}

/// Returns the adapter for a client that uses `from` and a backend that uses `to`. Returns `None` if this translation
/// is not supported.
pub fn adapter(from: Api, to: Api) -> Option<Adapter> {
    let client: Box<dyn ClientApi> = match (from, to) {
        (Api::Messages, Api::Chat) => Box::<messages::MessagesOverChat>::default(),
        (Api::Responses, Api::Chat) => Box::<responses::ResponsesOverChat>::default(),
        _ => return None,
    };
    Some(Adapter {
        client,
        decoder: Decoder::default(),
        assembler: ChunkAssembler::default(),
        dropped: Vec::new(),
        limits: ResponseLimits::default(),
        exceeded: None,
    })
}

/// One client API, translated to and from Chat Completions.
trait ClientApi: Send {
    /// Translates a request, and resets the state of the previous round.
    fn translate_request(
        &mut self,
        body: &str,
        dropped: &mut DroppedContent,
    ) -> Result<String, Untranslatable>;

    /// Translates a complete response.
    fn translate_response(&self, response: &ChatResponse) -> String;

    /// Returns an error body in the client's API.
    fn translate_error(&self, error: &BackendError) -> String;

    /// Returns the number of bytes that are held in memory because the end of a streamed response repeats them.
    fn held_bytes(&self) -> usize;

    /// Writes the events for one step of a streamed response.
    fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>);
}

/// Translates all rounds of a turn between the client's API and the backend's.
pub struct Adapter {
    client: Box<dyn ClientApi>,
    decoder: Decoder,
    assembler: ChunkAssembler,
    dropped: Vec<String>,
    limits: ResponseLimits,
    exceeded: Option<LimitExceeded>,
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapter").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}

impl Adapter {
    /// Sets the limits on the parts of a response that are held in memory.
    #[must_use]
    pub fn with_limits(mut self, limits: ResponseLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the limit that the response exceeded, if any. In that case the client was sent an error event, and the
    /// rest of the response is ignored.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded
    }

    /// Returns the number of response bytes that are held in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.assembler.held_bytes() + self.decoder.held_bytes()
    }

    /// Begins a round, and translates its request from the client's API.
    pub fn request(&mut self, body: &str) -> Result<AdaptedRequest, Untranslatable> {
        let mut dropped = DroppedContent::default();
        let chat_body = self.client.translate_request(body, &mut dropped)?;
        self.dropped = dropped.into_names();
        self.decoder = Decoder::default();
        // This id is used if the backend omits ids. It is stable for this request and unique to it.
        let id = blake3::hash(body.as_bytes()).to_hex()[..24].to_owned();
        self.assembler = ChunkAssembler::new(id, self.limits);
        self.exceeded = None;
        Ok(AdaptedRequest { path: "/v1/chat/completions", body: chat_body })
    }

    /// Returns the names of the tools, kinds of content and fields that were left out of the last request. Each is
    /// listed once.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Translates a response that is not streamed, whether it is successful or an error.
    pub fn complete_response(&mut self, status: u16, body: &[u8]) -> AdaptedResponse {
        let response =
            if status < 400 { ChatResponse::read(body, self.assembler.fallback()) } else { None };
        if let Some(response) = response {
            return AdaptedResponse {
                status,
                body: self.client.translate_response(&response).into_bytes(),
            };
        }
        let error = BackendError::from_response(status, body);
        AdaptedResponse {
            status: error.status,
            body: self.client.translate_error(&error).into_bytes(),
        }
    }

    /// Translates bytes of a streamed response, and writes events of the client's API to `out`.
    pub fn bytes(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.decoder.push(bytes);
        while self.exceeded.is_none() {
            match self.decoder.next_event() {
                Ok(Some(event)) => {
                    self.event(&event, out);
                    let is_large = self.client.held_bytes() > self.limits.turn;
                    let large = is_large.then_some(LimitExceeded::Turn(self.limits.turn));
                    self.exceeded = self.assembler.exceeded().or(large);
                }
                Ok(None) => return,
                Err(_) => self.exceeded = Some(LimitExceeded::Event),
            }
        }
        self.decoder = Decoder::default();
        if let Some(exceeded) = self.exceeded {
            let steps = self.assembler.fail(BackendError::detected(&exceeded.to_string()));
            self.write(steps, out);
        }
    }

    /// Ends the streamed response, and writes its last events to `out`. If it was cut off, these include an error.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let rest = self.decoder.take_rest();
        if !rest.is_empty() {
            // Some servers omit the blank line after the last event, so the rest may be an event.
            self.event(&Event::from_bytes(rest), out);
        }
        let steps = self.assembler.end();
        self.write(steps, out);
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event.data() {
            Some(data) => {
                let steps = self.assembler.add_chunk(&data);
                self.write(steps, out);
            }
            // Clients of both APIs accept a comment, which keeps their connection alive. The text of the comment is
            // dropped.
            None if event.raw().starts_with(b":") => out.extend_from_slice(b":\n\n"),
            None => {}
        }
    }

    fn write(&mut self, steps: Vec<StreamStep>, out: &mut Vec<u8>) {
        for step in steps {
            self.client.write_step(step, out);
        }
    }
}
