//! Rules on deferring tools, by name, pattern and server.
//!
//! Rules from code and from the configuration are merged. Names are compared case-insensitively: `Read_File` in a
//! configuration matches the tool `read_file`. [`Glob::applies_to`] also accepts other systems' spellings of a name.

use std::fmt;

use rustc_hash::FxHashSet;

use super::VerdictReason;
use crate::tool::{DeferPolicy, Tool, without_server_prefix};

/// A name, or a pattern with `*` (any characters) and `?` (one character).
///
/// `github/*` matches all tools of the server `github`, and `/*` matches all tools without a server. A pattern without
/// a slash is compared with the full name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    text: String,
    folded: Vec<char>,
}

impl Glob {
    /// Creates a glob from a name or a pattern.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), folded: fold(text.trim()) }
    }

    /// Whether the glob matches a tool.
    pub fn matches(&self, tool: &Tool) -> bool {
        if matches(&self.folded, &fold(tool.name())) {
            return true;
        }
        if !self.folded.contains(&'/') {
            return false;
        }
        let name = tool.name().to_lowercase();
        let server = tool.server().unwrap_or_default().to_lowercase();
        let own = without_server_prefix(&name, tool.server().map(|_| &*server));
        let declared = tool.declared_name();
        [own, &*declared].iter().any(|own| matches(&self.folded, &fold(&format!("{server}/{own}"))))
    }

    /// Whether the glob matches a plain name, such as the name of a server.
    pub fn matches_name(&self, text: &str) -> bool {
        self.matches_folded(&fold(text))
    }

    /// Whether the glob matches a name that was folded with [`fold`].
    pub(super) fn matches_folded(&self, text: &[char]) -> bool {
        matches(&self.folded, text)
    }

    /// The glob's text in the form that [`fold`] returns.
    pub(super) fn folded(&self) -> &[char] {
        &self.folded
    }

    pub(super) fn has_wildcard(&self) -> bool {
        self.folded.iter().any(|c| matches!(c, '*' | '?'))
    }

    /// Whether the glob is a plain name, without wildcards or a slash.
    fn is_name(&self) -> bool {
        !self.folded.is_empty() && !self.folded.iter().any(|c| matches!(c, '*' | '?' | '/'))
    }

    /// Whether a rule with this glob applies to a tool. It applies if the glob [`matches`](Self::matches) the tool. In
    /// addition, a plain name applies if it is another system's spelling of the tool's name, with any separators
    /// (`dev_read_file` for `dev__read_file`), or the name that the tool's server declares (`read_file`).
    ///
    /// The result depends on this tool alone. Rejected: requiring that exactly one tool has the name, because then a
    /// tool outside the caller's scope could change what the caller sees.
    pub fn applies_to(&self, tool: &Tool) -> bool {
        self.matches(tool) || (self.is_name() && self.is_other_spelling_of(tool))
    }

    fn is_other_spelling_of(&self, tool: &Tool) -> bool {
        let is_written = |name: &str| normalized(&self.text).eq(normalized(name));
        let with_server = tool.server().is_some_and(|server| {
            let full =
                normalized(server).chain(['_']).chain(normalized(tool.name_without_server()));
            normalized(&self.text).eq(full)
        });
        // In the gateway, a server declares `read_file`, and clients see this tool as `dev__read_file`. In the proxy, a
        // client may itself declare `dev__read_file`, and the client's `read_file` is a different tool. So a rule for
        // `read_file` applies to `dev__read_file` only if that tool was declared as `read_file`. Getting the declared
        // name requires parsing the definition, so the end of the tool's name is compared first.
        let has_suffix = || {
            let (name, text) = (normalized(tool.name()), normalized(&self.text));
            name.collect::<String>().ends_with(&text.collect::<String>())
        };
        with_server
            || is_written(tool.name())
            || (has_suffix() && is_written(&tool.declared_name()))
    }
}

/// A name in lower case, with every run of separators replaced by one `_`. Separators at both ends are removed.
fn normalized(name: &str) -> impl Iterator<Item = char> {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let mut between = false;
    name.chars().flat_map(move |c| {
        let is_separator = !c.is_alphanumeric();
        let separator = (is_separator && !between).then_some('_');
        between = is_separator;
        let letters = (!is_separator).then(|| c.to_lowercase());
        separator.into_iter().chain(letters.into_iter().flatten())
    })
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Converts a text to lower case, so that names can be compared case-insensitively.
pub(super) fn fold(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Whether a pattern matches a text. The greedy algorithm remembers only the last `*`, so it is quadratic in the worst
/// case and never exponential.
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

/// All rules on deferring tools, merged from code and configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tools that are never deferred.
    pub never: Vec<Glob>,
    /// Exact names of tools that are never deferred. They are in a hash set, because there may be as many names as
    /// tools.
    pub full_names: FxHashSet<String>,
    /// Tools that are deferred even if the activation thresholds are not reached.
    pub always: Vec<Glob>,
    /// Policies that apply to all tools of a server.
    pub servers: Vec<(Glob, DeferPolicy)>,
    /// Names of tools without a server that are shown in full unless a rule or their owner decides otherwise. This is
    /// the [hot list](super::hot_list). It is not read from a file, but computed from the caller's tools.
    pub hot_names: Vec<String>,
}

impl Rules {
    /// Adds names or patterns of tools that are never deferred.
    #[must_use]
    pub fn never_defer<'a>(mut self, patterns: impl IntoIterator<Item = &'a str>) -> Self {
        self.never.extend(patterns.into_iter().map(Glob::new));
        self
    }

    /// Adds the exact names of tools that are never deferred.
    #[must_use]
    pub fn keep_full<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.full_names.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Adds the exact names of tools that are shown in full unless a rule or their owner defers them.
    #[must_use]
    pub fn keep_hot<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.hot_names.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// The rules of `self` and `other` together.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        self.never.extend(other.never);
        self.full_names.extend(other.full_names);
        self.always.extend(other.always);
        self.servers.extend(other.servers);
        self.hot_names.extend(other.hot_names);
        self
    }

    /// The policy for a tool, and the reason for it.
    pub fn policy(&self, tool: &Tool) -> (DeferPolicy, VerdictReason) {
        let named =
            |globs: &[Glob]| globs.iter().find(|glob| glob.applies_to(tool)).map(Glob::to_string);
        if let Some(rule) = named(&self.never) {
            return (DeferPolicy::Never, VerdictReason::Rule(rule));
        }
        if self.full_names.contains(tool.name()) {
            return (DeferPolicy::Never, VerdictReason::Rule(tool.name().to_owned()));
        }
        if tool.defer() == DeferPolicy::Never {
            return (DeferPolicy::Never, VerdictReason::Owner(DeferPolicy::Never));
        }
        let server = tool.server().unwrap_or_default();
        let by_server = |wanted: &dyn Fn(DeferPolicy) -> bool| {
            let rule =
                self.servers.iter().find(|(glob, d)| wanted(*d) && glob.matches_name(server));
            rule.map(|(glob, defer)| (*defer, VerdictReason::Rule(format!("server {glob}"))))
        };
        by_server(&|defer| defer == DeferPolicy::Never)
            .or_else(|| Some((DeferPolicy::Always, VerdictReason::Rule(named(&self.always)?))))
            .or_else(|| by_server(&|defer| defer != DeferPolicy::Never))
            .or_else(|| self.is_hot(tool).then_some((DeferPolicy::Never, VerdictReason::Hot)))
            .unwrap_or((tool.defer(), VerdictReason::Owner(tool.defer())))
    }

    fn is_hot(&self, tool: &Tool) -> bool {
        tool.defer() == DeferPolicy::Automatic
            && tool.server().is_none()
            && self.hot_names.iter().any(|name| name == tool.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;
    use crate::ingest::{ListSource, ingest};
    use crate::limits::Limits;

    #[test]
    fn patterns_match_case_insensitively() {
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
            assert_eq!(Glob::new(pattern).matches_name(text), hit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_with_a_slash_matches_tools_of_a_server() {
        let json = br#"[{"name":"mcp__GitHub__get_issue","input_schema":{}}]"#;
        let catalog = Catalog::from_json(json).unwrap();
        for (pattern, hit) in [("github/get_*", true), ("GITHUB/*", true), ("git/hub*", false)] {
            assert_eq!(Glob::new(pattern).matches(&catalog.tools()[0]), hit, "{pattern}");
        }
    }

    #[test]
    fn a_rule_may_spell_a_name_as_another_system_does() {
        let kept = |rule: &str, tools: serde_json::Value| -> Vec<String> {
            let catalog = Catalog::from_json(tools.to_string().as_bytes()).unwrap();
            let rules = Rules::default().never_defer([rule]);
            let tools = catalog.tools().iter();
            let kept = tools.filter(|tool| {
                rules.policy(tool) == (DeferPolicy::Never, VerdictReason::Rule(rule.into()))
            });
            kept.map(|tool| tool.name().to_owned()).collect()
        };
        let sent = |names: &[&str]| -> serde_json::Value {
            names.iter().map(|name| json!({"name": name, "input_schema": {}})).collect()
        };
        for (rule, names, expected) in [
            ("dev_read_file", &["dev__read_file", "dev__read_files"][..], &["dev__read_file"][..]),
            ("Dev-Read-File", &["dev__read_file"], &["dev__read_file"]),
            ("mcp_dev_read_file", &["mcp__dev__read_file"], &["mcp__dev__read_file"]),
            ("dev_read_file", &["mcp__dev__read_file"], &["mcp__dev__read_file"]),
            ("a_b_c", &["a_b__c", "a__b_c"], &["a_b__c", "a__b_c"]),
            // The client's own `read_file` and the `read_file` of the server `dev` are different tools, so the rule
            // applies only to the first.
            ("read_file", &["read_file", "dev__read_file"], &["read_file"]),
            ("dev_read_file", &["devread__file"], &[]),
            ("file", &["dev__read_file"], &[]),
            ("read_file", &["dev__read_files"], &[]),
            ("dev_*", &["dev__read_file"], &["dev__read_file"]),
            ("dev_?", &["dev__read_file"], &[]),
        ] {
            assert_eq!(kept(rule, sent(names)), expected, "{rule} {names:?}");
        }
    }

    #[test]
    fn a_rule_with_a_declared_name_applies_to_the_tool_of_each_server() {
        let tools =
            br#"[{"name":"read_file","inputSchema":{}},{"name":"read_files","inputSchema":{}}]"#;
        let mut builder = Catalog::builder();
        for (server, prefix) in [("dev", "dev"), ("ops", "work")] {
            let came = ingest(tools, ListSource::Server(server), &Limits::default()).unwrap();
            builder.add(came.prefixed(prefix));
        }
        let (catalog, rules) = (builder.build(), Rules::default().never_defer(["read_file"]));
        let kept = catalog.tools().iter().filter(|tool| rules.policy(tool).0 == DeferPolicy::Never);
        let kept: Vec<_> = kept.map(Tool::name).collect();
        assert_eq!(kept, ["dev__read_file", "work__read_file"]);
    }

    #[test]
    fn never_takes_precedence_over_always_and_the_reason_names_the_rule() {
        let json = br#"[{"name":"github__get","input_schema":{"type":"object"},"defer":"always"}]"#;
        let catalog = Catalog::from_json(json).unwrap();
        let tool = &catalog.tools()[0];
        let rules = Rules::default();
        assert_eq!(
            rules.policy(tool),
            (DeferPolicy::Always, VerdictReason::Owner(DeferPolicy::Always))
        );
        let rules = Rules { servers: vec![(Glob::new("GitHub"), DeferPolicy::Never)], ..rules };
        assert_eq!(
            rules.policy(tool),
            (DeferPolicy::Never, VerdictReason::Rule("server GitHub".into()))
        );
        let rules = rules.never_defer(["GITHUB/G*"]);
        assert_eq!(
            rules.policy(tool),
            (DeferPolicy::Never, VerdictReason::Rule("GITHUB/G*".into()))
        );
    }
}
