//! What a provider stores for its account, and which caller it belongs to.
//!
//! The Responses API keeps responses, and a later request continues one by its id. Messages has containers, Chat
//! Completions has audio. Callers whose key is replaced by the real credential share one account, so the provider would
//! let each of them use, and thereby read, what it stores for the others. The proxy therefore records the id of every
//! stored object that it hands to a caller, under the caller's id (see `recorder`), and refuses an id that it has no
//! record of. Rejected: a list in this process's memory, which replicas would not share; the records are in the store
//! that conversations are kept in.

use std::sync::Arc;

use axum::http::StatusCode;
use toolcrib_dialect::{Api, ReadResult, RecordKey};
use toolcrib_server::BodyPermit;

use crate::admission::AdmittedRequest;
use crate::api_error::RequestError;
use crate::blocking;
use crate::caller::Caller;
use crate::object_references::ObjectReferences;
use crate::proxy::Proxy;
use crate::route::{Credential, Upstream};

/// Whether requests to an API can refer to stored objects whose owner is recorded.
pub(crate) fn has_stored_objects(api: Api) -> bool {
    api != Api::Gemini
}

/// Whether a caller shares what the upstream stores with other callers.
pub(crate) fn shares_account(caller: &Caller, upstream: &Upstream) -> bool {
    let is_own = upstream.credential == Credential::FromClient && caller.substitute_keys.is_none();
    caller.name().is_some() && !is_own
}

/// Checks that all stored objects to which a body refers are the caller's own, and returns the body.
pub(crate) async fn check_body(
    proxy: &Proxy,
    inbound: &AdmittedRequest,
    api: Api,
    reading: ReadResult,
    permit: Option<Arc<BodyPermit>>,
) -> Result<ReadResult, RequestError> {
    let reject = |status, text: String| RequestError::new(api, status, &text);
    let length = body_of(&reading).len();
    let search = move || {
        let found = ObjectReferences::read(api, body_of(&reading));
        (reading, found)
    };
    let ((reading, found), _) = blocking::run(length, permit, search).await;
    let found = found.map_err(|why| {
        let text = format!("the body cannot be checked for what the provider stores: {why}");
        reject(StatusCode::BAD_REQUEST, text)
    })?;
    if found.has_conversation && !inbound.caller.may_create_conversations() {
        let text = "`conversation` is not open to this caller, because its key opens an account that others use: continue with `previous_response_id`, or name `/v1/conversations` in `paths`";
        return Err(reject(StatusCode::FORBIDDEN, text.to_owned()));
    }
    check_ids(proxy, &inbound.caller, api, found.ids).await?;
    Ok(reading)
}

/// The body of a request.
fn body_of(reading: &ReadResult) -> &[u8] {
    match reading {
        Ok(request) => request.text.as_bytes(),
        Err(unread) => &unread.body,
    }
}

/// Checks the id in the path of a stored response, such as `/v1/responses/ID/cancel`.
pub(crate) async fn check_path(
    proxy: &Proxy,
    inbound: &AdmittedRequest,
) -> Result<(), RequestError> {
    let segments = inbound.path.segments();
    let rest = match segments.as_slice() {
        [version, rest @ ..] if version.eq_ignore_ascii_case("v1") => rest,
        rest => rest,
    };
    match rest {
        [kind, id, ..] if kind.eq_ignore_ascii_case("responses") => {
            let ids = vec![(*id).to_owned()];
            check_ids(proxy, &inbound.caller, Api::Responses, ids).await
        }
        _ => Ok(()),
    }
}

async fn check_ids(
    proxy: &Proxy,
    caller: &Caller,
    api: Api,
    ids: Vec<String>,
) -> Result<(), RequestError> {
    if ids.is_empty() {
        return Ok(());
    }
    let keys: Vec<RecordKey> = ids.iter().map(|id| ownership_key(caller.id, id)).collect();
    let mut found = proxy.load(&keys).await.into_iter();
    for id in ids {
        // A store that does not answer has found nothing.
        if found.next().flatten().is_none() {
            let id: String = id.chars().filter(char::is_ascii_graphic).take(64).collect();
            let hint = match api {
                Api::Responses => {
                    "send the conversation itself in `input`, without ids of containers"
                }
                Api::Messages => "leave `container` out",
                Api::Chat => "send the transcript as `content` in place of `audio`",
                Api::Gemini => "leave it out",
            };
            let text =
                format!("this caller did not create `{id}`, or the record of it was lost: {hint}");
            return Err(RequestError::new(api, StatusCode::FORBIDDEN, &text));
        }
    }
    Ok(())
}

/// What the record of an id is stored under.
pub(crate) fn ownership_key(caller: [u8; 32], id: &str) -> RecordKey {
    let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy stored by caller");
    RecordKey(*hasher.update(&caller).update(id.as_bytes()).finalize().as_bytes())
}
