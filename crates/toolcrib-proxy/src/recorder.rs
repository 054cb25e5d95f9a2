//! Records the ids of stored objects that a caller gets in a response, so that [`stored`](crate::stored) can later tell
//! whose they are.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use toolcrib_dialect::{Api, sse};
use toolcrib_server::MemoryShare;

use crate::proxy::Proxy;
use crate::stored::key;
use crate::stored_ids;
use crate::upstream::Chunks;

/// Maximum length of an id that is recorded.
const ID_LENGTH: usize = 256;
/// Maximum number of ids that are recorded for one response.
const IDS: usize = 4_096;
/// Maximum size of an unstreamed response that is searched for ids, in bytes. A larger one cannot be continued.
const WHOLE_BYTES: usize = 32 << 20;

/// Records the ids in a response for the caller that gets it. They are recorded before the client gets the bytes
/// that contain them.
#[derive(Debug)]
pub(crate) struct Recorder {
    api: Api,
    caller: [u8; 32],
    scan: Scan,
    /// What the scan holds of the response.
    memory: MemoryShare,
    /// Ids that are already recorded; events repeat them.
    seen: HashSet<String>,
}

/// How a response is searched.
#[derive(Debug)]
enum Scan {
    Events(sse::Decoder),
    Whole(Vec<u8>),
    /// It is larger than the limit.
    Stopped,
}

impl Recorder {
    /// A recorder for a response of this API.
    pub(crate) fn new(api: Api, caller: [u8; 32], is_events: bool, memory: MemoryShare) -> Self {
        let scan =
            if is_events { Scan::Events(sse::Decoder::default()) } else { Scan::Whole(Vec::new()) };
        Self { api, caller, scan, memory, seen: HashSet::new() }
    }

    /// Takes the next bytes of a response.
    pub(crate) async fn push(&mut self, proxy: &Proxy, bytes: &[u8]) {
        let mut ids = Vec::new();
        match &mut self.scan {
            Scan::Stopped => {}
            Scan::Whole(all) if all.len() + bytes.len() > WHOLE_BYTES => self.stop(),
            Scan::Whole(all) => all.extend_from_slice(bytes),
            Scan::Events(decoder) => {
                decoder.push(bytes);
                loop {
                    match decoder.next_event() {
                        Ok(Some(event)) => {
                            if let Some(data) = event.data() {
                                stored_ids::collect(self.api, data.as_bytes(), &mut ids);
                            }
                        }
                        Ok(None) => break,
                        Err(sse::TooLarge) => {
                            self.stop();
                            break;
                        }
                    }
                }
            }
        }
        let held = match &self.scan {
            Scan::Events(decoder) => decoder.held_bytes(),
            Scan::Whole(all) => all.len(),
            Scan::Stopped => 0,
        };
        if !self.memory.resize_fairly(held) {
            self.stop();
        }
        self.record(proxy, ids).await;
    }

    /// Gives up: what comes from here on is not recorded.
    fn stop(&mut self) {
        tracing::warn!("a response is too large to record who may continue it");
        self.scan = Scan::Stopped;
        self.memory.release();
    }

    /// Takes the end of a response.
    pub(crate) async fn end(&mut self, proxy: &Proxy) {
        let mut ids = Vec::new();
        match std::mem::replace(&mut self.scan, Scan::Stopped) {
            Scan::Whole(all) => stored_ids::collect(self.api, &all, &mut ids),
            Scan::Events(mut decoder) => {
                let rest = sse::Event::from_bytes(decoder.rest());
                if let Some(data) = rest.data() {
                    stored_ids::collect(self.api, data.as_bytes(), &mut ids);
                }
            }
            Scan::Stopped => {}
        }
        self.record(proxy, ids).await;
    }

    /// Takes a response in one piece.
    pub(crate) async fn complete(&mut self, proxy: &Proxy, body: &[u8]) {
        self.push(proxy, body).await;
        self.end(proxy).await;
    }

    /// Whether the end of the response must be seen before its last bytes may go on.
    fn is_whole(&self) -> bool {
        matches!(self.scan, Scan::Whole(_))
    }

    async fn record(&mut self, proxy: &Proxy, mut ids: Vec<String>) {
        ids.retain(|id| {
            let is_usable = !id.is_empty() && id.len() <= ID_LENGTH && self.seen.len() < IDS;
            is_usable && self.seen.insert(id.clone())
        });
        if !ids.is_empty() {
            let records = ids.iter().map(|id| (key(self.caller, id), b"1".to_vec()));
            proxy.store(records.collect()).await;
        }
    }

    /// The same body, recorded as it passes.
    pub(crate) fn watch(self, proxy: Arc<Proxy>, body: Chunks) -> Chunks {
        let state = (self, proxy, body.fuse(), None);
        Box::pin(stream::unfold(state, |(mut recorder, proxy, mut body, mut held)| async move {
            loop {
                match body.next().await {
                    Some(Ok(bytes)) => {
                        recorder.push(&proxy, &bytes).await;
                        // The last piece waits for the end.
                        let ready =
                            if recorder.is_whole() { held.replace(bytes) } else { Some(bytes) };
                        if let Some(ready) = ready {
                            return Some((Ok(ready), (recorder, proxy, body, held)));
                        }
                    }
                    Some(Err(lost)) => return Some((Err(lost), (recorder, proxy, body, None))),
                    None => {
                        recorder.end(&proxy).await;
                        let last = held.take()?;
                        return Some((Ok(last), (recorder, proxy, body, None)));
                    }
                }
            }
        }))
    }
}
