//! The query of a request: credentials, which Google's clients put there, and parameters that change the meaning of a
//! request.

use std::borrow::Cow;

use url::form_urlencoded;

/// Parameters that contain a credential.
const CREDENTIALS: [&str; 4] = ["key", "access_token", "oauth_token", "api_key"];
/// Parameters that make some servers use a different method from that of the request.
const METHODS: [&str; 4] = ["_method", "$method", "$httpmethod", "x-http-method-override"];

/// Parameters of requests to Gemini that callers with a limited scope may send, in addition to credentials. Other
/// parameters can change the format of the response: `callback` wraps it in a script.
const GEMINI: [&str; 4] = ["alt", "$alt", "prettyPrint", "$prettyPrint"];

/// Why the query of a limited caller is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidQuery {
    /// A parameter overrides the method.
    #[error("the query overrides the method, which a caller with a key or a scope may not do")]
    Method,
    /// The query contains a semicolon, which some servers treat as a separator.
    #[error("the query contains a semicolon, which some servers treat as `&`: write it as `%3B`")]
    Semicolon,
    /// A parameter that selects the format of the response is repeated or has an unexpected spelling.
    #[error(
        "`alt` in the query is repeated or has an unexpected spelling: send `alt=sse` or leave it out"
    )]
    Alt,
    /// A parameter is not one of the allowed ones, so it may change the format of the response.
    #[error(
        "this caller's tools are limited, and the query contains a parameter other than `alt` and `prettyPrint`: leave it out"
    )]
    Unknown,
}

/// Returns the credentials in a query, decoded.
pub(crate) fn credentials(query: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.filter(|(name, _)| is_credential(name)).map(|(_, value)| value)
}

/// Removes the credentials for which `is_removed` returns true from a query. The other parameters keep their bytes.
pub(crate) fn without(query: &str, is_removed: impl Fn(&str) -> bool) -> String {
    let kept = query.split('&').filter(|pair| {
        let mut pairs = form_urlencoded::parse(pair.as_bytes());
        !pairs.next().is_some_and(|(name, value)| is_credential(&name) && is_removed(&value))
    });
    kept.collect::<Vec<_>>().join("&")
}

/// Removes the credentials from a path with a query. The other parameters keep their bytes.
pub(crate) fn without_credentials(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let kept = without(query, |_| true);
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{kept}") }
}

/// Checks that the query of a limited caller does not override decisions that were made from the method and the path.
pub(crate) fn check(query: &str) -> Result<(), InvalidQuery> {
    if query.contains(';') {
        return Err(InvalidQuery::Semicolon);
    }
    let mut formats = 0;
    for pair in query.split('&') {
        let Some(name) = name(pair) else { continue };
        let name = name.to_ascii_lowercase();
        if METHODS.contains(&name.as_str()) {
            return Err(InvalidQuery::Method);
        }
        if matches!(name.as_str(), "alt" | "$alt") {
            formats += 1;
            // Other spellings are rejected: the proxy would ignore them, but the upstream might recognise them.
            let is_plain =
                matches!(pair, "alt=sse" | "$alt=sse" | "%24alt=sse" | "alt=json" | "$alt=json");
            if !is_plain || formats > 1 {
                return Err(InvalidQuery::Alt);
            }
        }
    }
    Ok(())
}

/// Checks the query of a request to Gemini from a caller with a limited scope. Only parameters that leave the response
/// in a format that the proxy can check are allowed.
pub(crate) fn check_gemini(query: &str) -> Result<(), InvalidQuery> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let is_known = |name: &str| GEMINI.contains(&name) || is_credential(name);
    let mut names = pairs.map(|(name, _)| name);
    if names.all(|name| is_known(&name)) { Ok(()) } else { Err(InvalidQuery::Unknown) }
}

fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns the decoded name of a parameter.
fn name(pair: &str) -> Option<String> {
    form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_and_removed_in_every_spelling() {
        let query = "a=1&key=one&KEY=two&k%65y=th%72ee&access_token=four&monkey=5";
        assert_eq!(credentials(query).collect::<Vec<_>>(), ["one", "two", "three", "four"]);
        assert_eq!(without_credentials(&format!("/x?{query}")), "/x?a=1&monkey=5");
        assert_eq!(without_credentials("/x?key=1"), "/x");
        assert_eq!(without_credentials("/x?a=%20b&c[]=+"), "/x?a=%20b&c[]=+");
    }

    #[test]
    fn a_query_cannot_change_the_method_or_the_format() {
        for query in ["", "alt=sse", "$alt=sse&beta=true", "pageSize=2", "alternative=1"] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        for query in ["alt=sse&alt=json", "al%74=sse", "alt=SSE", "$alt=json&alt=sse", "alt=media"]
        {
            assert_eq!(check(query), Err(InvalidQuery::Alt), "{query}");
        }
        for query in ["_method=DELETE", "a=1&%24httpMethod=PATCH"] {
            assert_eq!(check(query), Err(InvalidQuery::Method), "{query}");
        }
        assert_eq!(check("x=1;_method=DELETE"), Err(InvalidQuery::Semicolon));
        assert_eq!(check("x=1%3B2"), Ok(()));
        for query in ["", "alt=sse", "%24alt=json&key=k&prettyPrint=false"] {
            assert_eq!(check_gemini(query), Ok(()), "{query}");
        }
        for query in ["callback=f", "alt=sse&call%62ack=f", "$callback=f", "fields=candidates"] {
            assert_eq!(check_gemini(query), Err(InvalidQuery::Unknown), "{query}");
        }
    }
}
