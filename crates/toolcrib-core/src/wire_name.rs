//! Names that every provider accepts, one for each (server, tool).
//!
//! The common ground of the four LLM APIs is `[a-zA-Z_][a-zA-Z0-9_-]{0,63}`. A clean pair becomes
//! `server__tool`; anything else becomes a readable slug and 80 bits of a hash, `slug_h<16 chars>`.
//! Gluing with a separator alone is not injective (`a_`+`b` and `a`+`_b`), and counting up on a
//! collision depends on who connected first. Here the name depends on the pair and nothing else.

use std::borrow::Cow;

pub use crate::own_names::PROVIDER_SEARCH_NAMES;
use crate::own_names::{CALL, DESCRIBE, SEARCH, SEARCH_REGEX};

/// The longest name that every provider accepts.
pub const MAX_WIRE_NAME: usize = 64;

/// Names that are ours by default, or a provider's own, and never a stranger's.
pub const RESERVED: [&str; 6] =
    [SEARCH, SEARCH_REGEX, DESCRIBE, CALL, PROVIDER_SEARCH_NAMES[0], PROVIDER_SEARCH_NAMES[1]];

/// Whether a tool may not have this name, in whatever case. Where our tools go by other names,
/// [`OwnNames::is_reserved`](crate::disclosure::OwnNames::is_reserved) tells.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// Whether every provider accepts this name as it is.
pub fn is_valid(name: &str) -> bool {
    name.len() <= MAX_WIRE_NAME
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The wire name of a server's tool. Injective over pairs, and the same wherever it is computed.
///
/// ```
/// use toolcrib_core::wire_name;
/// assert_eq!(wire_name::of("github", "create_issue"), "github__create_issue");
/// assert_ne!(wire_name::of("a_", "b"), wire_name::of("a", "_b"));
/// ```
pub fn of(server: &str, tool: &str) -> String {
    let joined = if server.is_empty() { tool.to_owned() } else { format!("{server}__{tool}") };
    // The first `__` must be the one that joins, or two pairs could share a name.
    let splits_once = if server.is_empty() {
        !tool.contains("__")
    } else {
        !tool.is_empty() && !server.contains("__") && !server.ends_with('_')
    };
    if splits_once && is_plain(&joined) { joined } else { hashed(&joined, &[server, tool]) }
}

/// The wire name of a tool whose server has no prefix: the tool's own name, unless a tool of a server with one
/// of these prefixes could have it. Then it has a hash, whether or not there is such a tool.
///
/// ```
/// use toolcrib_core::wire_name;
/// assert_eq!(wire_name::unprefixed("read", ["github"]), "read");
/// assert_ne!(wire_name::unprefixed("github__read", ["github"]), "github__read");
/// ```
pub fn unprefixed<'n, 'p>(
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

/// The wire name with its hash, even for a pair that would not need one: for when another tool goes
/// by the plain name.
pub fn distinct(server: &str, tool: &str) -> String {
    hashed(&format!("{server}__{tool}"), &[server, tool])
}

/// The wire name of a tool whose full name is already settled: the name itself where it is valid.
pub fn of_full(name: &str) -> Cow<'_, str> {
    if is_plain(name) { Cow::Borrowed(name) } else { Cow::Owned(hashed(name, &[name])) }
}

/// Valid, not reserved, and not of the shape that only [`hashed`] may produce.
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
        // The length keeps ("ab", "c") and ("a", "bc") apart.
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
    // Five bits a character: RFC 4648 base 32 in lower case.
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
    fn clean_pairs_stay_readable() {
        assert_eq!(of("github", "create_issue"), "github__create_issue");
        assert_eq!(of("", "read_file"), "read_file");
        assert_eq!(of("a", "_b"), "a___b");
    }

    #[test]
    fn what_a_provider_would_refuse_gets_a_slug_and_a_hash() {
        let name = of("TheClique", "Songkick concert");
        assert!(name.starts_with("TheClique__Songkick_concert_h"), "{name}");
        assert!(is_valid(&name));
        let long = of("server", &"x".repeat(500));
        assert_eq!(long.len(), MAX_WIRE_NAME - 1);
        assert!(is_valid(&of("1password", "get")) && is_valid(&of("名前", "検索")));
    }

    #[test]
    fn our_own_names_are_out_of_reach() {
        for reserved in RESERVED {
            assert_ne!(of("", reserved), reserved);
            assert_ne!(of_full(reserved), reserved);
        }
        let forged = of("a", "b c");
        assert_ne!(of("", &forged), forged, "a stranger cannot pick another tool's hashed name");
    }
}
