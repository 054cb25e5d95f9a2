//! Checks every key of a body, and rejects keys that two programs may read differently.
//!
//! Tools outside the scope are removed from the positions in which an API has tools. That is useless if the upstream
//! finds tools elsewhere: under the second of two equal keys, under `Tools` (Go's decoder ignores case), or in an
//! object that only this upstream reads. So a key must occur only once in an object, the API's keys must be spelled as
//! the API spells them, and a key that can contain tools is accepted only where the API has it.
//!
//! Schemas, arguments and results are free-form, so only duplicate keys are rejected in them. The scan is one pass
//! without recursion, and it keeps only the keys of the objects that enclose the current position.

use std::borrow::Cow;
use std::collections::HashSet;

use super::ScopeViolation;
use super::known_keys::{FREE_FORM_KEYS, KNOWN_KEYS, SCHEMA_KEYS, can_carry_tools, fold_key};
use crate::api::Api;

/// Maximum depth of nested objects and arrays.
const MAX_DEPTH: usize = 128;
/// Maximum number of keys in one object.
const MAX_KEYS: usize = 100_000;
/// If an object has more keys than this, they are looked up in a set.
const SET_THRESHOLD: usize = 32;

/// What a value contains, according to its position in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Body,
    /// A list of tools. `inner` is set if the list is inside another entry, such as a namespace.
    Tools {
        inner: bool,
    },
    Tool {
        inner: bool,
    },
    /// A part of a tool or of a hosted server that contains no tools. Its keys are checked.
    Part,
    /// An object whose keys are the names of tools.
    Named,
    Choice,
    History,
    Entry,
    Block,
    /// A field that is unrelated to tools, or unknown.
    Other,
    Free,
}

/// An object or array that encloses the current position of the scan.
struct Frame<'a> {
    position: Position,
    is_object: bool,
    /// The index of this object's first key in the list of the keys of all enclosing objects.
    start: usize,
    /// The keys of this object as a set, if the object has many keys.
    key_set: HashSet<Cow<'a, str>>,
    /// Those keys of this object that are known and have several accepted spellings, in the form that `fold_key`
    /// returns.
    known: Vec<&'static str>,
    /// Whether the next string is a key.
    at_key: bool,
    /// What the value of the current key contains.
    child: Position,
}

/// Checks all keys of a body. `text` must be valid JSON.
pub(super) fn check(api: Api, text: &str) -> Result<(), ScopeViolation> {
    let bytes = text.as_bytes();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut keys: Vec<Cow<'_, str>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(bytes, at);
                if let Some(frame) = frames.last_mut().filter(|frame| frame.at_key) {
                    let literal = text.get(at..end).unwrap_or_default();
                    add_key(api, frame, literal, &mut keys)?;
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                if frames.len() == MAX_DEPTH {
                    return Err(ScopeViolation::TooDeep);
                }
                let is_object = *byte == b'{';
                let position = match frames.last() {
                    None => Position::Body,
                    Some(parent) if parent.is_object => parent.child,
                    Some(parent) => element_of(parent.position),
                };
                frames.push(Frame {
                    position,
                    is_object,
                    start: keys.len(),
                    key_set: HashSet::new(),
                    known: Vec::new(),
                    at_key: is_object,
                    child: Position::Other,
                });
            }
            b'}' | b']' => {
                if let Some(frame) = frames.pop() {
                    keys.truncate(frame.start);
                }
            }
            b',' => {
                if let Some(frame) = frames.last_mut() {
                    frame.at_key = frame.is_object;
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Returns the index after the end of the string that starts at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns what an element of an array contains, given the position of the array.
fn element_of(position: Position) -> Position {
    match position {
        Position::Tools { inner } => Position::Tool { inner },
        Position::History => Position::Entry,
        Position::Entry => Position::Block,
        other => other,
    }
}

/// Checks a key of an object and adds it to the list of keys.
fn add_key<'a>(
    api: Api,
    frame: &mut Frame<'a>,
    literal: &'a str,
    keys: &mut Vec<Cow<'a, str>>,
) -> Result<(), ScopeViolation> {
    frame.at_key = false;
    let key: Cow<'a, str> = match literal.get(1..literal.len().saturating_sub(1)) {
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        // Programs disagree on how to read half of a surrogate pair, so such a key is rejected.
        _ => Cow::Owned(
            serde_json::from_str::<String>(literal)
                .map_err(|_| ScopeViolation::DuplicateKey(ScopeViolation::printable(literal)))?,
        ),
    };
    let known = &keys[frame.start..];
    let is_known =
        if frame.key_set.is_empty() { known.contains(&key) } else { frame.key_set.contains(&key) };
    if is_known {
        return Err(ScopeViolation::DuplicateKey(ScopeViolation::printable(&key)));
    }
    if known.len() == MAX_KEYS {
        return Err(ScopeViolation::TooManyKeys);
    }
    frame.child = value_of(api, frame, &key)?;
    if known.len() == SET_THRESHOLD {
        frame.key_set.extend(known.iter().cloned());
    }
    if !frame.key_set.is_empty() {
        frame.key_set.insert(key.clone());
    }
    keys.push(key);
    Ok(())
}

/// Returns what the value of a key contains.
fn value_of(api: Api, frame: &mut Frame<'_>, key: &str) -> Result<Position, ScopeViolation> {
    let position = match frame.position {
        Position::Free => return Ok(Position::Free),
        Position::Named => return Ok(Position::Part),
        // The position requires a list, but the value is an object. Later steps reject this. Here, its keys are checked
        // as if it were an element of the list.
        Position::Tools { inner } => Position::Tool { inner },
        Position::History => Position::Entry,
        position => position,
    };
    let word = fold_key(key);
    if position != Position::Other
        && let Some((known, spellings)) = KNOWN_KEYS.iter().find(|(known, _)| *known == word)
    {
        if !spellings.contains(&key) {
            return Err(ScopeViolation::KeySpelling(ScopeViolation::printable(key), spellings[0]));
        }
        if spellings.len() > 1 {
            if frame.known.contains(known) {
                return Err(ScopeViolation::DuplicateKey(ScopeViolation::printable(key)));
            }
            frame.known.push(known);
        }
    }
    if can_carry_tools(&word) {
        return tools_value_of(api, position, key)
            .ok_or_else(|| ScopeViolation::UnexpectedKey(ScopeViolation::printable(key)));
    }
    // No API has keys with letters of other alphabets, and such letters can look like ASCII letters.
    if position == Position::Body && !key.is_ascii() {
        return Err(ScopeViolation::UnexpectedKey(ScopeViolation::printable(key)));
    }
    let is_free = match position {
        Position::Body => matches!(word.as_str(), "metadata" | "labels" | "guidedjson"),
        Position::Other => SCHEMA_KEYS.contains(&word.as_str()),
        Position::Choice => false,
        _ => FREE_FORM_KEYS.contains(&word.as_str()),
    };
    Ok(match position {
        Position::Body if key == history_key(api) => Position::History,
        _ if is_free => Position::Free,
        Position::Body if matches!(word.as_str(), "toolchoice" | "functioncall" | "toolconfig") => {
            Position::Choice
        }
        Position::Body => Position::Other,
        Position::Tool { .. } if matches!(key, "function" | "custom") => {
            Position::Tool { inner: true }
        }
        Position::Tool { .. } if key == "configs" => Position::Named,
        Position::Tool { .. } => Position::Part,
        Position::Entry => Position::Block,
        other => other,
    })
}

/// Returns what the value of a key contains, for a key that can contain tools. Returns `None` if the API has no such
/// key in this position.
fn tools_value_of(api: Api, position: Position, key: &str) -> Option<Position> {
    match (api, position, key) {
        (_, Position::Body, "tools") | (Api::Chat, Position::Body, "functions") => {
            Some(Position::Tools { inner: false })
        }
        (Api::Responses, Position::Tool { inner: false }, "tools") => {
            Some(Position::Tools { inner: true })
        }
        (
            Api::Gemini,
            Position::Tool { inner: false },
            "functionDeclarations" | "function_declarations",
        ) => Some(Position::Tools { inner: true }),
        // These are the tools in an item that loads tools.
        (Api::Responses, Position::Entry, "tools") => Some(Position::Tools { inner: false }),
        (Api::Chat | Api::Responses, Position::Choice, "tools" | "allowed_tools") => {
            Some(Position::Choice)
        }
        // These are the names of a hosted server's tools. In APIs without such servers, an entry with this key is
        // removed later.
        (_, Position::Tool { .. }, "allowed_tools")
        | (Api::Messages, Position::Part, "allowed_tools") => Some(Position::Part),
        // These are the names of tools whose results stay in the context.
        (Api::Messages, Position::Other, "exclude_tools") => Some(Position::Other),
        // This is a tool that the history adds or removes.
        (Api::Messages, Position::Block, "tool") => Some(Position::Block),
        (Api::Messages, Position::Body, "mcp_servers")
        | (Api::Gemini, Position::Tool { inner: false }, "mcpServers" | "mcp_servers") => {
            Some(Position::Part)
        }
        _ => None,
    }
}

/// Returns the name of the field that contains the history in an API.
pub(crate) fn history_key(api: Api) -> &'static str {
    match api {
        Api::Chat | Api::Messages => "messages",
        Api::Responses => "input",
        Api::Gemini => "contents",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(api: Api, text: &str) -> Option<String> {
        check(api, text).err().map(|why| why.to_string())
    }

    #[test]
    fn a_key_may_occur_only_once_however_it_is_written() {
        for text in [
            r#"{"tools":[],"tools":[]}"#,
            r#"{"tools":[],"to\u006fls":[]}"#,
            r#"{"tools":[{"function":{"name":"a","na\u006de":"b"}}]}"#,
            r#"{"messages":[{"content":[{"a":1,"a":2}]}]}"#,
            r#"{"tools":[{"parameters":{"properties":{"a":1,"b":2,"a":3}}}]}"#,
        ] {
            let why = refused(Api::Chat, text).unwrap();
            assert!(why.contains("occurs twice"), "{text}: {why}");
        }
        let twice = r#"{"tools":[{"functionDeclarations":[],"function_declarations":[]}]}"#;
        assert!(refused(Api::Gemini, twice).unwrap().contains("occurs twice"));
        // An object with many keys uses a set, which must find duplicates as well.
        let many: Vec<String> = (0..100).map(|at| format!(r#""k{at}":{at}"#)).collect();
        assert_eq!(refused(Api::Chat, &format!("{{{}}}", many.join(","))), None);
        let many = format!(r#"{{{},"k7":0}}"#, many.join(","));
        assert!(refused(Api::Chat, &many).unwrap().contains("`k7` occurs twice"));
    }

    #[test]
    fn keys_of_the_api_have_one_spelling() {
        for key in ["Tools", "TOOLS", "tool\u{17f}", "\u{ff54}ools", "to ols", "tools\u{200b}"] {
            let why = refused(Api::Chat, &format!(r#"{{"{key}":[]}}"#)).unwrap();
            assert!(why.contains("variant of `tools`"), "{key}: {why}");
        }
        let nested = r#"{"tools":[{"type":"function","function":{"Name":"a"}}]}"#;
        assert!(refused(Api::Chat, nested).unwrap().contains("variant of `name`"));
        // The keys of a schema are free-form, so any spelling is accepted in it.
        let schema = r#"{"tools":[{"function":{"name":"a","parameters":{"properties":{"Name":{},"name":{},"Tools":{}}}}}]}"#;
        assert_eq!(refused(Api::Chat, schema), None);
    }

    #[test]
    fn tools_are_accepted_only_where_the_api_has_them() {
        for (api, text) in [
            (Api::Chat, r#"{"extra_body":{"tools":[]}}"#),
            (Api::Chat, r#"{"chat_template_kwargs":{"x":{"Tools":[]}}}"#),
            (Api::Chat, r#"{"messages":[{"role":"system","tools":[]}]}"#),
            (Api::Messages, r#"{"functions":[]}"#),
            (Api::Responses, r#"{"tools":[{"tools":[{"tools":[]}]}]}"#),
            (Api::Responses, r#"{"input":[{"content":[{"tools":[]}]}]}"#),
            (Api::Gemini, r#"{"generateContentRequest":{"tools":[]}}"#),
        ] {
            let why = refused(api, text).unwrap();
            assert!(why.contains("is not allowed there"), "{text}: {why}");
        }
        for (api, text) in [
            (Api::Chat, r#"{"tools":[],"functions":[],"metadata":{"tools":1}}"#),
            (Api::Chat, r#"{"tool_choice":{"allowed_tools":{"tools":[{"type":"function"}]}}}"#),
            (Api::Responses, r#"{"tools":[{"tools":[{"name":"a"}]}],"input":[{"tools":[]}]}"#),
            (Api::Gemini, r#"{"tools":[{"functionDeclarations":[{"name":"a"}]}]}"#),
            (Api::Messages, r#"{"mcp_servers":[{"name":"a"}],"messages":[{"input":{"tools":1}}]}"#),
        ] {
            assert_eq!(refused(api, text), None, "{text}");
        }
    }

    #[test]
    fn depth_is_limited_and_strings_are_skipped() {
        let nested =
            |depth: usize| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(check(Api::Chat, &nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check(Api::Chat, &nested(MAX_DEPTH + 1)), Err(ScopeViolation::TooDeep));
        assert_eq!(refused(Api::Chat, r#"{"a":"{\"b\":1,\"b\":[","c":"\\"}"#), None);
    }
}
