//! The arguments of a call, exactly as the client wrote them.
//!
//! The SDK parses arguments into a map, which changes `1.00` to `1.0` and a large integer to a float. Therefore the
//! text of `params.arguments` is taken from the message before the SDK parses it, and is stored in the extensions of
//! the request. It then replaces the map in the message to the server. The SDK keeps its map, because for servers of
//! the newer protocol it copies some arguments into HTTP headers.
//!
//! Arguments are not checked here. The engine does that (`call` in `toolcrib-core`).

use std::sync::Arc;

use axum::http::request::Parts;
use memchr::memmem;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, Extensions, GetExtensions as _, JsonObject,
    JsonRpcMessage, RequestId,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolcrib_text::json::{Fields, quote};

use crate::request_id::request_id;

/// The arguments of a call, as JSON text. Clones share the text.
#[derive(Debug, Clone)]
pub(crate) struct RawArguments(Arc<RawValue>);

impl From<Box<RawValue>> for RawArguments {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

/// Asks a server of the older protocol to run a call as a task. It is stored in the extensions of the request, because
/// the SDK's type has no such parameter.
#[derive(Debug, Clone)]
pub(crate) struct TaskParam;

/// The fields of a message that are needed to find the arguments of a call.
#[derive(Deserialize)]
struct CallMessage<'a> {
    #[serde(default)]
    id: Value,
    method: String,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

impl RawArguments {
    /// Returns the id and the arguments of a call. Returns `None` if the message is not a call with arguments.
    pub(crate) fn from_message(message: &[u8]) -> Option<(RequestId, Self)> {
        memmem::find(message, b"\"arguments\"")?;
        let message: CallMessage<'_> = serde_json::from_slice(message).ok()?;
        let (id, arguments) = (request_id(&message.id)?, message.params.arguments);
        // `null` means the same as no arguments. It is left out, because some servers reject it.
        let is_call = message.method == "tools/call" && arguments.get() != "null";
        is_call.then(|| (id, arguments.to_owned().into()))
    }

    /// Returns the arguments that the transport stored with a request. If there are none, converts `parsed`, the SDK's
    /// map, to text.
    pub(crate) fn from_request(
        extensions: &Extensions,
        parsed: Option<&JsonObject>,
    ) -> Option<Self> {
        let over_http = || extensions.get::<Parts>().and_then(|parts| parts.extensions.get());
        let raw: Option<&Self> = extensions.get().or_else(over_http);
        raw.cloned().or_else(|| serde_json::value::to_raw_value(parsed?).ok().map(Self::from))
    }

    /// Returns the arguments `{}`.
    pub(crate) fn empty() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_default().into())
    }

    pub(crate) fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the arguments with these members added at the end. Everything else stays as the client wrote it. Returns
    /// `None` if the arguments are not a JSON object.
    pub(crate) fn with_members(&self, members: &[(&str, String)]) -> Option<Self> {
        let text = self.text();
        let is_empty = Fields::read(text)?.iter().next().is_none();
        let (before, _) = text.rsplit_once('}')?;
        let mut out = before.to_owned();
        for (index, (key, value)) in members.iter().enumerate() {
            if index > 0 || !is_empty {
                out.push(',');
            }
            out.push_str(&quote(key));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        RawValue::from_string(out).ok().map(Self::from)
    }

    /// Returns the arguments as a map, for the SDK.
    pub(crate) fn parsed(&self) -> Option<JsonObject> {
        serde_json::from_str(self.text()).ok()
    }
}

/// Serializes a message for a server to JSON. The arguments of a call stay as the client wrote them.
pub(crate) fn message_to_json(message: &ClientJsonRpcMessage) -> serde_json::Result<String> {
    let text = serde_json::to_string(message)?;
    Ok(with_raw_arguments(message, &text).unwrap_or(text))
}

fn with_raw_arguments(message: &ClientJsonRpcMessage, text: &str) -> Option<String> {
    let JsonRpcMessage::Request(sent) = message else { return None };
    let ClientRequest::CallToolRequest(call) = &sent.request else { return None };
    let raw = call.extensions().get::<RawArguments>();
    let task = call.extensions().get::<TaskParam>();
    let mut added = Vec::new();
    added.extend(raw.map(|raw| ("arguments", Some(raw.text().to_owned()))));
    added.extend(task.map(|TaskParam| ("task", Some("{}".to_owned()))));
    if added.is_empty() {
        return None;
    }
    let fields = Fields::read(text)?;
    let params = Fields::read(fields.get("params")?)?;
    let params = params.with(&added);
    Some(fields.with(&[("params", Some(params))]))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, NumberOrString};

    use super::*;

    const RAW: &str = r#"{"b":1.00,"a" : 12345678901234567890123,"t":"a  b\u00e9\/","b":2E+5}"#;

    fn line(id: u32, arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools\/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        )
    }

    #[test]
    fn only_calls_have_raw_arguments() {
        let (id, found) = RawArguments::from_message(line(3, RAW).as_bytes()).unwrap();
        assert_eq!((id, found.text()), (NumberOrString::Number(3), RAW));
        for other in [
            r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"arguments"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"arguments":{}"#,
            "",
        ] {
            assert!(RawArguments::from_message(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn a_message_to_a_server_has_the_raw_arguments() {
        let (id, raw) = RawArguments::from_message(line(3, RAW).as_bytes()).unwrap();
        let mut params = CallToolRequestParams::new("own");
        params.arguments = raw.parsed();
        let mut call = CallToolRequest::new(params);
        call.extensions.insert(raw);
        let message = ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(call), id);
        let json = message_to_json(&message).unwrap();
        assert!(json.contains(&format!("\"arguments\":{RAW}")), "{json}");
        assert!(json.contains("\"name\":\"own\""), "{json}");
    }

    #[test]
    fn members_are_added_at_the_end() {
        let with = |text: &str, members: &[(&str, String)]| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            RawArguments::from(raw).with_members(members).map(|raw| raw.text().to_owned())
        };
        let members = [("x\"", "1.50".to_owned()), ("y", "\"}\"".to_owned())];
        let added = r#""x\"":1.50,"y":"}"}"#;
        let (before, _) = RAW.rsplit_once('}').unwrap();
        assert_eq!(with(RAW, &members), Some(format!("{before},{added}")));
        assert_eq!(with("{ }", &members), Some(format!("{{ {added}")));
        assert_eq!(with(RAW, &[]), Some(RAW.to_owned()));
        assert_eq!(with("[1]", &members), None);
    }

    #[test]
    fn null_counts_as_no_arguments() {
        assert!(RawArguments::from_message(line(3, "null").as_bytes()).is_none());
    }
}
