//! Recognises the errors with which an upstream rejects a feature that it does not support.
//!
//! Such an error arrives before any byte has been sent to the client, so the request can be sent again in another mode
//! (see `exchange::fallback`). The unsupported feature is remembered.
//!
//! An error may quote text that a user wrote, and such a quotation must not be taken for a rejection. Therefore the
//! message must start with a known text. The text may follow the path of the rejected field, but only if Toolcrib
//! writes to that field.

use serde_json::Value;

use crate::api::Api;

/// A feature that an upstream does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UnsupportedFeature {
    /// The search tool, whether hosted or executed by the client, or the namespaces that it loads.
    Search,
    /// The hosted search by keywords. The hosted search by regular expressions is supported.
    Bm25,
    /// `defer_loading` and `tool_reference`, and everything that depends on them.
    References,
    /// `additional_tools` items.
    AdditionalTools,
}

/// Returns the feature that an error reports as unsupported, or `None` for every other error.
///
/// Call this only for a request that used a native feature. Remember the result only after the same request has
/// succeeded without that feature, because one of the known texts reports an unknown block without naming a feature.
pub(crate) fn detect_unsupported_feature(
    api: Api,
    status: u16,
    body: &[u8],
) -> Option<UnsupportedFeature> {
    if !matches!(status, 400 | 422) {
        return None;
    }
    let error = ErrorMessage::read(body)?;
    match api {
        Api::Messages => messages(&error),
        Api::Responses => responses(&error),
        // These APIs have no native features.
        Api::Chat | Api::Gemini => None,
    }
}

/// Whether an error says that the request used a supported feature incorrectly. In that case the request is sent again
/// in another mode, but the feature is not remembered as unsupported.
pub(crate) fn is_feature_misused(api: Api, status: u16, body: &[u8]) -> bool {
    let Some(error) = ErrorMessage::read(body).filter(|_| status == 400) else { return false };
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

/// Whether an error says that a thinking block was signed for a different conversation from the one that was sent.
pub(crate) fn is_thinking_rejected(body: &[u8]) -> bool {
    let bound =
        "invalid signature in thinking block. the block is bound to a different conversation";
    ErrorMessage::read(body)
        .is_some_and(|error| error.is_about("messages") && error.text.starts_with(bound))
}

fn messages(error: &ErrorMessage) -> Option<UnsupportedFeature> {
    let last = error.path.rsplit(['.', ']']).find(|part| !part.is_empty()).unwrap_or_default();
    if error.is_about("tools") {
        if matches!(last, "defer_loading" | "clear_at")
            && error.text.starts_with("extra inputs are not permitted")
        {
            return Some(UnsupportedFeature::References);
        }
        if error.text.starts_with("bm25 tool search is not supported") {
            return Some(UnsupportedFeature::Bm25);
        }
        if let Some(rest) = error.after_unknown_type("tool_search_tool_bm25") {
            let other = rest.contains("tool_search_tool_regex");
            return Some(if other { UnsupportedFeature::Bm25 } else { UnsupportedFeature::Search });
        }
        if error.after_unknown_type("tool_search_tool_regex").is_some() {
            return Some(UnsupportedFeature::Search);
        }
    }
    let rejects_references = error.is_about("messages")
        && (error.after_unknown_type("tool_reference").is_some()
            || (!error.path.is_empty()
                && error.text.starts_with("value did not match any expected variant")));
    rejects_references.then_some(UnsupportedFeature::References)
}

fn responses(error: &ErrorMessage) -> Option<UnsupportedFeature> {
    if error.is_about("tools") {
        let orphan = "invalid value: tools.defer_loading. deferred tools require tools.tool_search";
        if error.text.starts_with(orphan)
            || error.text.starts_with("deferred tools require tools.tool_search")
            || error.after_unknown_type("tool_search").is_some()
            || error.after_unknown_type("namespace").is_some()
        {
            return Some(UnsupportedFeature::Search);
        }
    }
    let items = error.is_about("input") && error.after_unknown_type("additional_tools").is_some();
    items.then_some(UnsupportedFeature::AdditionalTools)
}

/// Maximum size of an error that is read, in bytes. Errors about unsupported features are far shorter.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The message of an error, and the path of the field that it is about.
struct ErrorMessage {
    /// The path of the field, for example `tools.3.custom.defer_loading`. Empty if the error names no field.
    path: String,
    /// The message without the path, in lower case and without quotation marks.
    text: String,
}

impl ErrorMessage {
    /// Reads `{"error": {"message", "param"}}` or `{"message"}`. Some gateways put the provider's error object into the
    /// message of their own error; in that case the innermost object is read.
    fn read(body: &[u8]) -> Option<Self> {
        if body.len() > MAX_ERROR_BYTES {
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
            return Some(Self::split(message, param.unwrap_or_default()));
        }
    }

    fn split(message: &str, param: &str) -> Self {
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

    /// Whether the error is about a field under `root`, or names no field.
    fn is_about(&self, root: &str) -> bool {
        let rest = self.path.strip_prefix(root);
        self.path.is_empty()
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// If the message says that the type `word` is unknown, returns the text after the type. The type may end with a
    /// date.
    fn after_unknown_type(&self, word: &str) -> Option<&str> {
        const PREFIXES: [&str; 10] = [
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
        PREFIXES.iter().find_map(|prefix| {
            let rest = self.text.strip_prefix(prefix)?.strip_prefix(word)?;
            let dated = rest
                .strip_prefix('_')
                .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
            let rest = dated.unwrap_or(rest);
            let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
            // Messages about supported types can also start with these three prefixes, so the text after the type must
            // say that it is not supported.
            let is_rejected = !matches!(*prefix, "hosted tool " | "tool " | "tool type ")
                || rest.starts_with(" is not supported");
            (ends && is_rejected).then_some(rest)
        })
    }
}
