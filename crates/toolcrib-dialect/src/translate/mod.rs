//! A client of one API, a backend of another.
//!
//! Claude Code speaks Messages and Codex speaks Responses; most backends that people run themselves
//! speak Chat Completions and nothing else. An [`Adapter`] stands between the rounds of an
//! [`Exchange`](crate::Exchange), which work in the client's API throughout, and the backend: the body of a
//! round becomes one of Chat Completions, and what comes back becomes what the client's API would have
//! said.
//!
//! ```text
//! a round's body  ──► adapter.request() ──► backend
//! its events      ◄── adapter.bytes()   ◄── backend, streaming
//! its response    ◄── adapter.whole()   ◄── backend, otherwise
//! ```
//!
//! No translation is lossless. This one is faithful, and steady: the same history gives the same
//! bytes, and a longer history begins with the bytes of the shorter one, so that the backend's prompt
//! cache holds. What has no counterpart is left out and named in [`Adapter::dropped`].
//!
//! Reading order: `ask` (what goes up), `reply` and `tale` (what comes down, whole and in pieces),
//! `trouble` (what went wrong), and one folder for each API of a client.

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

/// What goes to the backend instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedRequest {
    /// Where it goes.
    pub path: &'static str,
    /// The body.
    pub body: String,
}

/// What the client's API would have answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdaptedResponse {
    /// The status: the backend's own, unless it said success and sent none.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A request that no backend of the other API can answer. It is the client that must change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    /// The body is no JSON object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// A field that refers to what the API's own servers keep.
    #[error(
        "`{0}` refers to what a server keeps, and this backend keeps nothing: send the whole history"
    )]
    NeedsServerState(&'static str),
}

impl Untranslatable {
    /// The field that is at fault: `param` in an OpenAI error.
    pub fn param(self) -> Option<&'static str> {
        match self {
            Self::NotAnObject => None,
            Self::NeedsServerState(field) => Some(field),
        }
    }
}

/// The adapter that lets clients of `from` use a backend of `to`; `None` where there is none.
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

/// One API of a client, over Chat Completions.
trait ClientApi: Send {
    /// The body that goes up. What is known of earlier rounds is forgotten.
    fn translate_request(
        &mut self,
        body: &str,
        dropped: &mut DroppedContent,
    ) -> Result<String, Untranslatable>;

    /// A whole response.
    fn translate_response(&self, response: &ChatResponse) -> String;

    /// The body of an error.
    fn translate_error(&self, error: &BackendError) -> String;

    /// Bytes that are held for the end of a streamed response.
    fn held_bytes(&self) -> usize;

    /// The events for one step of a streamed response.
    fn write_step(&mut self, step: StreamStep, out: &mut Vec<u8>);
}

/// Stands between a turn in one API and a backend of another, for as many rounds as the turn has.
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
    /// The same with other limits of what is held of a response.
    #[must_use]
    pub fn with_limits(mut self, limits: ResponseLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The limit that the response exceeded, if it did. The client's API was told in an error event, and nothing
    /// more is taken.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded
    }

    /// Bytes of the response that are held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.assembler.held_bytes() + self.decoder.held_bytes()
    }

    /// Begins a round: takes the body that would go to a backend of the client's API.
    pub fn request(&mut self, body: &str) -> Result<AdaptedRequest, Untranslatable> {
        let mut dropped = DroppedContent::default();
        let chat_body = self.client.translate_request(body, &mut dropped)?;
        self.dropped = dropped.into_names();
        self.decoder = Decoder::default();
        // Stands in for ids that a backend forgets: the same for the same request, and for no other.
        let id = blake3::hash(body.as_bytes()).to_hex()[..24].to_owned();
        self.assembler = ChunkAssembler::new(id, self.limits);
        self.exceeded = None;
        Ok(AdaptedRequest { path: "/v1/chat/completions", body: chat_body })
    }

    /// What had no counterpart in the last request, each once: tools, kinds of content, fields.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Takes a response that is no stream, be it an answer or an error.
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

    /// Takes bytes of a streamed response; the events of the client's API go to `out`.
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

    /// The streamed response is over, properly or not.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let rest = self.decoder.take_rest();
        if !rest.is_empty() {
            // Some servers forget the blank line after the last event.
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
            // A comment keeps a connection warm in every API; what it says is for nobody.
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
