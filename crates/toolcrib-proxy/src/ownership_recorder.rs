//! Records the ids of stored objects that a caller receives in a response. With these records,
//! [`object_ownership`](crate::object_ownership) later decides who may use the objects.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use toolcrib_dialect::{Api, parsed_size, sse};
use toolcrib_server::MemoryShare;

use crate::object_ownership::ownership_key;
use crate::proxy::Proxy;
use crate::response_object_ids;
use crate::upstream_request::BodyChunks;

/// Maximum length of an id that is recorded.
const MAX_ID_LENGTH: usize = 256;
/// Maximum number of ids that are recorded for one response.
const MAX_IDS: usize = 4_096;
/// Maximum size of a non-streamed response that is searched for ids, in bytes. The ids in a larger response are not
/// recorded, so the caller cannot continue that response in a later request.
const MAX_COMPLETE_BYTES: usize = 32 << 20;

/// Records the ids in a response for the caller that receives it. The ids in an event are recorded before the client
/// receives the whole event, and the ids in a non-streamed response before the client receives its last chunk.
#[derive(Debug)]
pub(crate) struct OwnershipRecorder {
    api: Api,
    caller: [u8; 32],
    scan: ResponseScan,
    /// The memory taken by the part of the response that is held for the search.
    memory: MemoryShare,
    /// Ids that are already recorded. They are remembered because several events of a stream repeat the same id.
    seen: HashSet<String>,
}

/// How a response is searched.
#[derive(Debug)]
enum ResponseScan {
    Events(sse::Decoder),
    /// The bytes so far, and the memory that they take once parsed.
    Complete(Vec<u8>, usize),
    /// The response exceeds a limit, so it is no longer searched.
    Stopped,
}

impl OwnershipRecorder {
    /// Creates a recorder for a response of this API.
    pub(crate) fn new(
        api: Api,
        caller: [u8; 32],
        is_event_stream: bool,
        memory: MemoryShare,
    ) -> Self {
        let scan = if is_event_stream {
            ResponseScan::Events(sse::Decoder::default())
        } else {
            ResponseScan::Complete(Vec::new(), 0)
        };
        Self { api, caller, scan, memory, seen: HashSet::new() }
    }

    /// Searches the next bytes of a response, and records the ids that are complete.
    pub(crate) async fn push(&mut self, proxy: &Proxy, bytes: &[u8]) {
        let mut ids = Vec::new();
        match &mut self.scan {
            ResponseScan::Stopped => {}
            ResponseScan::Complete(all, _) if all.len() + bytes.len() > MAX_COMPLETE_BYTES => {
                self.stop();
            }
            ResponseScan::Complete(all, weight) => {
                all.extend_from_slice(bytes);
                *weight += parsed_size(bytes);
            }
            ResponseScan::Events(decoder) => {
                decoder.push(bytes);
                loop {
                    match decoder.next_event() {
                        Ok(Some(event)) => {
                            if let Some(data) = event.data() {
                                response_object_ids::collect_ids(
                                    self.api,
                                    data.as_bytes(),
                                    &mut ids,
                                );
                            }
                        }
                        Ok(None) => break,
                        Err(sse::EventTooLarge) => {
                            self.stop();
                            break;
                        }
                    }
                }
            }
        }
        let held = match &self.scan {
            ResponseScan::Events(decoder) => decoder.held_bytes(),
            ResponseScan::Complete(_, weight) => *weight,
            ResponseScan::Stopped => 0,
        };
        if !self.memory.resize_fairly(held) {
            self.stop();
        }
        self.record(proxy, ids).await;
    }

    /// Stops searching: ids that are not recorded yet stay unrecorded.
    fn stop(&mut self) {
        tracing::warn!(
            "a response is too large to record its stored objects, so it cannot be continued"
        );
        self.scan = ResponseScan::Stopped;
        self.memory.release();
    }

    /// Searches what is left at the end of a response, and records the ids in it.
    pub(crate) async fn end(&mut self, proxy: &Proxy) {
        let mut ids = Vec::new();
        match std::mem::replace(&mut self.scan, ResponseScan::Stopped) {
            ResponseScan::Complete(all, _) => {
                response_object_ids::collect_ids(self.api, &all, &mut ids);
            }
            ResponseScan::Events(mut decoder) => {
                let rest = sse::Event::from_bytes(decoder.take_rest());
                if let Some(data) = rest.data() {
                    response_object_ids::collect_ids(self.api, data.as_bytes(), &mut ids);
                }
            }
            ResponseScan::Stopped => {}
        }
        self.record(proxy, ids).await;
    }

    /// Searches a complete response, and records the ids in it.
    pub(crate) async fn complete(&mut self, proxy: &Proxy, body: &[u8]) {
        self.push(proxy, body).await;
        self.end(proxy).await;
    }

    /// Whether ids are recorded only at the end of the response, so that its last bytes must wait until then.
    fn is_complete_body(&self) -> bool {
        matches!(self.scan, ResponseScan::Complete(..))
    }

    async fn record(&mut self, proxy: &Proxy, mut ids: Vec<String>) {
        ids.retain(|id| {
            let is_usable =
                !id.is_empty() && id.len() <= MAX_ID_LENGTH && self.seen.len() < MAX_IDS;
            is_usable && self.seen.insert(id.clone())
        });
        if !ids.is_empty() {
            let records = ids.iter().map(|id| (ownership_key(self.caller, id), b"1".to_vec()));
            proxy.store(records.collect()).await;
        }
    }

    /// Returns the body unchanged, and records the ids in it while it is forwarded.
    pub(crate) fn watch(self, proxy: Arc<Proxy>, body: BodyChunks) -> BodyChunks {
        let state = (self, proxy, body.fuse(), None, VecDeque::new());
        Box::pin(stream::unfold(
            state,
            |(mut recorder, proxy, mut body, mut held, mut ready)| async move {
                loop {
                    if let Some(bytes) = ready.pop_front() {
                        return Some((Ok(bytes), (recorder, proxy, body, held, ready)));
                    }
                    match body.next().await {
                        Some(Ok(bytes)) => {
                            recorder.push(&proxy, &bytes).await;
                            ready.extend(held.take());
                            if recorder.is_complete_body() {
                                // This may be the last chunk. It is held back, because the client must not receive the
                                // last chunk before the complete body has been searched.
                                held = Some(bytes);
                            } else {
                                ready.push_back(bytes);
                            }
                        }
                        Some(Err(error)) => {
                            return Some((Err(error), (recorder, proxy, body, None, ready)));
                        }
                        None => {
                            recorder.end(&proxy).await;
                            ready.push_back(held.take()?);
                        }
                    }
                }
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use toolcrib_server::MemoryBudget;
    use toolcrib_server::admin::AdminAccess;

    use super::*;
    use crate::config::ProxyConfig;

    fn proxy() -> Arc<Proxy> {
        let settings = toolcrib_core::Settings::default();
        Arc::new(
            Proxy::new(ProxyConfig::default(), settings, None, Arc::<AdminAccess>::default())
                .unwrap(),
        )
    }

    /// Returns the body after it has passed through a recorder with a memory budget of `memory` bytes.
    async fn watched(pieces: &[Bytes], memory: usize) -> Vec<u8> {
        let share = MemoryBudget::new(memory).share();
        let recorder = OwnershipRecorder::new(Api::Responses, [0; 32], false, share);
        let body: Vec<Result<Bytes, crate::upstream_request::UpstreamFailure>> =
            pieces.iter().cloned().map(Ok).collect();
        let mut out = Vec::new();
        let mut passed = recorder.watch(proxy(), Box::pin(stream::iter(body)));
        while let Some(bytes) = passed.next().await {
            out.extend_from_slice(&bytes.unwrap());
        }
        out
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_to_record_passes_unchanged() {
        let pieces: Vec<Bytes> = (0..40).map(|at| Bytes::from(vec![at; 1 << 20])).collect();
        let all = pieces.concat();
        // The three cases: over the size limit, over the memory limit, and within both.
        for (pieces, memory) in
            [(&pieces[..], usize::MAX), (&pieces[..20], 10 << 20), (&pieces[..20], usize::MAX)]
        {
            assert!(all.starts_with(&watched(pieces, memory).await));
            assert_eq!(watched(pieces, memory).await.len(), pieces.len() << 20);
        }
    }
}
