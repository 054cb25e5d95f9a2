//! Reads the ids of JSON-RPC messages, even if a message is truncated or malformed.
//!
//! A line that is too long or not JSON may be a request, or the answer to one. In both cases somebody waits for an
//! answer and must get an error with the right id. Most peers write the id first, so it is looked for at the start of
//! the line.

use rmcp::model::{NumberOrString, RequestId};
use serde_json::Value;

/// Reads an id, which is a number or a string.
pub(crate) fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) => Some(NumberOrString::String(text.as_str().into())),
        // Some servers answer request 1 with id 1.0.
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i64))
            .map(NumberOrString::Number),
        _ => None,
    }
}

/// The top-level keys of a message that is truncated or not JSON, as far as they can be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageHead {
    pub(crate) id: Option<RequestId>,
    /// Whether the message is a request or a notification.
    pub(crate) has_method: bool,
    /// Whether the message is the answer to a request.
    pub(crate) is_answer: bool,
}

impl MessageHead {
    /// Reads the keys at the start of a message. Keys of nested objects do not count.
    pub(crate) fn read(start: &[u8]) -> Self {
        let mut head = Self::default();
        let (mut at, mut depth, mut at_key) = (0, 0_usize, false);
        while let Some(byte) = start.get(at) {
            match byte {
                b'"' => {
                    let Some(end) = string_end(start, at) else { break };
                    if depth == 1 && at_key {
                        head.add_key(&start[at..end], &start[end..]);
                    }
                    at_key = false;
                    at = end;
                    continue;
                }
                b'{' | b'[' => {
                    depth += 1;
                    at_key = depth == 1 && *byte == b'{';
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' if depth == 1 => at_key = true,
                _ => {}
            }
            at += 1;
        }
        head
    }

    fn add_key(&mut self, key: &[u8], rest: &[u8]) {
        match key {
            b"\"id\"" if self.id.is_none() => {
                self.id = rest.trim_ascii_start().strip_prefix(b":").and_then(complete_id);
            }
            b"\"method\"" => self.has_method = true,
            b"\"result\"" | b"\"error\"" => self.is_answer = true,
            _ => {}
        }
    }
}

/// Returns the id at the start of a truncated message, if the id itself is complete.
pub(crate) fn id_in_head(start: &[u8]) -> Option<RequestId> {
    MessageHead::read(start).id
}

/// Reads an id, but only if it is complete in the text, because a truncated number would be a different number.
fn complete_id(rest: &[u8]) -> Option<RequestId> {
    let rest = rest.trim_ascii_start();
    let end = if rest.first() == Some(&b'"') {
        string_end(rest, 0)?
    } else {
        rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))?
    };
    request_id(&serde_json::from_slice::<Value>(&rest[..end]).ok()?)
}

/// Returns the index after the string that begins at `start`, or `None` if the string is truncated.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_top_level_id_counts() {
        let number = |n| Some(NumberOrString::Number(n));
        for (start, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":["#, number(7)),
            (r#"{ "id" : 7 , "result" : {"#, number(7)),
            (r#"{"id":"a\"b","result":"#, Some(NumberOrString::String(r#"a"b"#.into()))),
            (r#"{"id":7,"result":{"structuredContent":{"id":9,"x":""#, number(7)),
            (r#"{"result":{"id":9,"rows":[{"id":10},"#, None),
            (r#"{"result":{"a":[1,{"b":2}]},"id":7}"#, number(7)),
            (r#"{"text":"\"id\":9, ","id":7,"#, number(7)),
            (r#"{"method":"id","x":["id",9],"id":7,"#, number(7)),
            (r#"{"jsonrpc":"2.0","id":7"#, None),
            (r#"{"jsonrpc":"2.0","id":"half"#, None),
            (r#"[{"id":7,"#, None),
            (r#"["id",7,"id":7]"#, None),
            ("", None),
            ("\\\"", None),
        ] {
            assert_eq!(id_in_head(start.as_bytes()), expected, "{start}");
        }
    }

    proptest! {
        #[test]
        fn any_truncated_bytes_are_handled(bytes: Vec<u8>, id: u32, text: String, cut in 0_usize..80) {
            id_in_head(&bytes);
            let whole = json!({"x": text, "id": id, "y": {"id": 1}}).to_string();
            let start = &whole.as_bytes()[..cut.min(whole.len())];
            if let Some(found) = id_in_head(start) {
                prop_assert_eq!(found, NumberOrString::Number(i64::from(id)));
            }
            prop_assert!(id_in_head(whole.as_bytes()).is_some());
        }
    }
}
