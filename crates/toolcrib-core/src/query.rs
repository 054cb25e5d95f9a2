//! Parses a query.
//!
//! `select:a,b` loads tools by name. Anything else is a query in words. `+word` is required and `-word` is excluded;
//! these operators apply only before a letter, so `-85.9` is a number. `server:github` or `github:word` restricts the
//! search to the server `github`, if that server is in scope. Any other text with a colon, such as `12:30` or
//! `key:value`, is read as ordinary words. Tools that contain a "quoted phrase" rank higher. An empty query lists what
//! is available.

use crate::limits::Limits;
use crate::text::words;

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Load the tools with these names.
    Select(Vec<String>),
    /// Rank tools by these words.
    Words(WordQuery),
    /// List what is available, without loading anything.
    Browse,
}

/// A query in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordQuery {
    /// The text to rank by, without operators.
    pub text: String,
    /// Words that a tool must contain.
    pub must: Vec<String>,
    /// Words that a tool must not contain.
    pub must_not: Vec<String>,
    /// Servers to search. If empty, all servers are searched.
    pub servers: Vec<String>,
    /// Quoted phrases. A tool that contains one ranks higher, but tools without it are not excluded.
    pub phrases: Vec<String>,
    /// Whether the query was too long and was truncated.
    pub cut: bool,
}

impl WordQuery {
    /// A query of plain words without operators, as `eval` uses it.
    pub fn plain(text: &str, limits: &Limits) -> Self {
        let kept = &text[..text.floor_char_boundary(limits.query_bytes)];
        Self { text: kept.to_owned(), cut: kept.len() < text.len(), ..Self::default() }
    }
}

impl Query {
    /// Parses a query without operators, for rankers that do not support them. Only `select:` and plain words are
    /// recognised.
    pub fn plain(text: &str, limits: &Limits) -> Self {
        let text = text.trim();
        if let Some(names) = selected(text) {
            return Self::Select(names);
        }
        let words = WordQuery::plain(text, limits);
        let says = words.text.contains(char::is_alphanumeric);
        if says { Self::Words(words) } else { Self::Browse }
    }

    /// Parses a query. `is_server` returns whether a word is the name of a server in scope.
    pub fn parse(text: &str, limits: &Limits, is_server: impl Fn(&str) -> bool) -> Self {
        let text = text.trim();
        if let Some(names) = selected(text) {
            return Self::Select(names);
        }
        let plain = WordQuery::plain(text, limits);
        let mut words = WordQuery { cut: plain.cut, ..WordQuery::default() };
        for token in tokens(&plain.text) {
            words.take(token, &is_server);
        }
        let has_words = words::all(&words.text).iter().any(|word| !word.is_empty());
        let filters =
            !(words.must.is_empty() && words.must_not.is_empty() && words.servers.is_empty());
        if has_words || filters { Self::Words(words) } else { Self::Browse }
    }
}

impl WordQuery {
    fn take(&mut self, token: Token<'_>, is_server: &impl Fn(&str) -> bool) {
        match token {
            Token::Quoted(phrase) => {
                if words::all(phrase).len() > 1 {
                    self.phrases.push(phrase.to_owned());
                }
                self.push(phrase);
            }
            Token::Word(word) => {
                let begins = |rest: &str| rest.starts_with(char::is_alphabetic);
                if let Some(rest) = word.strip_prefix('+').filter(|rest| begins(rest)) {
                    self.must.push(rest.to_owned());
                    return self.push(rest);
                }
                if let Some(rest) = word.strip_prefix('-').filter(|rest| begins(rest)) {
                    return self.must_not.push(rest.to_owned());
                }
                match word.split_once(':') {
                    Some(("server", name)) if is_server(name) => self.servers.push(name.to_owned()),
                    Some((name, rest)) if is_server(name) => {
                        self.servers.push(name.to_owned());
                        self.push(rest);
                    }
                    _ => self.push(word),
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }
}

fn selected(text: &str) -> Option<Vec<String>> {
    let head = text.get(..7)?;
    let names = head.eq_ignore_ascii_case("select:").then(|| &text[7..])?;
    let names = names.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty());
    Some(names.map(str::to_owned).collect())
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Word(&'a str),
    Quoted(&'a str),
}

/// Splits at white space, but keeps text between double quotes together.
fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if let Some(inner) = rest.strip_prefix('"')
            && let Some(end) = inner.find('"')
        {
            rest = &inner[end + 1..];
            return Some(Token::Quoted(&inner[..end]));
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        (!word.is_empty()).then_some(Token::Word(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Query {
        Query::parse(text, &Limits::default(), |name| name == "github")
    }

    fn words(text: &str) -> WordQuery {
        match parse(text) {
            Query::Words(words) => words,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn select_is_case_insensitive_and_takes_names() {
        let names = vec!["a".to_owned(), "b c".to_owned()];
        assert_eq!(parse("select:a, b c,"), Query::Select(names.clone()));
        assert_eq!(parse("  SELECT:a,b c"), Query::Select(names));
        assert_eq!(parse("select: "), Query::Select(vec![]));
    }

    #[test]
    fn operators_are_recognised_only_if_they_cannot_be_text() {
        let got = words("+issue create -gitlab at -85.9 and 12:30 key:value github:labels");
        assert_eq!(
            got,
            WordQuery {
                text: "issue create at -85.9 and 12:30 key:value labels".into(),
                must: vec!["issue".into()],
                must_not: vec!["gitlab".into()],
                servers: vec!["github".into()],
                ..WordQuery::default()
            }
        );
        assert_eq!(words("server:github list").servers, ["github"]);
        assert_eq!(words("server:gitlab list").text, "server:gitlab list");
    }

    #[test]
    fn the_words_of_a_phrase_are_also_searched_as_words() {
        let got = words("\"pull request\" open \"x");
        assert_eq!(got.text, "pull request open \"x");
        assert_eq!(got.phrases, ["pull request"]);
    }

    #[test]
    fn a_query_without_words_browses() {
        for text in ["", "   ", "\"\"", "...", "!?"] {
            assert_eq!(parse(text), Query::Browse, "{text:?}");
        }
    }

    #[test]
    fn a_query_over_the_length_limit_is_truncated_and_marked() {
        let limits = Limits { query_bytes: 5, ..Limits::default() };
        for (text, cut) in [("abcd", false), ("abcde", false), ("abcdef", true)] {
            assert_eq!(WordQuery::plain(text, &limits).cut, cut);
            assert!(WordQuery::plain(text, &limits).text.len() <= 5);
        }
    }
}
