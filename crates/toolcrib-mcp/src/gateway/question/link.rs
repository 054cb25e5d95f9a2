//! Shows where a link leads, for a person who must decide whether to open it.

use url::Url;

use crate::hidden_text::has_invisible_chars;

/// Returns the host of a URL, to be shown to a person. The port is included unless it is the scheme's default. A URL
/// that programs could parse in different ways is rejected.
pub(super) fn link_host(url: &str) -> Result<String, &'static str> {
    let is_suspicious = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    if has_invisible_chars(url) || url.contains(is_suspicious) {
        return Err("has blanks, backslashes or invisible characters in it");
    }
    let parsed = Url::parse(url).map_err(|_| "cannot be read")?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("is not an http or https address");
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("has a user name or password in it");
    }
    let host = parsed.host_str().filter(|host| !host.is_empty()).ok_or("names no host")?;
    Ok(parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}
