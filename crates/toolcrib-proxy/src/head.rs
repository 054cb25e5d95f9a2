//! Headers, on the way up and on the way down.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use toolcrib_dialect::Summary;
use toolcrib_dialect::exchange::action::Report;

use crate::Secret;
use crate::caller::CREDENTIALS;
use crate::endpoint::Vendor;
use crate::our_headers::PREFIX;
use crate::route::Credential;

/// Headers that speak of one connection and not of the request.
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

/// Headers that choose a part of the provider's account. With a credential that is not the client's own, that
/// choice is not the client's either.
const ACCOUNT: [&str; 3] = ["openai-organization", "openai-project", "x-goog-user-project"];

/// Headers that make some servers use another method or path than those of the request, which were checked.
const OVERRIDES: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-prefix",
];

fn passes(name: &HeaderName, headers: &HeaderMap) -> bool {
    let named = headers.get_all(header::CONNECTION).iter().any(|value| {
        let text = value.to_str().unwrap_or_default();
        text.split(',').any(|part| part.trim().eq_ignore_ascii_case(name.as_str()))
    });
    !HOP_BY_HOP.contains(&name.as_str()) && !name.as_str().starts_with(PREFIX) && !named
}

/// Whether a client wants to go on through a socket.
pub(crate) fn wants_socket(headers: &HeaderMap) -> bool {
    let asked = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// What goes up of a client's headers. Of a limited caller's, none may change the method or the path.
pub(crate) fn up(
    headers: &HeaderMap,
    vendor: Vendor,
    credential: &Credential,
    is_limited: bool,
) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let own = matches!(*name, header::HOST | header::CONTENT_LENGTH | header::EXPECT);
        if !own && passes(name, headers) {
            out.append(name.clone(), value.clone());
        }
    }
    if *credential != Credential::Clients {
        for name in CREDENTIALS.into_iter().chain(ACCOUNT).chain(["cookie"]) {
            out.remove(name);
        }
    }
    if is_limited {
        for name in OVERRIDES {
            out.remove(name);
        }
    }
    if let Credential::Key(key) = credential {
        insert_key(&mut out, vendor, key);
    }
    out
}

/// Puts a client's own credential where an upstream of another vendor looks for it.
pub(crate) fn move_key(headers: &mut HeaderMap, vendor: Vendor) {
    let own = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = own("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    let key = own("x-api-key").or(bearer).or_else(|| own("x-goog-api-key")).map(Secret::from);
    for name in ["authorization", "x-api-key", "x-goog-api-key"] {
        headers.remove(name);
    }
    if let Some(key) = key {
        insert_key(headers, vendor, &key);
    }
}

/// Asks for a response that is not compressed, so that it can be read here.
pub(crate) fn ask_uncompressed(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

fn insert_key(out: &mut HeaderMap, vendor: Vendor, key: &Secret) {
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

/// Adds names of beta features to those a client asks for.
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

/// What comes down of an upstream's headers. `whole` says that the body is the one that came.
pub(crate) fn down(headers: &HeaderMap, whole: bool) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in headers {
        if passes(name, headers) && (whole || *name != header::CONTENT_LENGTH) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// The names of the trailers of a stream: what [`taken`] writes.
pub(crate) const TRAILERS: &str = "x-toolcrib-rounds, x-toolcrib-searches, x-toolcrib-last-input-tokens, x-toolcrib-last-output-tokens";

/// Puts what was decided about a request into the headers of a response.
pub(crate) fn write_report(report: &Report, out: &mut HeaderMap) {
    put(out, "x-toolcrib-mode", report.mode);
    // A header can only hold ASCII, and reasons are ASCII.
    put(out, "x-toolcrib-why", &report.why);
    if report.tools > 0 {
        put(out, "x-toolcrib-tools", &report.tools.to_string());
        put(out, "x-toolcrib-deferred", &report.deferred.to_string());
        put(out, "x-toolcrib-tokens-before", &report.tokens.0.to_string());
        put(out, "x-toolcrib-tokens-after", &report.tokens.1.to_string());
    }
}

/// What is known once the turn is over: headers of a whole response, trailers of a stream.
pub(crate) fn taken(summary: &Summary, out: &mut HeaderMap) {
    put(out, "x-toolcrib-rounds", &summary.rounds.to_string());
    put(out, "x-toolcrib-searches", &summary.searches.to_string());
    // Some upstreams count nothing unless they are asked to.
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
