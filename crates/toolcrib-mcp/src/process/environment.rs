//! What a server sees of our environment: little.
//!
//! A server's code is not trusted beyond what it was granted, and our environment is full of keys that
//! belong to others. So it starts from nothing, takes over what any program needs to find its files
//! and its tools, and gets what its configuration names.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The variables taken over from our own environment where they are set.
pub const TAKEN_OVER: [&str; 8] =
    ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR"];

/// The whole environment of a server: of `ours` the few in [`TAKEN_OVER`], and all that is `named`.
///
/// What is named wins. Sorted, so that the same configuration gives the same environment.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    named: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let taken = ours.into_iter().filter(|(name, _)| TAKEN_OVER.iter().any(|known| name == known));
    taken.chain(named).collect::<BTreeMap<_, _>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(OsString, OsString)> {
        pairs.map(|(name, value)| (name.into(), value.into())).to_vec()
    }

    #[test]
    fn only_the_few_are_taken_over_and_what_is_named_wins() {
        let ours = pairs([
            ("PATH", "/usr/bin"),
            ("HOME", "/home/me"),
            ("OPENAI_API_KEY", "sk-secret"),
            ("LD_PRELOAD", "/tmp/evil.so"),
            ("LANGUAGE", "de"),
            ("path", "lower case is another name"),
        ]);
        let named = pairs([("PATH", "/opt/server/bin"), ("TOKEN", "for this server")]);
        let expected = pairs([
            ("HOME", "/home/me"),
            ("PATH", "/opt/server/bin"),
            ("TOKEN", "for this server"),
        ]);
        assert_eq!(environment(ours, named), expected);
    }

    #[test]
    fn every_name_on_the_list_is_taken_over_and_nothing_is_made_up() {
        let ours: Vec<_> = TAKEN_OVER.iter().map(|name| (name.into(), "x".into())).collect();
        let mut expected = ours.clone();
        expected.sort();
        assert_eq!(environment(ours, []), expected);
        assert_eq!(environment([], []), []);
    }
}
