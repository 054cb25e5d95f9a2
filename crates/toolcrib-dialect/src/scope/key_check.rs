//! Reads every key of a body once, and refuses those that two programs may read differently.
//!
//! Narrowing a body changes the places where an API has tools. It is worth nothing if the upstream finds
//! tools in another place: under the second of two equal keys, under `Tools` (Go's decoder ignores case),
//! or in an object that only this upstream reads. So a key occurs once in an object, the API's own words
//! are spelled as the API spells them, and a key that carries tools is accepted only where it is known.
//!
//! Schemas, arguments and results hold whatever their owners like: in them only duplicates are refused.
//! The scan is one pass without recursion, and it keeps only the keys of the objects that are open.

use std::borrow::Cow;
use std::collections::HashSet;

use super::ScopeViolation;
use super::known_keys::{FREE, SCHEMAS, WORDS, fold_key, is_carrier};
use crate::api::Api;

/// Maximum depth of nested objects and arrays.
const DEPTH: usize = 128;
/// Maximum number of keys in one object.
const KEYS: usize = 100_000;
/// From this many keys on, an object's keys are looked up in a set.
const MANY: usize = 32;

/// What a value is, by where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Body,
    /// A list of tools; `inner` inside a group.
    Tools {
        inner: bool,
    },
    Tool {
        inner: bool,
    },
    /// A part of a tool or of a hosted server: its words count, and it has no tools in it.
    Part,
    /// A part whose keys are names of tools.
    Named,
    Choice,
    History,
    /// One entry of the history, and what is inside of it.
    Entry,
    Block,
    /// A field that has nothing to do with tools, or is not known.
    Other,
    Free,
}

/// An object or array that is open.
struct Frame<'a> {
    place: Place,
    is_object: bool,
    /// Where its keys begin in the list of all open keys.
    start: usize,
    /// The same keys, if there are many.
    many: HashSet<Cow<'a, str>>,
    /// The words among them that have several spellings.
    words: Vec<&'static str>,
    /// Whether the next string is a key, and what the value after it is.
    at_key: bool,
    child: Place,
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
                    add(api, frame, literal, &mut keys)?;
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                if frames.len() == DEPTH {
                    return Err(ScopeViolation::TooDeep);
                }
                let is_object = *byte == b'{';
                let place = match frames.last() {
                    None => Place::Body,
                    Some(parent) if parent.is_object => parent.child,
                    Some(parent) => element(parent.place),
                };
                frames.push(Frame {
                    place,
                    is_object,
                    start: keys.len(),
                    many: HashSet::new(),
                    words: Vec::new(),
                    at_key: is_object,
                    child: Place::Other,
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

/// The place after a string that begins at `at`.
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

/// What an element of an array is.
fn element(place: Place) -> Place {
    match place {
        Place::Tools { inner } => Place::Tool { inner },
        Place::History => Place::Entry,
        Place::Entry => Place::Block,
        other => other,
    }
}

/// Takes a key of an object.
fn add<'a>(
    api: Api,
    frame: &mut Frame<'a>,
    literal: &'a str,
    keys: &mut Vec<Cow<'a, str>>,
) -> Result<(), ScopeViolation> {
    frame.at_key = false;
    let key: Cow<'a, str> = match literal.get(1..literal.len().saturating_sub(1)) {
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        // Half a surrogate pair is no text, and every program makes something else of it.
        _ => Cow::Owned(
            serde_json::from_str::<String>(literal)
                .map_err(|_| ScopeViolation::DuplicateKey(ScopeViolation::shown(literal)))?,
        ),
    };
    let known = &keys[frame.start..];
    let is_known =
        if frame.many.is_empty() { known.contains(&key) } else { frame.many.contains(&key) };
    if is_known {
        return Err(ScopeViolation::DuplicateKey(ScopeViolation::shown(&key)));
    }
    if known.len() == KEYS {
        return Err(ScopeViolation::TooManyKeys);
    }
    frame.child = child(api, frame, &key)?;
    if known.len() == MANY {
        frame.many.extend(known.iter().cloned());
    }
    if !frame.many.is_empty() {
        frame.many.insert(key.clone());
    }
    keys.push(key);
    Ok(())
}

/// What the value under a key is.
fn child(api: Api, frame: &mut Frame<'_>, key: &str) -> Result<Place, ScopeViolation> {
    let place = match frame.place {
        Place::Free => return Ok(Place::Free),
        Place::Named => return Ok(Place::Part),
        // A list was expected: refused when it is narrowed.
        Place::Tools { inner } => Place::Tool { inner },
        Place::History => Place::Entry,
        place => place,
    };
    let word = fold_key(key);
    if place != Place::Other
        && let Some((known, spellings)) = WORDS.iter().find(|(known, _)| *known == word)
    {
        if !spellings.contains(&key) {
            return Err(ScopeViolation::KeySpelling(ScopeViolation::shown(key), spellings[0]));
        }
        if spellings.len() > 1 {
            if frame.words.contains(known) {
                return Err(ScopeViolation::DuplicateKey(ScopeViolation::shown(key)));
            }
            frame.words.push(known);
        }
    }
    if is_carrier(&word) {
        return carrier(api, place, key)
            .ok_or_else(|| ScopeViolation::UnexpectedKey(ScopeViolation::shown(key)));
    }
    // A letter of another alphabet can look like one of the API's, and no API has such a key.
    if place == Place::Body && !key.is_ascii() {
        return Err(ScopeViolation::UnexpectedKey(ScopeViolation::shown(key)));
    }
    let is_free = match place {
        Place::Body => matches!(word.as_str(), "metadata" | "labels" | "guidedjson"),
        Place::Other => SCHEMAS.contains(&word.as_str()),
        Place::Choice => false,
        _ => FREE.contains(&word.as_str()),
    };
    Ok(match place {
        Place::Body if key == history_key(api) => Place::History,
        _ if is_free => Place::Free,
        Place::Body if matches!(word.as_str(), "toolchoice" | "functioncall" | "toolconfig") => {
            Place::Choice
        }
        Place::Body => Place::Other,
        Place::Tool { .. } if matches!(key, "function" | "custom") => Place::Tool { inner: true },
        Place::Tool { .. } if key == "configs" => Place::Named,
        Place::Tool { .. } => Place::Part,
        Place::Entry => Place::Block,
        other => other,
    })
}

/// What the value of a key that carries tools is; `None` if the API has no such key there.
fn carrier(api: Api, place: Place, key: &str) -> Option<Place> {
    match (api, place, key) {
        (_, Place::Body, "tools") | (Api::Chat, Place::Body, "functions") => {
            Some(Place::Tools { inner: false })
        }
        (Api::Responses, Place::Tool { inner: false }, "tools") => {
            Some(Place::Tools { inner: true })
        }
        (
            Api::Gemini,
            Place::Tool { inner: false },
            "functionDeclarations" | "function_declarations",
        ) => Some(Place::Tools { inner: true }),
        // Items that load tools.
        (Api::Responses, Place::Entry, "tools") => Some(Place::Tools { inner: false }),
        (Api::Chat | Api::Responses, Place::Choice, "tools" | "allowed_tools") => {
            Some(Place::Choice)
        }
        // Names of a hosted server's tools. An entry that has them is left out in APIs without such servers.
        (_, Place::Tool { .. }, "allowed_tools")
        | (Api::Messages, Place::Part, "allowed_tools") => Some(Place::Part),
        // Names of tools whose results stay in the context.
        (Api::Messages, Place::Other, "exclude_tools") => Some(Place::Other),
        // A tool that the history adds or removes.
        (Api::Messages, Place::Block, "tool") => Some(Place::Block),
        (Api::Messages, Place::Body, "mcp_servers")
        | (Api::Gemini, Place::Tool { inner: false }, "mcpServers" | "mcp_servers") => {
            Some(Place::Part)
        }
        _ => None,
    }
}

/// The key under which an API has its history.
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
    fn a_key_counts_once_however_it_is_written() {
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
        // Many keys are looked up in a set.
        let many: Vec<String> = (0..100).map(|at| format!(r#""k{at}":{at}"#)).collect();
        assert_eq!(refused(Api::Chat, &format!("{{{}}}", many.join(","))), None);
        let many = format!(r#"{{{},"k7":0}}"#, many.join(","));
        assert!(refused(Api::Chat, &many).unwrap().contains("`k7` occurs twice"));
    }

    #[test]
    fn words_of_the_api_have_one_spelling() {
        for key in ["Tools", "TOOLS", "tool\u{17f}", "\u{ff54}ools", "to ols", "tools\u{200b}"] {
            let why = refused(Api::Chat, &format!(r#"{{"{key}":[]}}"#)).unwrap();
            assert!(why.contains("variant of `tools`"), "{key}: {why}");
        }
        let nested = r#"{"tools":[{"type":"function","function":{"Name":"a"}}]}"#;
        assert!(refused(Api::Chat, nested).unwrap().contains("variant of `name`"));
        // A schema's keys are its own.
        let schema = r#"{"tools":[{"function":{"name":"a","parameters":{"properties":{"Name":{},"name":{},"Tools":{}}}}}]}"#;
        assert_eq!(refused(Api::Chat, schema), None);
    }

    #[test]
    fn tools_stand_only_where_the_api_has_them() {
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
            assert!(why.contains("not known to belong there"), "{text}: {why}");
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
    fn depth_is_bounded_and_strings_are_skipped() {
        let nested =
            |depth: usize| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(check(Api::Chat, &nested(DEPTH)), Ok(()));
        assert_eq!(check(Api::Chat, &nested(DEPTH + 1)), Err(ScopeViolation::TooDeep));
        assert_eq!(refused(Api::Chat, r#"{"a":"{\"b\":1,\"b\":[","c":"\\"}"#), None);
    }
}
