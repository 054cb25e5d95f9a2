//! Tests that every error, warning, note, hint and log line that the documentation quotes exists in the source.
//!
//! A message is compared with the string literals of all crates, in which `{…}` matches anything. The start of a
//! message must match the start of a literal.

use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use super::{pages, read, root};

/// Messages of the operating system, of other programs and of libraries, which are not in our source.
const FOREIGN: [&str; 2] = ["spawn toolcrib ENOENT", "unknown field `comand`"];

/// Minimum number of characters that a literal must have outside of its placeholders. Shorter literals match too much.
const MIN_FIXED_CHARS: usize = 10;

/// The parts of a string literal between its placeholders.
struct Template(Vec<String>);

impl Template {
    fn new(literal: &str) -> Self {
        let mut parts = Vec::new();
        for (at, piece) in literal.split('{').enumerate() {
            let fixed =
                if at == 0 { piece } else { piece.split_once('}').map_or("", |(_, end)| end) };
            parts.push(fixed.to_owned());
        }
        Self(parts)
    }

    fn is_specific(&self) -> bool {
        let fixed: String = self.0.concat();
        fixed.len() >= MIN_FIXED_CHARS && fixed.trim().contains(' ')
    }

    /// Whether this literal can produce a message that starts with `text`. If `text` contains a `…`, only the part before
    /// it is compared, and the literal must start with fixed text, so that a short part does not match everything.
    fn produces(&self, text: &str) -> bool {
        let first = &*self.0[0];
        if let Some((start, _)) = text.split_once('…') {
            let start = start.trim_end();
            let is_long = |text: &str| text.len() >= MIN_FIXED_CHARS;
            let is_beginning =
                first.starts_with(start) || (is_long(first) && start.starts_with(first));
            return is_long(start) && is_beginning;
        }
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        for part in &self.0[1..] {
            let Some((_, end)) = rest.split_once(&**part) else { return false };
            rest = end;
        }
        true
    }
}

/// Collects the string literals of the crates' sources that can be messages.
fn templates() -> Vec<Template> {
    let mut found = literals();
    found.retain(Template::is_specific);
    assert!(found.len() > 500, "only {} literals were found", found.len());
    found
}

/// Collects the string literals of the crates' sources, except those in comments and tests.
fn literals() -> Vec<Template> {
    let mut found = Vec::new();
    let test_names = ["tests", "tests.rs", "properties.rs", "toolcrib-testkit"];
    let is_test = |path: &Path| path.iter().any(|part| test_names.iter().any(|name| part == *name));
    collect_from(&root().join("crates"), &|path| !is_test(path), &mut found);
    found
}

/// Returns the string literals without placeholders in the Rust files of a folder for which `is_wanted` is true. It gets
/// paths that are relative to the repository.
pub(crate) fn plain_literals(folder: &Path, is_wanted: &impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    collect_from(folder, is_wanted, &mut found);
    found
        .into_iter()
        .filter(|literal| literal.0.len() == 1)
        .map(|literal| literal.0.concat())
        .collect()
}

fn collect_from(folder: &Path, is_wanted: &impl Fn(&Path) -> bool, found: &mut Vec<Template>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            collect_from(&path, is_wanted, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && is_wanted(path.strip_prefix(root()).unwrap())
        {
            collect_literals(&path, found);
        }
    }
}

fn collect_literals(path: &Path, found: &mut Vec<Template>) {
    let source = fs::read_to_string(path).unwrap();
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap();
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let code: Vec<&str> = source.lines().filter(|line| !is_comment(line)).collect();
    let code = code.join("\n").replace(r"'\''", "").replace(r#"'"'"#, "").replace(r#"'\"'"#, "");
    let mut literal: Option<String> = None;
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, &mut literal) {
            // Raw strings contain JSON and other data, not messages.
            ('r', None) if matches!(chars.peek(), Some('"' | '#')) => skip_raw_string(&mut chars),
            ('"', None) => literal = Some(String::new()),
            ('"', Some(text)) => {
                found.push(Template::new(text));
                literal = None;
            }
            // A line that ends with a backslash continues at the next character that is not whitespace.
            ('\\', Some(text)) => match chars.next() {
                Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            (c, Some(text)) => text.push(c),
            (_, None) => {}
        }
    }
}

/// Skips the rest of a raw string after its `r`: the `#` signs, the text in quotes, and as many `#` signs again.
fn skip_raw_string(chars: &mut Peekable<Chars<'_>>) {
    let mut end = String::from("\"");
    while chars.next_if_eq(&'#').is_some() {
        end.push('#');
    }
    if chars.next_if_eq(&'"').is_some() {
        let mut text = String::new();
        while !text.ends_with(&end) {
            let Some(c) = chars.next() else { return };
            text.push(c);
        }
    }
}

/// The beginnings of lines that are messages.
const LEVELS: [&str; 7] = ["error: ", "warning: ", "note: ", "hint: ", "INFO ", "WARN ", "ERROR "];

/// Returns the messages in a page's code blocks: the lines that start with a level.
fn messages_in_code_blocks(page: &str) -> Vec<String> {
    let lines = page.split("```").skip(1).step_by(2).flat_map(str::lines);
    let is_message = |line: &&str| LEVELS.iter().any(|level| line.starts_with(level));
    lines.filter(is_message).map(str::to_owned).collect()
}

/// Returns the errors that the page about problems explains: the code at the start of table rows and of bold text.
fn explained_errors(page: &str) -> Vec<String> {
    let mut errors = Vec::new();
    for line in page.lines() {
        let start = line.strip_prefix("| `").or_else(|| {
            let bold = line.strip_prefix("**")?;
            bold.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').strip_prefix('`')
        });
        let Some(start) = start else { continue };
        // Code that contains backticks is written with two of them on each side.
        let code = start
            .strip_prefix('`')
            .map_or_else(|| start.split_once('`'), |double| double.split_once("``"));
        let (error, after) = code.unwrap();
        // If bold text continues after the code, it is a heading that mentions a command, not an error.
        if after.starts_with(" |") || after.starts_with(['.', ',']) {
            errors.push(error.trim().to_owned());
        }
    }
    errors
}

/// Removes the name of a file, a server or a command from the start of a message: a word and a colon.
fn without_context(text: &str) -> &str {
    match text.split_once(": ") {
        Some((context, rest)) if !context.contains(' ') => rest,
        _ => text,
    }
}

#[test]
fn quoted_messages_exist() {
    let templates = templates();
    let mut messages: Vec<String> = Vec::new();
    for page in pages() {
        messages.extend(messages_in_code_blocks(&fs::read_to_string(page).unwrap()));
    }
    messages.extend(explained_errors(&read("docs/troubleshooting.md")));
    assert!(messages.len() > 20, "only {} messages were found", messages.len());
    for message in messages {
        // Some literals include the level, and some do not. After the level, a message may name a file, a server or a
        // command that is not in the literal.
        let level = LEVELS.iter().find(|level| message.starts_with(**level));
        let text = level.map_or(&*message, |level| &message[level.len()..]);
        let starts = [&*message, text, without_context(text)];
        let is_foreign = FOREIGN.iter().any(|foreign| without_context(text).starts_with(foreign));
        let exists =
            starts.iter().any(|start| templates.iter().any(|template| template.produces(start)));
        assert!(is_foreign || exists, "no message in the source produces: {message}");
    }
}

/// Users who installed a package do not have the files of the repository. Messages name topics of `toolcrib docs` instead.
#[test]
fn no_message_names_a_file_of_the_repository() {
    let files = ["docs/", "README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY.md"];
    for literal in literals() {
        let text = literal.0.concat();
        // Literals that begin with dots are paths of files that are compiled in. `docs/` alone is removed from topics.
        let is_path = text.starts_with("../") || text == "docs/";
        let named = files.iter().find(|file| text.contains(**file));
        assert!(is_path || named.is_none(), "a message names a file: {text}");
    }
}
