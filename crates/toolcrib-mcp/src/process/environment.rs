//! What a server sees of our environment: little.
//!
//! A server's code is not trusted beyond what it was granted, and our environment is full of keys that
//! belong to others. So it starts from nothing, takes over what any program needs to find its files
//! and its tools, and gets what its configuration names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variables taken over from our own environment where they are set.
pub const INHERITED_VARIABLES: [&str; 8] =
    ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR"];

/// The whole environment of a server: of `ours` the few in [`INHERITED_VARIABLES`], and all that is `named`.
///
/// What is named wins. Relative folders in our own `PATH` are left out: a server often runs in the folder of a project, and
/// would look there for the programs that it starts. Sorted, so that the same configuration gives the same environment.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    named: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let taken =
        ours.into_iter().filter(|(name, _)| INHERITED_VARIABLES.iter().any(|known| name == known));
    let taken = taken.filter_map(|(name, value)| {
        let value = if name == "PATH" { absolute_folders(&value)? } else { value };
        Some((name, value))
    });
    taken.chain(named).collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// A `PATH` without its relative and empty entries; `None` if nothing is left.
fn absolute_folders(path: &OsStr) -> Option<OsString> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders).ok().filter(|path| !path.is_empty())
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
    fn only_a_path_that_is_named_may_be_relative() {
        for (ours, expected) in [
            (".:/usr/bin::bin:/bin", Some("/usr/bin:/bin")),
            ("/bin:", Some("/bin")),
            (".", None),
            ("", None),
        ] {
            let expected: Vec<_> = expected.map(|path| pairs([("PATH", path)])).unwrap_or_default();
            assert_eq!(environment(pairs([("PATH", ours)]), []), expected, "{ours}");
        }
        let named = pairs([("PATH", ".:/opt")]);
        assert_eq!(environment(pairs([("PATH", "/bin")]), named.clone()), named);
    }

    #[test]
    fn every_name_on_the_list_is_taken_over_and_nothing_is_made_up() {
        let ours: Vec<_> =
            INHERITED_VARIABLES.iter().map(|name| (name.into(), "/x".into())).collect();
        let mut expected = ours.clone();
        expected.sort();
        assert_eq!(environment(ours, []), expected);
        assert_eq!(environment([], []), []);
    }
}
