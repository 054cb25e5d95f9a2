//! A set of names and patterns. The set matches a name if any of its members does.
//!
//! A caller may list hundreds of names, and a request may have thousands of tools. So names are looked up in a hash
//! set, and only patterns with wildcards are tried one by one.

use std::collections::HashSet;

use super::rules::{Glob, fold};

/// Names and patterns of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs {
    /// All names and patterns, in their original order.
    all: Vec<Glob>,
    /// The members without wildcards, case-folded.
    names: HashSet<Vec<char>>,
    /// Indices in `all` of the members with wildcards.
    patterns: Vec<usize>,
}

impl Globs {
    /// Adds a name or a pattern.
    pub fn push(&mut self, glob: Glob) {
        if glob.has_wildcard() {
            self.patterns.push(self.all.len());
        } else {
            self.names.insert(glob.folded().to_vec());
        }
        self.all.push(glob);
    }

    /// Whether there are no names or patterns.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All names and patterns, in their original order.
    pub fn iter(&self) -> impl Iterator<Item = &Glob> {
        self.all.iter()
    }

    /// Whether any of the names and patterns matches a plain name, compared as in [`Glob::matches_name`].
    pub fn matches_name(&self, text: &str) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let folded = fold(text);
        self.names.contains(&folded)
            || self.patterns.iter().any(|at| self.all[*at].matches_folded(&folded))
    }
}

impl<'a> FromIterator<&'a str> for Globs {
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let mut globs = Self::default();
        texts.into_iter().for_each(|text| globs.push(Glob::new(text)));
        globs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_if_one_of_the_globs_matches() {
        let texts = ["read_file", "Git__*", "a?c", " spaced ", "x/y", ""];
        let globs: Globs = texts.into_iter().collect();
        for name in
            ["read_file", "READ_FILE", "read_files", "git__log", "abc", "ac", "spaced", "x/y", ""]
        {
            let one = texts.iter().any(|text| Glob::new(text).matches_name(name));
            assert_eq!(globs.matches_name(name), one, "{name}");
        }
        assert_eq!(globs.patterns.len(), 2, "names are not tried one by one");
        assert!(Globs::default().is_empty() && !Globs::default().matches_name(""));
    }
}
