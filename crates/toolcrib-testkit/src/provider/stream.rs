//! Bodies that stall, pause and break off.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use tokio::sync::{Semaphore, watch};

use crate::provider::answer::{Bend, Part};

/// What a body waits for and tells.
#[derive(Clone)]
pub(crate) struct Gate {
    /// One permit lets one stall go on.
    pub(crate) releases: Arc<Semaphore>,
    /// How many answers are under way.
    pub(crate) open: watch::Sender<usize>,
}

impl Gate {
    pub(crate) async fn wait(&self) {
        if let Ok(permit) = self.releases.acquire().await {
            permit.forget();
        }
    }

    /// Counts an answer for as long as the result lives.
    pub(crate) fn enter(&self) -> Underway {
        self.open.send_modify(|open| *open += 1);
        Underway(self.open.clone())
    }
}

/// An answer under way, from the arrival of its request to the end of its body.
pub(crate) struct Underway(watch::Sender<usize>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// A body of these parts.
pub(crate) fn body(parts: Vec<Part>, gate: Gate, underway: Underway) -> Body {
    let start = (parts.into_iter(), gate, underway);
    Body::from_stream(stream::unfold(start, |(mut parts, gate, underway)| async move {
        loop {
            match parts.next()? {
                Part::Bytes(bytes) => {
                    return Some((Ok::<Bytes, io::Error>(bytes), (parts, gate, underway)));
                }
                Part::Pause(pause) => tokio::time::sleep(pause).await,
                Part::Stall => gate.wait().await,
                Part::Cut => {
                    // What was sent before must be out before the connection goes, on a busy machine, too.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script");
                    return Some((Err(cut), (Vec::new().into_iter(), gate, underway)));
                }
            }
        }
    }))
}

/// Events bent out of shape.
pub(crate) fn bend(events: &[Bytes], bend: Bend) -> Vec<Part> {
    let head =
        |count: usize| events.iter().take(count).cloned().map(Part::Bytes).collect::<Vec<_>>();
    let half = |at: usize| events.get(at).map(|event| Part::Bytes(event.slice(..event.len() / 2)));
    match bend {
        Bend::CutAfter(count) => head(count).into_iter().chain([Part::Cut]).collect(),
        Bend::HalfEvent(count) => {
            head(count).into_iter().chain(half(count)).chain([Part::Cut]).collect()
        }
        Bend::EndInside(count) => head(count).into_iter().chain(half(count)).collect(),
        Bend::EndAfter(count) => head(count),
        Bend::StallAfter(count) => {
            let tail = events.iter().skip(count).cloned().map(Part::Bytes);
            head(count).into_iter().chain([Part::Stall]).chain(tail).collect()
        }
        Bend::StallFirst => head(events.len()),
        Bend::ByteByByte => {
            let bytes =
                events.iter().flat_map(|event| (0..event.len()).map(|at| event.slice(at..=at)));
            bytes.map(Part::Bytes).collect()
        }
    }
}

/// Events with a pause before each.
pub(crate) fn pace(events: Vec<Bytes>, pause: Duration) -> Vec<Part> {
    events.into_iter().flat_map(|event| [Part::Pause(pause), Part::Bytes(event)]).collect()
}
