//! The parts of a request in which clients send a provider's credential. A Toolcrib key may be sent there instead.

use std::borrow::Cow;

use axum::http::{HeaderMap, Uri};

use crate::query;
use crate::toolcrib_headers::{InvalidHeader, single};

/// The headers in which clients send a provider's credential. Some agents send two of them, and either may contain a
/// Toolcrib key.
pub(crate) const HEADERS: [&str; 4] = ["x-api-key", "authorization", "x-goog-api-key", "api-key"];

/// Returns the provider credentials in a request, from every place where clients put them.
pub(crate) fn provider_credentials<'a>(
    uri: &'a Uri,
    headers: &'a HeaderMap,
) -> Result<Vec<Cow<'a, str>>, InvalidHeader> {
    let mut all = Vec::new();
    for name in HEADERS {
        all.extend(single(headers, name)?.map(|value| Cow::Borrowed(in_header(name, value))));
    }
    all.extend(query::credentials(uri.query().unwrap_or_default()));
    Ok(all)
}

/// Returns the credential in the value of one of [`HEADERS`].
pub(crate) fn in_header<'a>(name: &str, value: &'a str) -> &'a str {
    let key = match value.split_once(|c: char| c.is_ascii_whitespace()) {
        Some((_, key)) if name == "authorization" => key,
        _ => value,
    };
    key.trim()
}
