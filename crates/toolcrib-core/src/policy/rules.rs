//! Rules about tools, by name, pattern and server.
//!
//! They come from the embedder's code and from configuration and are merged. Letter case never
//! decides: `Read_File` in a config means the tool `read_file`. A name that no tool has may be another
//! system's spelling of one: [`Rules::resolved`] decides.

use std::fmt;

use super::Because;
use crate::catalog::Catalog;
use crate::scope::Scope;
use crate::spelling::{Meaning, Spellings};
use crate::tool::{Defer, Tool, own_part};

/// A name, or a pattern with `*` (any characters) and `?` (one character).
///
/// `github/*` speaks of a server's tools and `/*` of tools without a server, anything without a
/// slash of the full name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    text: String,
    folded: Vec<char>,
}

impl Glob {
    /// Takes a pattern as it was written.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), folded: fold(text.trim()) }
    }

    /// Whether a tool is meant.
    pub fn matches(&self, tool: &Tool) -> bool {
        if matches(&self.folded, &fold(tool.name())) {
            return true;
        }
        if !self.folded.contains(&'/') {
            return false;
        }
        let name = tool.name().to_lowercase();
        let server = tool.server().unwrap_or_default().to_lowercase();
        let own = own_part(&name, tool.server().map(|_| &*server));
        let declared = tool.declared_name();
        [own, &*declared].iter().any(|own| matches(&self.folded, &fold(&format!("{server}/{own}"))))
    }

    /// Whether a plain name, of a server for one, is meant.
    pub fn is(&self, text: &str) -> bool {
        matches(&self.folded, &fold(text))
    }

    /// Whether it is a name and not a pattern.
    fn is_name(&self) -> bool {
        !self.folded.is_empty() && !self.folded.iter().any(|c| matches!(c, '*' | '?' | '/'))
    }

    /// The tool that a name means which no tool has as it is written, if it can mean one tool only.
    fn spelled(
        &self,
        catalog: &Catalog,
        everything: &Scope,
        spellings: &Spellings,
    ) -> Option<Self> {
        if !self.is_name() || catalog.tools().iter().any(|tool| self.matches(tool)) {
            return None;
        }
        let Meaning::One(id, _) = spellings.resolve(catalog, everything, &self.text) else {
            return None;
        };
        // A spelling of the model's is taken generously, since it is answered. A rule is silent, so it
        // must agree word for word: `dev_read_file` is not `devread__file`.
        let tool = catalog.tool(id);
        let written = parts(&self.text);
        let own = parts(tool.own_name());
        let full = parts(tool.server().unwrap_or_default()).into_iter().chain(own.clone());
        let means =
            written == own || full.eq(written.iter().cloned()) || written == parts(tool.name());
        means.then(|| Self { text: self.text.clone(), folded: fold(tool.name()) })
    }
}

/// A name's parts in lower case, whatever separates them.
fn parts(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn fold(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Greedy matching with one point to come back to: quadratic at worst, never exponential.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    p = star + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// All rules, merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tools that are never deferred.
    pub never: Vec<Glob>,
    /// Tools that are deferred below the threshold too.
    pub always: Vec<Glob>,
    /// Whole servers.
    pub servers: Vec<(Glob, Defer)>,
    /// Names of tools without a server that are shown in full where nobody says anything else: the
    /// [hot list](super::hot). No file says it: it follows from the tools that a caller has.
    pub hot: Vec<String>,
}

impl Rules {
    /// Adds names or patterns that are never deferred.
    #[must_use]
    pub fn never_defer<'a>(mut self, patterns: impl IntoIterator<Item = &'a str>) -> Self {
        self.never.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Adds the exact names of tools that are shown in full unless a rule or their owner defers them.
    #[must_use]
    pub fn keep_hot<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.hot.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Both sets of rules together.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        self.never.extend(other.never);
        self.always.extend(other.always);
        self.servers.extend(other.servers);
        self.hot.extend(other.hot);
        self
    }

    /// The same rules, with the names that other systems write put as this catalog spells them:
    /// `dev_read_file` (opencode) and `read_file` (a name without its server's) both mean
    /// `dev__read_file`, unless a tool has that very name or several tools could be meant. A reason
    /// still shows the name as it was written.
    #[must_use]
    pub(crate) fn resolved(mut self, catalog: &Catalog, spellings: &Spellings) -> Self {
        let everything = Scope::all(catalog);
        for glob in self.never.iter_mut().chain(&mut self.always) {
            if let Some(spelled) = glob.spelled(catalog, &everything, spellings) {
                *glob = spelled;
            }
        }
        self
    }

    /// The policy that holds for a tool, and who set it.
    pub fn policy(&self, tool: &Tool) -> (Defer, Because) {
        let named =
            |globs: &[Glob]| globs.iter().find(|glob| glob.matches(tool)).map(Glob::to_string);
        if let Some(rule) = named(&self.never) {
            return (Defer::Never, Because::Rule(rule));
        }
        if tool.defer() == Defer::Never {
            return (Defer::Never, Because::Owner(Defer::Never));
        }
        let server = tool.server().unwrap_or_default();
        let by_server = |wanted: &dyn Fn(Defer) -> bool| {
            let rule = self.servers.iter().find(|(glob, d)| wanted(*d) && glob.is(server));
            rule.map(|(glob, defer)| (*defer, Because::Rule(format!("server {glob}"))))
        };
        by_server(&|defer| defer == Defer::Never)
            .or_else(|| Some((Defer::Always, Because::Rule(named(&self.always)?))))
            .or_else(|| by_server(&|defer| defer != Defer::Never))
            .or_else(|| self.is_hot(tool).then_some((Defer::Never, Because::Hot)))
            .unwrap_or((tool.defer(), Because::Owner(tool.defer())))
    }

    fn is_hot(&self, tool: &Tool) -> bool {
        tool.defer() == Defer::Automatic
            && tool.server().is_none()
            && self.hot.iter().any(|name| name == tool.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn patterns_match_whatever_the_case() {
        for (pattern, text, hit) in [
            ("read_file", "Read_File", true),
            ("READ_*", "read_file", true),
            ("*issue*", "github__create_issue", true),
            ("?ash", "Bash", true),
            ("read", "read_file", false),
            ("a*b*c", "aXbXd", false),
            ("*", "", true),
            ("ÜBER*", "über_uns", true),
        ] {
            assert_eq!(Glob::new(pattern).is(text), hit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_slash_speaks_of_a_servers_tools() {
        let json = br#"[{"name":"mcp__GitHub__get_issue","input_schema":{}}]"#;
        let catalog = Catalog::from_json(json).unwrap();
        for (pattern, hit) in [("github/get_*", true), ("GITHUB/*", true), ("git/hub*", false)] {
            assert_eq!(Glob::new(pattern).matches(&catalog.tools()[0]), hit, "{pattern}");
        }
    }

    #[test]
    fn a_name_that_no_tool_has_means_the_one_tool_it_spells() {
        let catalog = |names: &[&str]| {
            let tools: Vec<_> = names
                .iter()
                .map(|name| format!(r#"{{"name":"{name}","input_schema":{{}}}}"#))
                .collect();
            Catalog::from_json(format!("[{}]", tools.join(",")).as_bytes()).unwrap()
        };
        let kept = |rule: &str, names: &[&str]| -> Vec<String> {
            let catalog = catalog(names);
            let rules =
                Rules::default().never_defer([rule]).resolved(&catalog, &Spellings::of(&catalog));
            let tools = catalog.tools().iter();
            let kept = tools
                .filter(|tool| rules.policy(tool) == (Defer::Never, Because::Rule(rule.into())));
            kept.map(|tool| tool.name().to_owned()).collect()
        };
        for (rule, names, expected) in [
            ("dev_read_file", &["dev__read_file", "dev__read_files"][..], &["dev__read_file"][..]),
            ("Dev-Read-File", &["dev__read_file"], &["dev__read_file"]),
            ("read_file", &["dev__read_file", "dev__write_file"], &["dev__read_file"]),
            // A tool of that very name is the one that is meant.
            ("read_file", &["read_file", "dev__read_file"], &["read_file"]),
            // Either could be meant, so neither is.
            ("read_file", &["dev__read_file", "ops__read_file"], &[]),
            ("a_b_c", &["a_b__c", "a__b_c"], &[]),
            // Alike, and another tool.
            ("dev_read_file", &["devread__file"], &[]),
            ("file", &["dev__read_file"], &[]),
            ("read_file", &["dev__read_files"], &[]),
            ("dev_*", &["dev__read_file"], &["dev__read_file"]),
            ("dev_?", &["dev__read_file"], &[]),
        ] {
            assert_eq!(kept(rule, names), expected, "{rule} {names:?}");
        }
    }

    #[test]
    fn never_prevails_over_always_and_the_reason_names_the_rule() {
        let json = br#"[{"name":"github__get","input_schema":{"type":"object"},"defer":"always"}]"#;
        let catalog = Catalog::from_json(json).unwrap();
        let tool = &catalog.tools()[0];
        let rules = Rules::default();
        assert_eq!(rules.policy(tool), (Defer::Always, Because::Owner(Defer::Always)));
        let rules = Rules { servers: vec![(Glob::new("GitHub"), Defer::Never)], ..rules };
        assert_eq!(rules.policy(tool), (Defer::Never, Because::Rule("server GitHub".into())));
        let rules = rules.never_defer(["GITHUB/G*"]);
        assert_eq!(rules.policy(tool), (Defer::Never, Because::Rule("GITHUB/G*".into())));
    }
}
