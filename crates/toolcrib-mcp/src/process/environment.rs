//! The environment variables of a server.
//!
//! A server is not trusted with the gateway's environment, which may contain keys for other services. Therefore a
//! server gets only the variables that every program needs to find its files and tools, and those that its config sets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variables that a server inherits from the gateway's environment, if they are set.
pub const INHERITED_VARIABLES: [&str; 8] =
    ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR"];

/// Returns the complete environment of a server: the [`INHERITED_VARIABLES`] of `ours`, and all `configured` ones.
///
/// Configured variables take precedence. Relative folders in the inherited `PATH` are left out, because a server often
/// runs in a project's folder, and would look there for the programs that it starts. The result is sorted, so that the
/// same config gives the same environment.
pub fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    configured: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let inherited =
        ours.into_iter().filter(|(name, _)| INHERITED_VARIABLES.iter().any(|known| name == known));
    let inherited = inherited.filter_map(|(name, value)| {
        let value = if name == "PATH" { absolute_folders(&value)? } else { value };
        Some((name, value))
    });
    inherited.chain(configured).collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// Returns the `PATH` without its relative and empty entries. Returns `None` if no entry is left.
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
    fn few_variables_are_inherited_and_configured_ones_take_precedence() {
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
    fn only_a_configured_path_may_have_relative_folders() {
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
    fn every_inherited_variable_is_passed_and_no_other_is_added() {
        let ours: Vec<_> =
            INHERITED_VARIABLES.iter().map(|name| (name.into(), "/x".into())).collect();
        let mut expected = ours.clone();
        expected.sort();
        assert_eq!(environment(ours, []), expected);
        assert_eq!(environment([], []), []);
    }
}
