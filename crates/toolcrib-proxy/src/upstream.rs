//! Requests to an upstream, and its answers.
//!
//! An answer is a head and a stream of bytes in the client's own API, whatever the upstream speaks: what
//! is between them is [`wire`](crate::wire)'s.

use std::pin::Pin;
use std::sync::Arc;

use axum::http::{HeaderMap, Method, StatusCode, header};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use toolcrib_dialect::translate::Untranslatable;

use crate::route::Upstream;
use crate::wire::Words;

/// Bytes of a response that is read as a whole.
const RESPONSE_BYTES: usize = 256 << 20;

/// A body as it comes.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, Lost>> + Send>>;

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Chunks,
}

/// An upstream that could not be reached, or broke off. Says nothing of the URL: a key may be in it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Lost(String);

impl From<reqwest::Error> for Lost {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        // The outermost says only that it failed; why stands below.
        let mut text = error.to_string();
        let mut below = std::error::Error::source(&error);
        while let Some(source) = below {
            text = source.to_string();
            below = source.source();
        }
        Self(text)
    }
}

impl Lost {
    pub(crate) fn too_large() -> Self {
        Self(toolcrib_dialect::sse::TooLarge.to_string())
    }
}

impl Answer {
    pub(crate) fn is_events(&self) -> bool {
        let kind = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    }

    /// The body as a whole.
    pub(crate) async fn whole(self) -> Result<Bytes, Lost> {
        Ok(self.parted().await?.1)
    }

    /// The head, and the body as a whole.
    pub(crate) async fn parted(mut self) -> Result<(Self, Bytes), Lost> {
        let mut body = std::mem::replace(&mut self.body, Box::pin(stream::empty()));
        let mut all = Vec::new();
        while let Some(chunk) = body.try_next().await? {
            if all.len() + chunk.len() > RESPONSE_BYTES {
                return Err(Lost(format!("the response is larger than {RESPONSE_BYTES} bytes")));
            }
            all.extend_from_slice(&chunk);
        }
        Ok((self, all.into()))
    }
}

/// A request that got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failed {
    /// The upstream was not reached, or broke off.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The upstream has no words for it: the client must say it otherwise.
    #[error(transparent)]
    Untranslatable(#[from] Untranslatable),
}

/// Where a request goes, with what, and in which words.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) client: reqwest::Client,
    pub(crate) upstream: Arc<Upstream>,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) words: Words,
}

impl Line {
    /// Sends a body that we read.
    pub(crate) async fn post(&self, body: String) -> Result<Answer, Failed> {
        let (body, path, translation) = self.words.put(body)?;
        let url = self.upstream.at(path.unwrap_or(&self.target));
        let request = self.client.post(url).headers(self.headers.clone()).body(body);
        let answered = request.send().await.map_err(Lost::from)?;
        Ok(translation.back(answer(answered)).await?)
    }

    /// Sends a body as it comes, of this length where that is known: an upstream is told it as we were.
    pub(crate) async fn forward<E>(
        &self,
        method: Method,
        body: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        length: Option<u64>,
    ) -> Result<Answer, Lost>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let url = self.upstream.at(&self.target);
        let mut request = self.client.request(method, url).headers(self.headers.clone());
        if let Some(length) = length.filter(|length| *length > 0) {
            request = request.header(header::CONTENT_LENGTH, length);
        }
        if length != Some(0) {
            request = request.body(reqwest::Body::wrap_stream(body));
        }
        Ok(answer(request.send().await?))
    }
}

fn answer(response: reqwest::Response) -> Answer {
    Answer {
        status: response.status(),
        headers: response.headers().clone(),
        body: Box::pin(response.bytes_stream().map(|chunk| chunk.map_err(Lost::from))),
    }
}
