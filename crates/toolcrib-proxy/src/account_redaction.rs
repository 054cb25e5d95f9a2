//! Removes data about the operator's account from responses to clients that use this account.
//!
//! A caller that sends a Toolcrib key in place of a credential uses a credential of the operator, and so does every
//! client of a route that has a `key`. Such a client must not learn the credential, which providers repeat in some
//! errors, and must not receive the account's cookies or the name of its organisation.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use toolcrib_server::mask;

use crate::Secret;

/// Headers that describe the account, or that tell the client how to treat the provider's host. The latter would apply
/// to the proxy's host, because that is where the client is connected.
const ACCOUNT_HEADERS: [HeaderName; 7] = [
    header::SET_COOKIE,
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("anthropic-organization-id"),
    HeaderName::from_static("clear-site-data"),
    header::ALT_SVC,
    header::STRICT_TRANSPORT_SECURITY,
];

pub(crate) fn remove_account_headers(headers: &mut HeaderMap) {
    for name in &ACCOUNT_HEADERS {
        headers.remove(name);
    }
}

/// Masks the credential in headers.
pub(crate) fn mask_headers(headers: &mut HeaderMap, credential: &Secret) {
    for value in headers.values_mut() {
        if let Some(masked) = mask::bytes(value.as_bytes(), credential) {
            *value = HeaderValue::from_bytes(&masked)
                .unwrap_or_else(|_| HeaderValue::from_static("***"));
        }
    }
}

/// Masks the credential in a body. Trailing bytes that may be the start of the credential are held back until more
/// bytes arrive.
pub(crate) fn mask_body<E: Send + 'static>(
    body: impl Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    credential: Secret,
) -> impl Stream<Item = Result<Bytes, E>> + Send {
    let state = (body.fuse(), credential, Vec::new());
    stream::unfold(state, |(mut body, credential, mut held): (_, Secret, Vec<u8>)| async move {
        loop {
            match body.next().await {
                Some(Ok(bytes)) => {
                    held.extend_from_slice(&bytes);
                    if let Some(masked) = mask::bytes(&held, &credential) {
                        held = masked;
                    }
                    let kept = credential.expose().len().saturating_sub(1).min(held.len());
                    let ready: Vec<u8> = held.drain(..held.len() - kept).collect();
                    if !ready.is_empty() {
                        return Some((Ok(Bytes::from(ready)), (body, credential, held)));
                    }
                }
                Some(Err(error)) => return Some((Err(error), (body, credential, Vec::new()))),
                None if held.is_empty() => return None,
                None => return Some((Ok(Bytes::from(held)), (body, credential, Vec::new()))),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[tokio::test]
    async fn a_credential_is_masked_however_the_body_is_chunked() {
        let text = "key sk-0123456789 and sk-0123456789sk-012345678 end";
        for size in 1..text.len() {
            let pieces = text
                .as_bytes()
                .chunks(size)
                .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
            let pieces: Vec<_> = pieces.collect();
            let body = mask_body(stream::iter(pieces), Secret::from("sk-0123456789"));
            let masked: Vec<u8> = body.map(|piece| piece.unwrap().to_vec()).concat().await;
            let masked = String::from_utf8(masked).unwrap();
            assert_eq!(masked, "key *** and ***sk-012345678 end", "{size}");
        }
    }
}
