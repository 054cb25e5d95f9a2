//! The errors by which an upstream says that it does not know a feature.
//!
//! They come before any byte has reached the client: the request is sent again in another mode, and
//! the answer is remembered. An error echoes what a user wrote now and then, so nothing is looked for
//! inside a text: a message must begin with one of ours, after the path that names the place, and
//! that place must be one where we put something.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::Api;

/// What an upstream does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedFeature {
    /// The search tool, hosted or run by the client, or the namespaces that it loads.
    Search,
    /// The hosted search by words; the one by patterns is there.
    Bm25,
    /// `defer_loading` and `tool_reference`, and with them whatever builds on those.
    References,
    /// `additional_tools` items.
    AdditionalTools,
    /// `tool_addition` blocks in system messages.
    ToolAddition,
}

/// What an error says is missing; `None` for every error that says anything else.
///
/// To be asked of a request that used a native feature, and to be remembered once the same request
/// went through without it: one of these texts names no feature, only a block that is not known.
pub fn detect_unsupported_feature(
    api: Api,
    status: u16,
    body: &[u8],
) -> Option<UnsupportedFeature> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let error = Message::read(body)?;
    match api {
        Api::Messages => messages(&error),
        Api::Responses => responses(&error),
        // Nothing native was sent that could be refused.
        Api::Chat | Api::Gemini => None,
    }
}

/// Whether an error says that the feature is there and this request used it wrongly: to be sent again
/// in another mode, and nothing to be remembered.
pub fn is_feature_misused(api: Api, status: u16, body: &[u8]) -> bool {
    let Some(error) = Message::read(body).filter(|_| status == 400) else { return false };
    let begins = |start: &str| error.text.starts_with(start);
    match api {
        Api::Messages => {
            begins("at least one tool must have defer_loading=false")
                || begins("all tools have defer_loading set")
                || begins("tools with defer_loading cannot use prompt caching")
                || (begins("tool reference ")
                    && error.text.contains(" not found in available tools"))
        }
        Api::Responses => begins("missing namespace for function_call"),
        Api::Chat | Api::Gemini => false,
    }
}

/// Whether an error says that a thinking block was signed for another conversation than the one that
/// was sent.
pub fn is_thinking_rejected(body: &[u8]) -> bool {
    let bound =
        "invalid signature in thinking block. the block is bound to a different conversation";
    Message::read(body).is_some_and(|error| error.root("messages") && error.text.starts_with(bound))
}

fn messages(error: &Message) -> Option<UnsupportedFeature> {
    let last = error.path.rsplit(['.', ']']).find(|part| !part.is_empty()).unwrap_or_default();
    if error.root("tools") {
        if matches!(last, "defer_loading" | "clear_at")
            && error.text.starts_with("extra inputs are not permitted")
        {
            return Some(UnsupportedFeature::References);
        }
        if error.text.starts_with("bm25 tool search is not supported") {
            return Some(UnsupportedFeature::Bm25);
        }
        if let Some(rest) = error.unknown("tool_search_tool_bm25") {
            let other = rest.contains("tool_search_tool_regex");
            return Some(if other { UnsupportedFeature::Bm25 } else { UnsupportedFeature::Search });
        }
        if error.unknown("tool_search_tool_regex").is_some() {
            return Some(UnsupportedFeature::Search);
        }
    }
    if error.root("messages") {
        if error.unknown("tool_reference").is_some()
            || (!error.path.is_empty()
                && error.text.starts_with("value did not match any expected variant"))
        {
            return Some(UnsupportedFeature::References);
        }
        if error.unknown("tool_addition").is_some()
            || error.text.starts_with("unexpected role system")
        {
            return Some(UnsupportedFeature::ToolAddition);
        }
    }
    None
}

fn responses(error: &Message) -> Option<UnsupportedFeature> {
    if error.root("tools") {
        let orphan = "invalid value: tools.defer_loading. deferred tools require tools.tool_search";
        if error.text.starts_with(orphan)
            || error.text.starts_with("deferred tools require tools.tool_search")
            || error.unknown("tool_search").is_some()
            || error.unknown("namespace").is_some()
        {
            return Some(UnsupportedFeature::Search);
        }
    }
    let items = error.root("input") && error.unknown("additional_tools").is_some();
    items.then_some(UnsupportedFeature::AdditionalTools)
}

/// Maximum size of an error that is read, in bytes. Refusals by providers are far shorter.
const ERROR_BYTES: usize = 64 << 10;

/// The one sentence of an error, and the place it speaks of.
struct Message {
    /// `tools.3.custom.defer_loading`; empty where none is named.
    path: String,
    /// The rest, in lower case and without quotation marks.
    text: String,
}

impl Message {
    /// Reads `{"error": {"message", "param"}}`, `{"message"}`, and one such object inside another's
    /// message, as gateways wrap them.
    fn read(body: &[u8]) -> Option<Self> {
        if body.len() > ERROR_BYTES {
            return None;
        }
        let mut value: Value = serde_json::from_slice(body).ok()?;
        loop {
            let error = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
            let message = error.get("message")?.as_str()?.trim();
            let inner = serde_json::Deserializer::from_str(message).into_iter::<Value>().next();
            if let Some(Ok(inner @ Value::Object(_))) = inner {
                value = inner;
                continue;
            }
            let param = error.get("param").and_then(Value::as_str);
            return Some(Self::parted(message, param.unwrap_or_default()));
        }
    }

    fn parted(message: &str, param: &str) -> Self {
        let plain = |text: &str| text.to_lowercase().replace(['\'', '"', '`'], "");
        let is_path = |text: &str| {
            let in_path = |b: u8| b.is_ascii_alphanumeric() || b"_.[]*-".contains(&b);
            !text.is_empty() && text.bytes().all(in_path)
        };
        let (path, text) = match message.split_once(": ") {
            Some((path, text)) if is_path(path) => (path, text),
            _ => (if is_path(param) { param } else { "" }, message),
        };
        Self { path: path.to_lowercase(), text: plain(text.trim_start()) }
    }

    /// Whether it speaks of this part of a request, or names no part.
    fn root(&self, root: &str) -> bool {
        let rest = self.path.strip_prefix(root);
        self.path.is_empty()
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// What follows, where it says that a type which is `word`, or begins with it and a date, is not
    /// known.
    fn unknown(&self, word: &str) -> Option<&str> {
        const SAID: [&str; 10] = [
            "invalid value: ",
            "input tag ",
            "unknown variant ",
            "unknown tool type: ",
            "unknown tool type ",
            "unsupported tool type: ",
            "hosted tool ",
            "tool type ",
            "tool ",
            "unknown input type: ",
        ];
        SAID.iter().find_map(|said| {
            let rest = self.text.strip_prefix(said)?.strip_prefix(word)?;
            let dated = rest
                .strip_prefix('_')
                .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
            let rest = dated.unwrap_or(rest);
            let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
            // These two say of what is there, too, what it cannot do.
            let refused = !matches!(*said, "hosted tool " | "tool " | "tool type ")
                || rest.starts_with(" is not supported");
            (ends && refused).then_some(rest)
        })
    }
}
