//! What a provider stores for its account, and which caller it belongs to.
//!
//! The Responses API keeps responses, and a later request continues one by its id. Callers whose key is replaced
//! by the real credential share one account, so that the provider would let each of them continue, and thereby
//! read, the others' responses. The proxy therefore records under the caller's id each response and output item
//! that it hands to a caller, and refuses an id that it has no record of. Rejected: a list in this process's
//! memory, which replicas would not share; the records are in the store that conversations are kept in.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use futures::{StreamExt as _, stream};
use serde::Deserialize;
use toolcrib_dialect::{Api, Key, sse};

use crate::caller::Caller;
use crate::error::Refusal;
use crate::inbound::Inbound;
use crate::proxy::Proxy;
use crate::references::References;
use crate::route::{Credential, Upstream};
use crate::upstream::Chunks;

/// Maximum length of an id that is recorded.
const ID_LENGTH: usize = 256;
/// Maximum number of ids that are recorded of one response.
const IDS: usize = 4_096;
/// Maximum size of a response in one piece that is searched for ids, in bytes. A larger one cannot be continued.
const WHOLE_BYTES: usize = 32 << 20;

/// Whether a caller shares what the upstream stores with other callers.
pub(crate) fn is_shared(caller: &Caller, upstream: &Upstream) -> bool {
    let is_own = upstream.credential == Credential::Clients && caller.stands_in.is_none();
    caller.name().is_some() && !is_own
}

/// Checks that everything stored which a body refers to is the caller's own.
pub(crate) async fn check_body(
    proxy: &Proxy,
    inbound: &Inbound,
    body: &[u8],
) -> Result<(), Refusal> {
    let refuse = |status, text: String| Refusal::new(Api::Responses, status, &text);
    let found = References::read(body).map_err(|why| {
        let text = format!("the body cannot be checked for stored responses: {why}");
        refuse(StatusCode::BAD_REQUEST, text)
    })?;
    if found.has_conversation && !inbound.caller.may_create_conversations() {
        let text = "`conversation` is not open to this caller, because its key opens an account that others use: continue with `previous_response_id`, or name `/v1/conversations` in `paths`";
        return Err(refuse(StatusCode::FORBIDDEN, text.to_owned()));
    }
    check_ids(proxy, &inbound.caller, found.ids).await
}

/// Checks the id in the path of a stored response, such as `/v1/responses/ID/cancel`.
pub(crate) async fn check_path(proxy: &Proxy, inbound: &Inbound) -> Result<(), Refusal> {
    let segments = inbound.path.segments();
    let rest = match segments.as_slice() {
        [version, rest @ ..] if version.eq_ignore_ascii_case("v1") => rest,
        rest => rest,
    };
    match rest {
        [kind, id, ..] if kind.eq_ignore_ascii_case("responses") => {
            check_ids(proxy, &inbound.caller, vec![(*id).to_owned()]).await
        }
        _ => Ok(()),
    }
}

async fn check_ids(proxy: &Proxy, caller: &Caller, ids: Vec<String>) -> Result<(), Refusal> {
    if ids.is_empty() {
        return Ok(());
    }
    let keys: Vec<Key> = ids.iter().map(|id| key(caller.id, id)).collect();
    let mut found = proxy.load(&keys).await.into_iter();
    for id in ids {
        // A store that does not answer has found nothing.
        if found.next().flatten().is_none() {
            let id: String = id.chars().filter(char::is_ascii_graphic).take(64).collect();
            let text = format!(
                "this caller did not create `{id}`, or the record of it was lost: send the conversation itself in `input`"
            );
            return Err(Refusal::new(Api::Responses, StatusCode::FORBIDDEN, &text));
        }
    }
    Ok(())
}

fn key(caller: [u8; 32], id: &str) -> Key {
    let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy stored by caller");
    Key(*hasher.update(&caller).update(id.as_bytes()).finalize().as_bytes())
}

/// Records the ids in a response for the caller that gets it. They are recorded before the client has the bytes
/// that name them.
#[derive(Debug)]
pub(crate) struct Recorder {
    caller: [u8; 32],
    scan: Scan,
    seen: usize,
}

/// How a response is searched.
#[derive(Debug)]
enum Scan {
    Events(sse::Decoder),
    Whole(Vec<u8>),
    /// It is larger than the limit.
    Stopped,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shown<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Vec<Item<'a>>,
    #[serde(borrow)]
    response: Option<Box<Shown<'a>>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    /// Of the code interpreter. A later request may use the container again.
    #[serde(borrow)]
    container_id: Option<Cow<'a, str>>,
}

impl Recorder {
    pub(crate) fn new(caller: [u8; 32], is_events: bool) -> Self {
        let scan =
            if is_events { Scan::Events(sse::Decoder::default()) } else { Scan::Whole(Vec::new()) };
        Self { caller, scan, seen: 0 }
    }

    /// Takes the next bytes of a response.
    pub(crate) async fn push(&mut self, proxy: &Proxy, bytes: &[u8]) {
        let mut ids = Vec::new();
        match &mut self.scan {
            Scan::Stopped => {}
            Scan::Whole(all) if all.len() + bytes.len() > WHOLE_BYTES => {
                tracing::warn!("a response is too large to record who may continue it");
                self.scan = Scan::Stopped;
            }
            Scan::Whole(all) => all.extend_from_slice(bytes),
            Scan::Events(decoder) => {
                decoder.push(bytes);
                loop {
                    match decoder.next_event() {
                        Ok(Some(event)) => {
                            // Most events are pieces of text and name no new id.
                            let data = event.data().filter(|data| {
                                data.contains("\"response\"") || data.contains("\"item\"")
                            });
                            if let Some(data) = data {
                                collect(data.as_bytes(), &mut ids);
                            }
                        }
                        Ok(None) => break,
                        Err(sse::TooLarge) => {
                            self.scan = Scan::Stopped;
                            break;
                        }
                    }
                }
            }
        }
        self.record(proxy, ids).await;
    }

    /// Takes the end of a response.
    pub(crate) async fn end(&mut self, proxy: &Proxy) {
        let mut ids = Vec::new();
        match std::mem::replace(&mut self.scan, Scan::Stopped) {
            Scan::Whole(all) => collect(&all, &mut ids),
            Scan::Events(mut decoder) => {
                let rest = sse::Event::from_bytes(decoder.rest());
                if let Some(data) = rest.data() {
                    collect(data.as_bytes(), &mut ids);
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
        ids.retain(|id| !id.is_empty() && id.len() <= ID_LENGTH);
        ids.truncate(IDS.saturating_sub(self.seen));
        self.seen += ids.len();
        if !ids.is_empty() {
            let records = ids.iter().map(|id| (key(self.caller, id), b"1".to_vec()));
            proxy.store(records.collect()).await;
        }
    }

    /// The same body, recorded as it passes.
    pub(crate) fn watch(self, proxy: Arc<Proxy>, body: Chunks) -> Chunks {
        let state = (self, proxy, body, None);
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

/// The ids of the response and of the items that a JSON text shows.
fn collect(text: &[u8], ids: &mut Vec<String>) {
    let Ok(shown) = serde_json::from_slice::<Shown<'_>>(text) else { return };
    let mut add = |id: Option<Cow<'_, str>>| ids.extend(id.map(Cow::into_owned));
    for shown in [shown.response.map(|inner| *inner), Some(Shown { response: None, ..shown })] {
        let Some(shown) = shown else { continue };
        add(shown.id);
        let items = shown.item.into_iter().chain(shown.output);
        items.flat_map(|item| [item.id, item.container_id]).for_each(&mut add);
    }
}
