//! The reasons why a body is rejected for a caller with a limited scope.

/// Maximum number of characters of a client's key in an error message.
const MAX_KEY_CHARS: usize = 64;

/// The reason why a body is rejected: it could contain a tool outside the caller's scope, or its response could not be
/// checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeViolation {
    /// The body cannot be read here, but the upstream might be able to read it and find tools.
    #[error("the body is not a JSON object in UTF-8")]
    NotAnObject,
    /// A key occurs twice, and programs disagree on which occurrence counts.
    #[error("the key `{0}` occurs twice in one object")]
    DuplicateKey(String),
    /// A key differs from a known key only in its spelling. Some servers would accept it, because they ignore the case
    /// of keys.
    #[error("the key `{0}` is a variant of `{1}`")]
    KeySpelling(String, &'static str),
    /// A key that can contain tools is in a position where the API does not define it.
    #[error("the key `{0}` is not allowed there")]
    UnexpectedKey(String),
    /// The value of a field that must be a list of tools is not a list.
    #[error("the value of `{0}` is not a list")]
    NotAList(&'static str),
    /// A tool has no readable name, so it cannot be matched against the scope.
    #[error("a tool in `{0}` has no name that can be read")]
    UnnamedTool(&'static str),
    /// A part of the body that may load tools has an unknown form.
    #[error("`{0}` has an unknown form")]
    UnknownForm(&'static str),
    /// The client forces a tool that is outside the scope.
    #[error("`{0}` names a tool that this caller does not have")]
    HiddenToolChosen(&'static str),
    /// The body refers to a stored object, which may contain tools.
    #[error("`{0}` refers to a stored object, which may contain tools")]
    StoredReference(&'static str),
    /// The response would be streamed as a JSON array, in which calls are not checked.
    #[error("the response would be streamed as a JSON array, in which calls cannot be checked")]
    JsonArrayStream,
    /// The arguments of calls would be streamed in pieces, and such calls are not checked.
    #[error("the arguments of calls would be streamed in pieces, which cannot be checked")]
    StreamedArguments,
    /// The client would fetch the response later, from a path where calls are not checked.
    #[error("the response would be fetched later, where calls cannot be checked")]
    Background,
    /// The value is neither `true` nor `false`, and parsers disagree on which other values count as true.
    #[error("the value of `{0}` is not `true` or `false`")]
    NotABoolean(&'static str),
    /// The body names no model, so it is not a request of the API.
    #[error("`model` is missing or not a string")]
    NoModel,
    /// The body has no readable history, so it is not a request of the API.
    #[error("`{0}` is missing or not a conversation of this API")]
    NoHistory(&'static str),
    /// The body is nested deeper than any request needs.
    #[error("the body is nested too deeply")]
    TooDeep,
    /// The body has more JSON values than the proxy reads.
    #[error("the body has more than {} values", crate::limits::MAX_VALUES)]
    TooManyValues,
    /// The body has more tools than the proxy can rewrite.
    #[error("the body has more than {} tools", crate::limits::MAX_TOOLS)]
    TooManyTools,
    /// An object has more keys than any request needs.
    #[error("an object in the body has too many keys")]
    TooManyKeys,
}

impl ScopeViolation {
    /// Returns a hint on what the client can change.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotAnObject => "send the request as plain JSON",
            Self::DuplicateKey(_) => "send every key once",
            Self::KeySpelling(..) => "spell keys as the API's reference does",
            Self::UnexpectedKey(_) => "declare tools in `tools`",
            Self::NotAList(_)
            | Self::UnnamedTool(_)
            | Self::UnknownForm(_)
            | Self::NotABoolean(_)
            | Self::NoModel
            | Self::NoHistory(_) => "use the form in the API's reference",
            Self::HiddenToolChosen(_) => "leave the choice out, or choose a tool that is available",
            Self::StoredReference(_) => {
                "send the whole conversation and its tools with each request"
            }
            Self::JsonArrayStream => "send `alt=sse` in the query",
            Self::StreamedArguments => "leave `streamFunctionCallArguments` out",
            Self::Background => "leave `background` out",
            Self::TooDeep | Self::TooManyKeys | Self::TooManyValues => "send a simpler body",
            Self::TooManyTools => "send fewer tools",
        }
    }

    /// Returns a client's key for an error message, shortened and without control characters.
    pub(super) fn printable(key: &str) -> String {
        let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let mut text: String = key.chars().take(MAX_KEY_CHARS).map(clean).collect();
        if text.len() < key.len() && key.chars().nth(MAX_KEY_CHARS).is_some() {
            text.push('…');
        }
        text
    }
}
