//! A request of Chat Completions, as we write it.
//!
//! Values that mean the same in both APIs are carried as the client wrote them. `messages` stands
//! last, so that a longer conversation begins with the bytes of the shorter one.

use serde::Serialize;
use serde::ser::{Error, Serializer};
use serde_json::value::RawValue;
use toolcrib_text::json::{self, Fields};

use super::lenient;

/// What stands between texts that are made into one.
pub(super) const TEXT_SEPARATOR: &str = "\n\n";

/// Bytes of `user`, at most: OpenAI refuses more, and Claude Code's ids have more.
const MAX_USER_BYTES: usize = 64;

/// A value as the client wrote it, less the white space between its parts.
#[derive(Debug, Clone)]
pub(super) struct RawJson(String);

impl RawJson {
    pub(super) fn new(raw: &str) -> Self {
        Self(json::compact(raw).into_owned())
    }

    /// The value under `key`, where it is there and not `null`.
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

/// The body.
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
    pub(super) response_format: Option<ResponseFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Written by [`ChatRequest::write`].
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<FunctionTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) messages: Vec<ChatMessage>,
}

impl ChatRequest {
    /// The body as text.
    pub(super) fn write(mut self) -> String {
        // Without tools neither of them may be said.
        if self.tools.is_empty() {
            (self.tool_choice, self.parallel_tool_calls) = (None, None);
        }
        // A stream counts tokens only for those who ask, and both of our clients' APIs always count.
        self.stream_options =
            (self.stream == Some(true)).then_some(StreamOptions { include_usage: true });
        // Every raw value was cut out of JSON that was read: this cannot fail.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Who asks. A name that is too long is exchanged for its hash, which still tells users apart.
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

/// The form that an answer must have.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat {
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
    /// Said only where it is true: not every backend knows the word.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) strict: bool,
}

/// What the model must do about tools.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ToolChoice {
    Word(&'static str),
    Named(FunctionChoice),
    Some(AllowedToolsChoice),
}

/// One function, by name.
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

/// Some of the functions.
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

/// One message.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum ChatMessage {
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

/// What a user says.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UserContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

impl UserContent {
    /// The parts as the plainest content that holds them, since many backends take only strings where
    /// there is only text; `None` for no parts at all.
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
    /// `arguments` is JSON text.
    pub(super) fn new(id: String, name: String, arguments: String) -> Self {
        Self { id, r#type: "function", function: CalledFunction { name, arguments } }
    }
}

#[derive(Debug, Serialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// The result of one call: in Chat Completions only text, so that its images come after it.
#[derive(Debug, Default)]
pub(super) struct ToolResult {
    texts: Vec<String>,
    images: Vec<ImageUrl>,
}

impl ToolResult {
    pub(super) fn text(&mut self, text: String) {
        self.texts.push(text);
    }

    pub(super) fn image(&mut self, image: ImageUrl) {
        self.images.push(image);
    }

    /// The message that answers the call. What follows it, once all calls are answered, goes to
    /// `after`: no other message may come between a call and its result.
    pub(super) fn message(
        self,
        id: String,
        failed: bool,
        after: &mut Vec<ContentPart>,
    ) -> ChatMessage {
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
        ChatMessage::Tool { tool_call_id: id, content }
    }
}
