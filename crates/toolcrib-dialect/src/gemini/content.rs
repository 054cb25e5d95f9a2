//! Reads the fields that the proxy needs from a Gemini content and its parts.
//!
//! The API accepts every key in camel case and in snake case. The client's spelling is kept.

use toolcrib_text::json::{self, Fields};

/// Looks up a key in both spellings. Returns the spelling that `fields` contains and the value under it.
pub(super) fn get_either<'a, 'k>(
    fields: &Fields<'a>,
    [camel, snake]: [&'k str; 2],
) -> Option<(&'k str, &'a str)> {
    [camel, snake].into_iter().find_map(|key| Some((key, fields.get(key)?)))
}

/// Returns the thought signature of a part, as JSON.
pub(super) fn signature<'a>(part: &Fields<'a>) -> Option<&'a str> {
    get_either(part, ["thoughtSignature", "thought_signature"]).map(|(_, raw)| raw)
}

/// A content of the API: either an entry of the history, or the output of a candidate.
pub(super) struct GeminiContent<'a> {
    pub(super) fields: Fields<'a>,
    /// Whether the content's role is `model`. A content without a role is the user's.
    pub(super) is_model: bool,
    pub(super) parts: Vec<&'a str>,
}

impl<'a> GeminiContent<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let is_model = fields.string("role").as_deref() == Some("model");
        let parts = fields.get("parts").and_then(json::items).unwrap_or_default();
        let parts = parts.into_iter().map(serde_json::value::RawValue::get).collect();
        Some(Self { fields, is_model, parts })
    }

    /// Returns the content with its parts replaced.
    pub(super) fn with(&self, parts: &[String]) -> String {
        self.fields.with(&[("parts", Some(format!("[{}]", parts.join(","))))])
    }
}

pub(super) struct GeminiPart<'a> {
    pub(super) fields: Fields<'a>,
    pub(super) kind: PartKind<'a>,
}

pub(super) enum PartKind<'a> {
    /// Visible text.
    Text(String),
    /// The text of a thought.
    Thought(String),
    Call(FunctionPart<'a>),
    Result(FunctionPart<'a>),
    /// An image, code, or an unknown kind.
    Other,
}

/// A `functionCall` or a `functionResponse`.
pub(super) struct FunctionPart<'a> {
    key: &'static str,
    fields: Fields<'a>,
    pub(super) id: Option<String>,
    pub(super) name: String,
    /// The arguments of a call, as JSON text.
    pub(super) args: &'a str,
}

impl<'a> GeminiPart<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let fields = Fields::read(text)?;
        let kind =
            if let Some(call) = FunctionPart::read(&fields, ["functionCall", "function_call"]) {
                PartKind::Call(call)
            } else if let Some(result) =
                FunctionPart::read(&fields, ["functionResponse", "function_response"])
            {
                PartKind::Result(result)
            } else {
                match fields.string("text") {
                    Some(text) if fields.get("thought") == Some("true") => PartKind::Thought(text),
                    Some(text) => PartKind::Text(text),
                    None => PartKind::Other,
                }
            };
        Some(Self { fields, kind })
    }

    /// Returns the part with another name in its call and, if `args` is set, other arguments. A signature in the part
    /// is kept.
    pub(super) fn with_call(&self, name: &str, args: Option<&str>) -> Option<String> {
        self.edited(name, args.map(|args| ("args", Some(args.to_owned()))))
    }

    /// Returns the part as the response to the call with this name and id. If the call has no id, the response gets
    /// none either.
    pub(super) fn as_result_of(&self, name: &str, id: Option<&str>) -> Option<String> {
        self.edited(name, Some(("id", id.map(json::quote))))
    }

    fn edited(&self, name: &str, edit: Option<(&str, Option<String>)>) -> Option<String> {
        let (PartKind::Call(call) | PartKind::Result(call)) = &self.kind else { return None };
        let mut edits = vec![("name", Some(json::quote(name)))];
        edits.extend(edit);
        Some(self.fields.with(&[(call.key, Some(call.fields.with(&edits)))]))
    }
}

impl<'a> FunctionPart<'a> {
    fn read(part: &Fields<'a>, keys: [&'static str; 2]) -> Option<Self> {
        let (key, raw) = get_either(part, keys)?;
        let fields = Fields::read(raw)?;
        let id = fields.string("id").filter(|id| !id.is_empty());
        let name = fields.string("name")?;
        // A call without `args` has no arguments.
        let args = fields.get("args").filter(|raw| *raw != "null").unwrap_or("{}");
        Some(Self { key, fields, id, name, args })
    }
}
