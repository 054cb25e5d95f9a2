//! The normalised path of a request, which every decision uses.
//!
//! Which API a path belongs to, whether it is open to a caller and what is logged must not depend on its spelling,
//! because the upstream may treat other spellings as the same path. So a path is normalised once, before any decision:
//! unnecessary percent escapes are decoded, and repeated and trailing slashes are removed. A path that another program
//! could read as a different path is rejected: dot segments in any encoding, encoded slashes, backslashes, control
//! characters, double escapes, and bytes that are not UTF-8.

use std::fmt;

/// A normalised path. It begins with `/`, contains only visible ASCII, and normalising it again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedPath(String);

/// Why a path is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// The path does not begin with a slash.
    #[error("the path does not begin with `/`")]
    Relative,
    /// A segment is `.` or `..`, possibly followed by parameters or spaces.
    #[error("the path contains a `.` or `..` segment")]
    Dots,
    /// The path contains an encoded slash, or a backslash, which some software treats as a slash.
    #[error("the path contains an encoded slash or a backslash")]
    Slash,
    /// The path contains a control character, such as NUL or a line feed.
    #[error("the path contains a control character")]
    Control,
    /// A `%` does not start an escape, or decoding results in another escape.
    #[error("the path contains malformed or double percent-encoding")]
    Escape,
    /// The bytes are not UTF-8, for example because of an overlong encoding.
    #[error("the path is not valid UTF-8")]
    NotUtf8,
}

impl NormalizedPath {
    /// Normalises a path without its query.
    pub fn read(path: &[u8]) -> Result<Self, InvalidPath> {
        if path.first() != Some(&b'/') {
            return Err(InvalidPath::Relative);
        }
        let decoded = decode(path)?;
        let mut normal = String::with_capacity(decoded.len());
        for segment in decoded.split('/').filter(|segment| !segment.is_empty()) {
            // Before resolving a segment, servlet containers remove parameters, and Windows removes spaces.
            let name = segment.split(';').next().unwrap_or_default().trim();
            if matches!(name, "." | "..") {
                return Err(InvalidPath::Dots);
            }
            normal.push('/');
            segment.chars().for_each(|c| encode(c, &mut normal));
        }
        if normal.is_empty() {
            normal.push('/');
        }
        Ok(Self(normal))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the path is a spelling of `/`. Paths such as `/%20` and `/;a` are treated as `/`, because some servers
    /// drop spaces and parameters.
    pub fn is_root(&self) -> bool {
        self.segments().into_iter().all(|segment| {
            let name = segment.split(';').next().unwrap_or_default();
            decode(name.as_bytes()).is_ok_and(|name| name.trim().is_empty())
        })
    }

    /// Returns the segments, without their slashes.
    pub fn segments(&self) -> Vec<&str> {
        self.0.split('/').skip(1).filter(|segment| !segment.is_empty()).collect()
    }
}

impl fmt::Display for NormalizedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Decodes every percent escape. An encoded slash is an error, so every slash in the result separates two segments.
fn decode(path: &[u8]) -> Result<String, InvalidPath> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let byte = if byte == b'%' {
            let (digits, after) = after.split_at_checked(2).ok_or(InvalidPath::Escape)?;
            rest = after;
            match escaped(digits).ok_or(InvalidPath::Escape)? {
                b'/' => return Err(InvalidPath::Slash),
                byte => byte,
            }
        } else {
            byte
        };
        match byte {
            b'\\' => return Err(InvalidPath::Slash),
            byte if byte.is_ascii_control() => return Err(InvalidPath::Control),
            byte => decoded.push(byte),
        }
    }
    // Double escapes are rejected, because a program that decodes the result again must get the same path.
    let doubled = |window: &[u8]| window[0] == b'%' && escaped(&window[1..]).is_some();
    if decoded.windows(3).any(doubled) {
        return Err(InvalidPath::Escape);
    }
    let text = String::from_utf8(decoded).map_err(|_| InvalidPath::NotUtf8)?;
    // Rejects control characters, including those outside ASCII, and Unicode's line separators.
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(InvalidPath::Control);
    }
    Ok(text)
}

/// Decodes the valid percent escapes in a text, and leaves everything else unchanged.
pub(crate) fn unescape(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| byte == b'%').and_then(escaped);
        decoded.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Parses two hexadecimal digits.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else { return None };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Writes a character of a segment, escaped if a path must not contain it.
fn encode(c: char, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(c) {
        out.push(c);
        return;
    }
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        out.push('%');
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Result<String, InvalidPath> {
        NormalizedPath::read(path.as_bytes()).map(|path| path.0)
    }

    #[test]
    fn different_spellings_of_a_path_are_normalised_to_one() {
        for path in [
            "/v1/chat/completions",
            "/v1/%63hat/completions",
            "/v1//chat///completions",
            "//v1/chat/completions/",
            "/v1/chat/%63%6F%6dpletions",
        ] {
            assert_eq!(read(path).as_deref(), Ok("/v1/chat/completions"), "{path}");
        }
        for (path, normal) in [
            ("/", "/"),
            ("//", "/"),
            ("/v1/models/g%3AgenerateContent", "/v1/models/g:generateContent"),
            ("/v1/models/gemini-2.5..x", "/v1/models/gemini-2.5..x"),
            ("/a b/%c3%a9\u{e9}\"", "/a%20b/%C3%A9%C3%A9%22"),
            ("/100%25x", "/100%25x"),
            ("/a%3Fb%23c", "/a%3Fb%23c"),
        ] {
            assert_eq!(read(path).as_deref(), Ok(normal), "{path}");
            assert_eq!(read(normal).as_deref(), Ok(normal), "normalised again: {path}");
        }
    }

    #[test]
    fn a_path_of_spaces_and_parameters_is_the_root() {
        for (path, is_root) in [
            ("/", true),
            ("///", true),
            ("/;a=1/%20", true),
            ("/%C2%A0;x", true),
            ("/a;b", false),
            ("/;/a", false),
            ("/%25", false),
        ] {
            let path = NormalizedPath::read(path.as_bytes()).unwrap();
            assert_eq!(path.is_root(), is_root, "{path}");
        }
    }

    #[test]
    fn a_path_that_could_be_read_as_another_is_rejected() {
        for (reason, paths) in [
            (InvalidPath::Relative, &["", "v1", "*"][..]),
            (
                InvalidPath::Dots,
                &[
                    "/..",
                    "/./a",
                    "/a/%2e%2E",
                    "/.%2e/",
                    "/..;/a",
                    "/..;x=1",
                    "/..%3b",
                    "/..%20/a",
                    "/a/..;",
                ],
            ),
            (InvalidPath::Slash, &["/a%2fb", "/..%2Fa", "/a\\b", "/..%5ca", "/%5C"]),
            (InvalidPath::Control, &["/a%00", "/a%0a", "/a\nb", "/a%7f", "/%c2%85", "/%e2%80%a8"]),
            (
                InvalidPath::Escape,
                &[
                    "/%252e%252e/a",
                    "/%25252e",
                    "/%%32%65",
                    "/%25%32e",
                    "/a%",
                    "/a%2",
                    "/a%zz",
                    "/%u002e",
                ],
            ),
            (InvalidPath::NotUtf8, &["/%c0%ae%c0%ae/a", "/%e0%80%ae", "/%ff"]),
        ] {
            for path in paths {
                assert_eq!(read(path), Err(reason), "{path}");
            }
        }
    }

    /// Tries every path of up to six characters from an alphabet that can encode dots, and decodes each path
    /// repeatedly.
    #[test]
    fn no_short_path_hides_dots() {
        const ALPHABET: &[u8] = b"./%2e5;";
        let (mut accepted, mut rejected) = (0, 0);
        for length in 0..=6 {
            for mut number in 0..ALPHABET.len().pow(length) {
                let mut path = b"/".to_vec();
                for _ in 0..length {
                    path.push(ALPHABET[number % ALPHABET.len()]);
                    number /= ALPHABET.len();
                }
                let Ok(normal) = NormalizedPath::read(&path) else {
                    rejected += 1;
                    continue;
                };
                accepted += 1;
                assert_eq!(NormalizedPath::read(normal.0.as_bytes()).as_ref(), Ok(&normal));
                for mut text in [normal.0.clone(), String::from_utf8(path).unwrap()] {
                    for _ in 0..3 {
                        let dots =
                            |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
                        assert!(!text.split('/').any(dots), "{text}");
                        text = text.replace("%2e", ".").replace("%25", "%").replace("%2E", ".");
                    }
                }
            }
        }
        assert!(accepted > 1_000 && rejected > 1_000, "{accepted} {rejected}");
    }
}
