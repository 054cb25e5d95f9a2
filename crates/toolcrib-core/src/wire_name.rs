//! How the wire name of a tool is made. It is a name that every provider accepts, unique for each pair of server and
//! tool.
//!
//! The names that all four LLM APIs accept are `[a-zA-Z_][a-zA-Z0-9_-]{0,63}`. The wire name is `server__tool` if that
//! has this form, is not reserved, and cannot be the name of another pair. Otherwise it is a readable slug with 80 bits
//! of a hash, `slug_h<16 chars>`. A wire name depends only on the pair.
//!
//! Two alternatives were rejected. Joining with a separator alone is not injective (`a_`+`b` and `a`+`_b`). If
//! collisions were numbered, the names would depend on which server connected first.

use std::borrow::Cow;

pub use crate::own_names::PROVIDER_SEARCH_NAMES;
use crate::own_names::{CALL, DESCRIBE, READ, SEARCH, SEARCH_REGEX, WRITE};

/// Maximum length of a name that every provider accepts, in bytes.
pub const MAX_WIRE_NAME: usize = 64;

/// The default names of our own tools, and the names of providers' own search tools. No other tool may have one of
/// these names.
pub const RESERVED: [&str; 8] = [
    SEARCH,
    SEARCH_REGEX,
    DESCRIBE,
    CALL,
    READ,
    WRITE,
    PROVIDER_SEARCH_NAMES[0],
    PROVIDER_SEARCH_NAMES[1],
];

/// Whether this name is in [`RESERVED`], compared case-insensitively. If our own tools do not have their default names,
/// use [`OwnNames::is_reserved`](crate::disclosure::OwnNames::is_reserved) instead.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Whether every provider accepts this name unchanged.
pub fn is_valid(name: &str) -> bool {
    name.len() <= MAX_WIRE_NAME
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Returns the wire name of a server's tool. It depends only on the pair, and different pairs have different names.
///
/// ```
/// use toolcrib_core::wire_name;
/// assert_eq!(wire_name::for_tool("github", "create_issue"), "github__create_issue");
/// assert_ne!(wire_name::for_tool("a_", "b"), wire_name::for_tool("a", "_b"));
/// ```
pub fn for_tool(server: &str, tool: &str) -> String {
    let joined = if server.is_empty() { tool.to_owned() } else { format!("{server}__{tool}") };
    // The first `__` in the name must be the separator. Otherwise two different pairs could have the same name.
    let splits_once = if server.is_empty() {
        !tool.contains("__")
    } else {
        !tool.is_empty() && !server.contains("__") && !server.ends_with('_')
    };
    if splits_once && is_plain(&joined) { joined } else { hashed(&joined, &[server, tool]) }
}

/// Returns the wire name of a tool whose server has no prefix. It is the tool's own name, unless a tool of a server with
/// one of these prefixes could have the same name. In that case the wire name has a hash, even if no such tool exists.
///
/// ```
/// use toolcrib_core::wire_name;
/// assert_eq!(wire_name::for_unprefixed_tool("read", ["github"]), "read");
/// assert_ne!(wire_name::for_unprefixed_tool("github__read", ["github"]), "github__read");
/// ```
pub fn for_unprefixed_tool<'n, 'p>(
    tool: &'n str,
    prefixes: impl IntoIterator<Item = &'p str>,
) -> Cow<'n, str> {
    let begins =
        |prefix: &str| tool.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__"));
    if looks_hashed(tool) || prefixes.into_iter().any(begins) {
        Cow::Owned(hashed(tool, &["", tool]))
    } else {
        Cow::Borrowed(tool)
    }
}

/// Returns the wire name with a hash, even for a pair that would not need one. This is used if another tool already has
/// the plain name.
pub fn with_hash(server: &str, tool: &str) -> String {
    hashed(&format!("{server}__{tool}"), &[server, tool])
}

/// Returns the wire name of a tool whose plain name was given to another tool of the same server. It differs from every
/// name that the other functions of this module return.
///
/// ```
/// use toolcrib_core::wire_name;
/// assert_ne!(wire_name::for_displaced_tool("a", "b"), wire_name::for_tool("a", "b"));
/// assert_ne!(wire_name::for_displaced_tool("a", "b"), wire_name::with_hash("a", "b"));
/// ```
pub fn for_displaced_tool(server: &str, tool: &str) -> String {
    let joined = if server.is_empty() { tool.to_owned() } else { format!("{server}__{tool}") };
    hashed(&joined, &[server, tool, "displaced"])
}

/// Returns the wire name of a tool whose full name is already fixed. It is the name itself, unless that is invalid,
/// reserved or looks like a hashed name.
pub fn for_full_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) { Cow::Borrowed(name) } else { Cow::Owned(hashed(name, &[name])) }
}

/// Whether a name is valid, not reserved, and not of the form that only [`hashed`] may return.
fn is_plain(name: &str) -> bool {
    is_valid(name) && !is_reserved(name) && !looks_hashed(name)
}

const HASH_CHARS: usize = 16;

fn looks_hashed(name: &str) -> bool {
    let Some(tail) = name.len().checked_sub(HASH_CHARS + 2).and_then(|at| name.get(at..)) else {
        return false;
    };
    tail.strip_prefix("_h").is_some_and(|hash| {
        hash.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b))
    })
}

fn hashed(readable: &str, parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length is hashed as well, to distinguish ("ab", "c") from ("a", "bc").
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let slug: String = readable
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .take(MAX_WIRE_NAME - HASH_CHARS - 3)
        .collect();
    let slug = slug.trim_matches('_');
    let first = if slug.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "t" };
    let mut name = format!("{first}{slug}_h");
    // The hash is written in the base 32 of RFC 4648, in lower case, with five bits per character.
    let bits = hasher.finalize();
    let bits = bits.as_bytes()[..10].iter().fold(0u128, |acc, byte| (acc << 8) | u128::from(*byte));
    for i in (0..HASH_CHARS).rev() {
        let five = (bits >> (5 * i)) as u8 & 31;
        name.push(char::from(if five < 26 { b'a' + five } else { b'2' + five - 26 }));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_pairs_stay_readable() {
        assert_eq!(for_tool("github", "create_issue"), "github__create_issue");
        assert_eq!(for_tool("", "read_file"), "read_file");
        assert_eq!(for_tool("a", "_b"), "a___b");
    }

    #[test]
    fn names_that_providers_reject_become_a_slug_with_a_hash() {
        let name = for_tool("TheClique", "Songkick concert");
        assert!(name.starts_with("TheClique__Songkick_concert_h"), "{name}");
        assert!(is_valid(&name));
        let long = for_tool("server", &"x".repeat(500));
        assert_eq!(long.len(), MAX_WIRE_NAME - 1);
        assert!(is_valid(&for_tool("1password", "get")) && is_valid(&for_tool("名前", "検索")));
    }

    #[test]
    fn no_tool_can_get_a_reserved_or_a_hashed_name() {
        for reserved in RESERVED {
            assert_ne!(for_tool("", reserved), reserved);
            assert_ne!(for_full_name(reserved), reserved);
        }
        let forged = for_tool("a", "b c");
        assert_ne!(
            for_tool("", &forged),
            forged,
            "a stranger cannot pick another tool's hashed name"
        );
    }
}
