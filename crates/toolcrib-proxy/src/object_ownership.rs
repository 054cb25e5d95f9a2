//! Which caller owns an object that the provider stores, and whether a request may refer to it.
//!
//! The Responses API stores responses, and a later request continues one by its id. Messages stores containers in the
//! same way, and Chat Completions stores audio. Callers whose key is replaced by the real credential share one account
//! of the provider, which would let each of them use, and thereby read, the objects of the others. So the proxy records
//! the id of every stored object that a caller receives, together with the caller's id (see `ownership_recorder`), and
//! rejects ids without such a record. The records are in the same store as the conversations. Rejected: a list in
//! memory, which replicas would not share.

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
use crate::route::{LlmUpstream, UpstreamCredential};

/// Whether requests to an API can refer to stored objects whose owner is recorded.
pub(crate) fn has_stored_objects(api: Api) -> bool {
    api != Api::Gemini
}

/// Whether a caller uses an account of the upstream that other callers use, too.
pub(crate) fn shares_account(caller: &Caller, upstream: &LlmUpstream) -> bool {
    let is_own =
        upstream.credential == UpstreamCredential::FromClient && caller.substitute_keys.is_none();
    caller.name().is_some() && !is_own
}

/// Checks that the caller owns all stored objects to which a body refers, and returns the body.
pub(crate) async fn check_body(
    proxy: &Proxy,
    admitted: &AdmittedRequest,
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
        let text = format!("the body cannot be checked for references to stored objects: {why}");
        reject(StatusCode::BAD_REQUEST, text)
    })?;
    if found.has_conversation && !admitted.caller.may_create_conversations() {
        let text = "`conversation` is not open to this caller, because other callers use the same account: continue with `previous_response_id`, or add `/v1/conversations` to `paths`";
        return Err(reject(StatusCode::FORBIDDEN, text.to_owned()));
    }
    check_ids(proxy, &admitted.caller, api, found.ids).await?;
    Ok(reading)
}

fn body_of(reading: &ReadResult) -> &[u8] {
    match reading {
        Ok(request) => request.text.as_bytes(),
        Err(unread) => &unread.body,
    }
}

/// Checks that the caller owns the stored response whose id is in the path, such as `/v1/responses/ID/cancel`. Any
/// other path is accepted.
pub(crate) async fn check_path(
    proxy: &Proxy,
    admitted: &AdmittedRequest,
) -> Result<(), RequestError> {
    let segments = admitted.path.segments();
    let rest = match segments.as_slice() {
        [version, rest @ ..] if version.eq_ignore_ascii_case("v1") => rest,
        rest => rest,
    };
    match rest {
        [kind, id, ..] if kind.eq_ignore_ascii_case("responses") => {
            let ids = vec![(*id).to_owned()];
            check_ids(proxy, &admitted.caller, Api::Responses, ids).await
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
        // If the store is unavailable, no record is found, so the request is rejected.
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
            let text = format!(
                "this caller did not create `{id}`, or the record of that was lost: {hint}"
            );
            return Err(RequestError::new(api, StatusCode::FORBIDDEN, &text));
        }
    }
    Ok(())
}

/// Returns the key of the record which says that a caller owns an id.
pub(crate) fn ownership_key(caller: [u8; 32], id: &str) -> RecordKey {
    let mut hasher = blake3::Hasher::new_derive_key("toolcrib proxy stored by caller");
    RecordKey(*hasher.update(&caller).update(id.as_bytes()).finalize().as_bytes())
}
