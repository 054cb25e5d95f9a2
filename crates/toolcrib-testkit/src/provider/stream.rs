//! Response bodies that stall, pause and abort.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::sync::{Semaphore, watch};

use crate::provider::canned_response::{BodyPart, StreamFault};

/// Controls the stalls of all bodies, and counts the open responses.
#[derive(Clone)]
pub(crate) struct ResponseControl {
    /// Each permit ends one stall.
    pub(crate) releases: Arc<Semaphore>,
    /// The number of responses that are not complete yet.
    pub(crate) open: watch::Sender<usize>,
}

impl ResponseControl {
    pub(crate) async fn wait_for_release(&self) {
        if let Ok(permit) = self.releases.acquire().await {
            permit.forget();
        }
    }

    /// Counts a response as open until the returned value is dropped.
    pub(crate) fn track(&self) -> OpenResponse {
        self.open.send_modify(|open| *open += 1);
        OpenResponse(self.open.clone())
    }
}

/// Counts a response as open while this value exists: from the arrival of the request to the end of the response body.
pub(crate) struct OpenResponse(watch::Sender<usize>);

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Builds a response body from parts.
pub(crate) fn body(
    parts: Vec<BodyPart>,
    control: ResponseControl,
    open_response: OpenResponse,
) -> Body {
    let start = (parts.into_iter(), control, open_response);
    Body::from_stream(stream::unfold(start, |(mut parts, control, open_response)| async move {
        loop {
            match parts.next()? {
                BodyPart::Bytes(bytes) => {
                    return Some((Ok::<Bytes, io::Error>(bytes), (parts, control, open_response)));
                }
                BodyPart::Pause(pause) => tokio::time::sleep(pause).await,
                BodyPart::Stall => control.wait_for_release().await,
                BodyPart::Cut => {
                    // Give the server time to write everything sent so far before the connection closes, even on a busy
                    // machine.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script");
                    return Some((Err(cut), (Vec::new().into_iter(), control, open_response)));
                }
            }
        }
    }))
}

/// Turns the events of a stream into body parts with a fault.
pub(crate) fn apply_fault(events: &[Bytes], fault: StreamFault) -> Vec<BodyPart> {
    let head =
        |count: usize| events.iter().take(count).cloned().map(BodyPart::Bytes).collect::<Vec<_>>();
    let half =
        |at: usize| events.get(at).map(|event| BodyPart::Bytes(event.slice(..event.len() / 2)));
    match fault {
        StreamFault::CutAfter(count) => head(count).into_iter().chain([BodyPart::Cut]).collect(),
        StreamFault::HalfEvent(count) => {
            head(count).into_iter().chain(half(count)).chain([BodyPart::Cut]).collect()
        }
        StreamFault::EndInside(count) => head(count).into_iter().chain(half(count)).collect(),
        StreamFault::EndAfter(count) => head(count),
        StreamFault::StallAfter(count) => {
            let tail = events.iter().skip(count).cloned().map(BodyPart::Bytes);
            head(count).into_iter().chain([BodyPart::Stall]).chain(tail).collect()
        }
        StreamFault::StallFirst => head(events.len()),
        StreamFault::ByteByByte => {
            let bytes =
                events.iter().flat_map(|event| (0..event.len()).map(|at| event.slice(at..=at)));
            bytes.map(BodyPart::Bytes).collect()
        }
    }
}

/// Adds a pause before each event.
pub(crate) fn pace(events: Vec<Bytes>, pause: Duration) -> Vec<BodyPart> {
    events.into_iter().flat_map(|event| [BodyPart::Pause(pause), BodyPart::Bytes(event)]).collect()
}
