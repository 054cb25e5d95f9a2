//! The path of a request, in the one spelling that every decision uses.
//!
//! Which API a path means, whether it is open to a caller and what is logged must not depend on how the path
//! is written, because the upstream may read another spelling as the same path. So a path is normalised once,
//! before anything is decided: escapes of characters that need none are decoded, doubled slashes and a slash at
//! the end are dropped. A path that another program could read as a different path is refused: dot segments in
//! any encoding, encoded slashes, backslashes, control characters, escapes of escapes, and bytes that are no UTF-8.

use std::fmt;

/// A normalised path: it begins with `/`, holds only visible ASCII, and normalising it again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedPath(String);

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// It does not begin with a slash.
    #[error("the path does not begin with `/`")]
    Relative,
    /// A segment is `.` or `..`, perhaps with parameters or spaces after the dots.
    #[error("the path has `.` or `..` in it")]
    Dots,
    /// A slash in an escape, or a backslash, which some software reads as a slash.
    #[error("the path has an encoded slash or a backslash in it")]
    Slash,
    /// A control character, such as NUL or a line feed.
    #[error("the path has a control character in it")]
    Control,
    /// A `%` that begins no escape, or that is left when the escapes are decoded.
    #[error("the path has a malformed or a doubled percent-encoding in it")]
    Escape,
    /// The bytes are no UTF-8, for one because they encode a character in too many bytes.
    #[error("the path is not valid UTF-8")]
    NotUtf8,
}

impl NormalizedPath {
    /// Normalises a path, which has no query.
    pub fn read(path: &[u8]) -> Result<Self, InvalidPath> {
        if path.first() != Some(&b'/') {
            return Err(InvalidPath::Relative);
        }
        let decoded = decode(path)?;
        let mut normal = String::with_capacity(decoded.len());
        for segment in decoded.split('/').filter(|segment| !segment.is_empty()) {
            // Servlet containers cut parameters off a segment before they resolve it, Windows spaces.
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

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is another spelling of `/`: some servers drop spaces and parameters, as in `/%20` and `/;a`.
    pub fn is_root(&self) -> bool {
        self.segments().into_iter().all(|segment| {
            let name = segment.split(';').next().unwrap_or_default();
            decode(name.as_bytes()).is_ok_and(|name| name.trim().is_empty())
        })
    }

    /// The segments, without their slashes.
    pub fn segments(&self) -> Vec<&str> {
        self.0.split('/').skip(1).filter(|segment| !segment.is_empty()).collect()
    }
}

impl fmt::Display for NormalizedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Decodes every escape. Slashes in the result are those that were there without an escape.
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
    // A program that decodes it once more must read the same path.
    let doubled = |window: &[u8]| window[0] == b'%' && escaped(&window[1..]).is_some();
    if decoded.windows(3).any(doubled) {
        return Err(InvalidPath::Escape);
    }
    let text = String::from_utf8(decoded).map_err(|_| InvalidPath::NotUtf8)?;
    // Control characters beyond ASCII, among them other line ends.
    if text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(InvalidPath::Control);
    }
    Ok(text)
}

/// Decodes the percent escapes in any text, and leaves everything else unchanged.
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

/// The byte that two hexadecimal digits stand for.
fn escaped(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else { return None };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Writes a character of a segment: as it is where a path may hold it, as an escape otherwise.
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
    fn spellings_of_one_path_become_one() {
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
            assert_eq!(read(normal).as_deref(), Ok(normal), "twice: {path}");
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
    fn a_path_that_could_mean_another_is_refused() {
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

    /// Every path of up to six of the characters that dots can be written with, decoded again and again.
    #[test]
    fn no_short_path_hides_dots() {
        const ALPHABET: &[u8] = b"./%2e5;";
        let (mut accepted, mut refused) = (0, 0);
        for length in 0..=6 {
            for mut number in 0..ALPHABET.len().pow(length) {
                let mut path = b"/".to_vec();
                for _ in 0..length {
                    path.push(ALPHABET[number % ALPHABET.len()]);
                    number /= ALPHABET.len();
                }
                let Ok(normal) = NormalizedPath::read(&path) else {
                    refused += 1;
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
        assert!(accepted > 1_000 && refused > 1_000, "{accepted} {refused}");
    }
}
