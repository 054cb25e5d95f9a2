//! Finds Toolcrib keys in parts of a request that would be forwarded to a provider.
//!
//! A key is recognised, and removed, where credentials belong. Anywhere else (in a cookie, in another parameter, in
//! quotes) it would be sent to the provider, which could then use the proxy. Such a request is rejected.

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, Uri};

use crate::credentials;
use crate::path::unescape;
use crate::query;
use crate::toolcrib_headers::PREFIX;

/// How many times percent escapes are decoded. Once is not enough, because a server behind another server may decode
/// them a second time.
const DECODE_PASSES: usize = 2;

/// The part of a request that contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// The header with this name.
    Header(String),
    /// The path.
    Path,
    /// The query.
    Query,
}

impl fmt::Display for KeyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "the header `{name}`"),
            Self::Path => f.write_str("the path"),
            Self::Query => f.write_str("the query"),
        }
    }
}

/// Returns the part of a request that contains a Toolcrib key where no credential belongs; `None` if there is none.
/// `is_key` returns whether a text is a key, and `has_key` whether a text contains one.
pub(crate) fn find_misplaced_key(
    uri: &Uri,
    headers: &HeaderMap,
    is_key: impl Fn(&str) -> bool,
    has_key: impl Fn(&str) -> bool,
) -> Option<KeyLocation> {
    let is_in = |text: &str| {
        let mut text = Cow::Borrowed(text);
        for _ in 0..DECODE_PASSES {
            if has_key(&text) || !text.contains('%') {
                break;
            }
            text = Cow::Owned(unescape(&text));
        }
        has_key(&text)
    };
    for (name, value) in headers {
        let (name, value) = (name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        // Toolcrib's own headers are not checked, because they are never forwarded.
        let is_credential =
            credentials::HEADERS.contains(&name) && is_key(credentials::in_header(name, &value));
        let is_found = || is_in(&value) || decoded_basic(&value).is_some_and(|text| has_key(&text));
        if !name.starts_with(PREFIX) && !is_credential && is_found() {
            return Some(KeyLocation::Header(name.to_owned()));
        }
    }
    if is_in(uri.path()) {
        return Some(KeyLocation::Path);
    }
    let query = uri.query().unwrap_or_default();
    is_in(&query::without(query, is_key)).then_some(KeyLocation::Query)
}

/// Decodes the user and password in a `Basic` header, which clients send for credentials in a URL. Returns `None` for
/// any other header.
fn decoded_basic(value: &str) -> Option<String> {
    let (scheme, encoded) = value.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let (mut bits, mut count, mut decoded) = (0_u32, 0, Vec::new());
    for byte in encoded.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => continue,
        };
        (bits, count) = ((bits << 6) | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            decoded.extend(u8::try_from((bits >> count) & 0xff));
        }
    }
    Some(String::from_utf8_lossy(&decoded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "virtual-key+1";

    fn location(target: &str, header: Option<(&'static str, &str)>) -> Option<String> {
        let headers = header.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let found = find_misplaced_key(
            &target.parse().unwrap(),
            &headers,
            |text| text == KEY,
            |text| text.contains(KEY),
        );
        found.map(|location| location.to_string())
    }

    #[test]
    fn a_misplaced_key_is_found_in_every_part_of_a_request() {
        for (target, expected) in [
            ("/v1/models?key=virtual-key%2B1", None),
            ("/v1/models?key=virtual%2dkey%2B1&a=1&KEY=virtual-key%2B1", None),
            ("/v1/models?key=sk-own", None),
            // In a query, `+` means a space, so this value is not the key. It must still be found, because some servers
            // would read it as the key.
            ("/v1/models?key=virtual-key+1", Some("the query")),
            ("/v1/models?key=%20virtual-key%2B1", Some("the query")),
            ("/v1/models?token=virtual-key%2B1", Some("the query")),
            ("/v1/models?a=1;key=virtual-key+1", Some("the query")),
            ("/v1/models?virtual-key%252B1", Some("the query")),
            ("/v1/models/virtual-key%2B1", Some("the path")),
        ] {
            assert_eq!(location(target, None).as_deref(), expected, "{target}");
        }
        for (name, value, is_found) in [
            ("authorization", "Bearer virtual-key+1", false),
            ("authorization", "virtual-key+1", false),
            ("x-api-key", "virtual-key+1 ", false),
            ("x-toolcrib-key", "virtual-key+1", false),
            ("authorization", "Bearer \"virtual-key+1\"", true),
            ("x-api-key", "Bearer virtual-key+1", true),
            ("cookie", "a=virtual-key%2B1", true),
            // The encoded text is `user:virtual-key+1`.
            ("authorization", "Basic dXNlcjp2aXJ0dWFsLWtleSsx", true),
            ("proxy-authorization", "basic dXNlcjp2aXJ0dWFsLWtleSsx", true),
            ("authorization", "Basic dXNlcjp4", false),
        ] {
            let found = location("/v1/models", Some((name, value)));
            let expected = is_found.then(|| format!("the header `{name}`"));
            assert_eq!(found, expected, "{name}: {value}");
        }
    }
}
