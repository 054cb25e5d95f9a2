//! Headers of requests to upstreams and of responses to clients.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use toolcrib_dialect::TurnSummary;
use toolcrib_dialect::exchange::action::DecisionReport;

use crate::Secret;
use crate::credentials;
use crate::endpoint::Vendor;
use crate::route::UpstreamCredential;
use crate::toolcrib_headers::PREFIX;

/// Headers that apply to one connection and not to the request.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that choose an organisation or project of the provider's account. They are removed if the credential is not
/// the client's own.
const ACCOUNT_HEADERS: [&str; 3] = ["openai-organization", "openai-project", "x-goog-user-project"];

/// Headers of a limited caller that are forwarded, in addition to its credential. Rejected: a list of forbidden
/// headers. Some headers make servers use another method, path or host than the one that was checked, and a list of
/// those would never be complete.
const ALLOWED_FOR_LIMITED: [&str; 22] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-encoding",
    "content-type",
    "user-agent",
    "anthropic-version",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "openai-beta",
    "x-goog-api-client",
    "x-request-id",
    "x-client-request-id",
    "idempotency-key",
    "traceparent",
    "tracestate",
    // Agents identify themselves and their users to a provider with these.
    "originator",
    "session_id",
    "conversation_id",
    "http-referer",
    "x-title",
    "x-app",
];

/// Prefix of the headers in which OpenAI's and Anthropic's SDKs describe themselves.
const SDK_PREFIX: &str = "x-stainless-";

fn is_forwarded(name: &HeaderName, headers: &HeaderMap) -> bool {
    let is_named_in_connection = headers.get_all(header::CONNECTION).iter().any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|part| part.trim().eq_ignore_ascii_case(name.as_str()))
    });
    !HOP_BY_HOP.contains(&name.as_str())
        && !name.as_str().starts_with(PREFIX)
        && !is_named_in_connection
}

/// Whether a client wants to switch to a WebSocket.
pub(crate) fn is_websocket_upgrade(headers: &HeaderMap) -> bool {
    let protocol = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// Whether a body with these headers is compressed.
pub(crate) fn is_compressed(headers: &HeaderMap) -> bool {
    let is_identity = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    };
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    values.any(|value| !value.as_bytes().split(|byte| *byte == b',').all(is_identity))
}

/// Declares the body as JSON, which is how it was read. With the client's own declaration the upstream might decode it
/// differently.
pub(crate) fn declare_json(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if !is_compressed(headers) {
        headers.remove(header::CONTENT_ENCODING);
    }
}

/// Returns the client's headers that are forwarded to the upstream. For a limited caller, these are only the allowed
/// headers.
pub(crate) fn for_upstream(
    headers: &HeaderMap,
    vendor: Vendor,
    credential: &UpstreamCredential,
    is_limited: bool,
) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len());
    let is_credential = |name: &str| {
        credentials::HEADERS
            .into_iter()
            .chain(ACCOUNT_HEADERS)
            .chain(["cookie"])
            .any(|of| of == name)
    };
    for (name, value) in headers {
        let own = matches!(*name, header::HOST | header::CONTENT_LENGTH | header::EXPECT);
        let text = name.as_str();
        let is_open = if is_credential(text) {
            *credential == UpstreamCredential::FromClient
        } else {
            !is_limited || ALLOWED_FOR_LIMITED.contains(&text) || text.starts_with(SDK_PREFIX)
        };
        if !own && is_open && is_forwarded(name, headers) {
            out.append(name.clone(), value.clone());
        }
    }
    if let UpstreamCredential::Key(key) = credential {
        insert_credential(&mut out, vendor, key);
    }
    out
}

/// Moves a client's own credential to the header that an upstream of another vendor expects.
pub(crate) fn move_credential(headers: &mut HeaderMap, vendor: Vendor) {
    let own = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = own("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    let key = own("x-api-key").or(bearer).or_else(|| own("x-goog-api-key")).map(Secret::from);
    for name in ["authorization", "x-api-key", "x-goog-api-key"] {
        headers.remove(name);
    }
    if let Some(key) = key {
        insert_credential(headers, vendor, &key);
    }
}

/// Requests an uncompressed response, so that the proxy can read it.
pub(crate) fn request_uncompressed(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

fn insert_credential(out: &mut HeaderMap, vendor: Vendor, key: &Secret) {
    let (name, text) = match vendor {
        Vendor::OpenAi => ("authorization", format!("Bearer {}", key.expose())),
        Vendor::Anthropic => ("x-api-key", key.expose().to_owned()),
        Vendor::Google => ("x-goog-api-key", key.expose().to_owned()),
    };
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        out.insert(HeaderName::from_static(name), value);
    }
}

/// Adds beta features to those that a client requests.
pub(crate) fn add_betas(headers: &mut HeaderMap, betas: &[&str]) {
    let name = HeaderName::from_static("anthropic-beta");
    let mut all: Vec<String> = Vec::new();
    for value in headers.get_all(&name) {
        let text = value.to_str().unwrap_or_default();
        all.extend(
            text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()),
        );
    }
    let new: Vec<&str> =
        betas.iter().copied().filter(|beta| !all.iter().any(|known| known == beta)).collect();
    if new.is_empty() {
        return;
    }
    all.extend(new.into_iter().map(str::to_owned));
    if let Ok(value) = HeaderValue::from_str(&all.join(",")) {
        headers.insert(name, value);
    }
}

/// Returns the upstream's headers that are forwarded to the client. `is_unchanged` says whether the body is forwarded
/// unchanged.
pub(crate) fn for_client(headers: &HeaderMap, is_unchanged: bool) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in headers {
        if is_forwarded(name, headers) && (is_unchanged || *name != header::CONTENT_LENGTH) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// The names of the trailers of a stream, which [`write_summary`] writes.
pub(crate) const SUMMARY_TRAILERS: &str = "x-toolcrib-rounds, x-toolcrib-searches, x-toolcrib-last-input-tokens, x-toolcrib-last-output-tokens";

/// Writes the decisions about a request into the headers of its response.
pub(crate) fn write_report(report: &DecisionReport, out: &mut HeaderMap) {
    put(out, "x-toolcrib-mode", report.mode);
    // A header can contain only ASCII, and all reasons are ASCII.
    put(out, "x-toolcrib-why", &report.reason);
    if report.tools > 0 {
        put(out, "x-toolcrib-tools", &report.tools.to_string());
        put(out, "x-toolcrib-deferred", &report.deferred.to_string());
        put(out, "x-toolcrib-tokens-before", &report.tokens_before.to_string());
        put(out, "x-toolcrib-tokens-after", &report.tokens_after.to_string());
    }
}

/// Writes the values that are known only at the end of a turn: into the headers of a complete response, or the trailers
/// of a stream.
pub(crate) fn write_summary(summary: &TurnSummary, out: &mut HeaderMap) {
    put(out, "x-toolcrib-rounds", &summary.rounds.to_string());
    put(out, "x-toolcrib-searches", &summary.searches.to_string());
    // Zero means that the upstream reported no token counts. Some upstreams report them only if the client requests
    // them.
    if summary.last.input > 0 {
        put(out, "x-toolcrib-last-input-tokens", &summary.last.input.to_string());
        put(out, "x-toolcrib-last-output-tokens", &summary.last.output.to_string());
    }
}

fn put(out: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        out.insert(HeaderName::from_static(name), value);
    }
}
