//! The Chat Completions request that is sent to the backend.
//!
//! Values that mean the same in both APIs are copied as the client wrote them. `messages` is the last field, so that
//! the request of a longer conversation begins with the bytes of the shorter one.

use serde::Serialize;
use serde::ser::{Error, Serializer};
use serde_json::value::RawValue;
use toolcrib_text::json::{self, Fields};

use super::lenient;

/// Separates texts that are joined into one.
pub(super) const TEXT_SEPARATOR: &str = "\n\n";

/// Maximum length of `user`, in bytes. OpenAI rejects longer values, and the ids that Claude Code sends are longer.
const MAX_USER_BYTES: usize = 64;

/// A JSON value as the client wrote it, without insignificant whitespace.
#[derive(Debug, Clone)]
pub(super) struct RawJson(String);

impl RawJson {
    pub(super) fn new(raw: &str) -> Self {
        Self(json::compact(raw).into_owned())
    }

    /// Returns the value under `key`, unless it is absent or `null`.
    pub(super) fn of(fields: &Fields<'_>, key: &str) -> Option<Self> {
        lenient::value(fields, key).map(Self::new)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The body of a Chat Completions request.
#[derive(Debug, Default, Serialize)]
pub(super) struct ChatRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ChatResponseFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// This field is set by [`ChatRequest::write`].
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<FunctionTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ChatToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) messages: Vec<RequestMessage>,
}

impl ChatRequest {
    /// Returns the body as JSON.
    pub(super) fn write(mut self) -> String {
        // Servers reject these two fields in a request without tools.
        if self.tools.is_empty() {
            (self.tool_choice, self.parallel_tool_calls) = (None, None);
        }
        // Chat Completions streams report token usage only on request, but the client's API always reports it.
        self.stream_options =
            (self.stream == Some(true)).then_some(StreamOptions { include_usage: true });
        // This cannot fail, because every raw value was taken from valid JSON.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Sets the user id. An id that is too long is replaced by its hash, which still identifies the user.
    pub(super) fn set_user(&mut self, user: Option<String>) {
        self.user = user.map(|user| match user.len() {
            0..=MAX_USER_BYTES => user,
            _ => blake3::hash(user.as_bytes()).to_hex().to_string(),
        });
    }
}

#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    include_usage: bool,
}

/// The required format of the response.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatResponseFormat {
    JsonObject,
    JsonSchema { json_schema: NamedSchema },
}

#[derive(Debug, Serialize)]
pub(super) struct NamedSchema {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schema: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strict: Option<bool>,
}

/// A function that the model may call.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum FunctionTool {
    Function { function: FunctionDefinition },
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionDefinition {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters: Option<RawJson>,
    /// The field is sent only if it is `true`, because not every backend knows it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
}

/// Which tools the model may or must call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ChatToolChoice {
    Word(&'static str),
    Named(FunctionChoice),
    Some(AllowedToolsChoice),
}

/// A choice that requires the function of this name.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum FunctionChoice {
    Function { function: FunctionName },
}

impl FunctionChoice {
    pub(super) fn new(name: String) -> Self {
        Self::Function { function: FunctionName { name } }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionName {
    name: String,
}

/// A choice that restricts the model to a subset of the functions.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AllowedToolsChoice {
    AllowedTools { allowed_tools: AllowedTools },
}

#[derive(Debug, Serialize)]
pub(super) struct AllowedTools {
    pub(super) mode: &'static str,
    pub(super) tools: Vec<FunctionChoice>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum RequestMessage {
    System {
        content: String,
    },
    User {
        content: UserContent,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestCall>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UserContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

impl UserContent {
    /// Returns the simplest content for these parts. If there is only text, this is a string, because many backends
    /// accept text only as a string. Returns `None` if there are no parts.
    pub(super) fn of(parts: Vec<ContentPart>) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let mut texts = Vec::with_capacity(parts.len());
        for part in &parts {
            match part {
                ContentPart::Text { text } => texts.push(text.as_str()),
                ContentPart::ImageUrl { .. } => return Some(Self::Parts(parts)),
            }
        }
        Some(Self::Text(texts.join(TEXT_SEPARATOR)))
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl {
    pub(super) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

/// A call that the model made.
#[derive(Debug, Serialize)]
pub(super) struct RequestCall {
    id: String,
    r#type: &'static str,
    function: CalledFunction,
}

impl RequestCall {
    /// Creates a call. `arguments` is JSON text.
    pub(super) fn new(id: String, name: String, arguments: String) -> Self {
        Self { id, r#type: "function", function: CalledFunction { name, arguments } }
    }
}

#[derive(Debug, Serialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// The result of one call. In Chat Completions, a result can only be text, so its images are sent in a later message.
#[derive(Debug, Default)]
pub(super) struct ChatToolResult {
    texts: Vec<String>,
    images: Vec<ImageUrl>,
}

impl ChatToolResult {
    pub(super) fn text(&mut self, text: String) {
        self.texts.push(text);
    }

    pub(super) fn image(&mut self, image: ImageUrl) {
        self.images.push(image);
    }

    /// Returns the message that answers the call. The images in the result are added to `after`, because they may be
    /// sent only after the results of all calls.
    pub(super) fn message(
        self,
        id: String,
        failed: bool,
        after: &mut Vec<ContentPart>,
    ) -> RequestMessage {
        let mut content = self.texts.join(TEXT_SEPARATOR);
        if !self.images.is_empty() {
            if content.is_empty() {
                content.push_str("The image follows.");
            }
            after.push(ContentPart::Text { text: format!("From the result of call {id}:") });
            after.extend(
                self.images.into_iter().map(|image_url| ContentPart::ImageUrl { image_url }),
            );
        }
        if failed {
            content.insert_str(0, "Error: ");
        }
        RequestMessage::Tool { tool_call_id: id, content }
    }
}
