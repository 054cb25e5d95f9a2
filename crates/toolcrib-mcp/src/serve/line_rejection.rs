//! Errors for a client's lines that the SDK cannot parse.
//!
//! The error for a request contains the request's id as the client wrote it. If the line is an answer to a server's
//! question, the call that waits for the answer gets an error. Any other line is skipped, because nobody waits for an
//! answer.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId};
use serde::Deserialize as _;
use serde_json::{Value, json};
use toolcrib_text::json::Fields;

use crate::gateway::malformed_params;
use crate::request_id::{MessageHead, request_id};

/// How a line that the SDK cannot parse is answered.
#[derive(Debug, Default)]
pub(super) struct LineRejection {
    /// Error messages for the client.
    pub(super) errors: Vec<String>,
    /// If the line was an answer to a question, an error that replaces it, for the call that waits for the answer.
    pub(super) failed_answer: Option<Box<ClientJsonRpcMessage>>,
}

impl LineRejection {
    /// Rejects a complete line.
    pub(super) fn of_line(line: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Array(messages)) => {
                let problem = "batches are not supported: write each message on a line of its own";
                let reject = |message: &Value| {
                    let (id, _) = (message.get("id")?, message.get("method")?);
                    Some(error_message(&id.to_string(), ErrorCode::INVALID_REQUEST, problem))
                };
                Self { errors: messages.iter().filter_map(reject).collect(), failed_answer: None }
            }
            Ok(message) => Self::of_message(&message, line),
            Err(error) => {
                let head = MessageHead::read(line);
                let problem = format!("the message is not valid JSON: {error}");
                Self::of_head(head, ErrorCode::PARSE_ERROR, &problem)
            }
        }
    }

    fn of_message(message: &Value, line: &[u8]) -> Self {
        let Some(id) = message.get("id") else { return Self::default() };
        let method = message.get("method");
        let is_answer = message.get("result").or_else(|| message.get("error")).is_some();
        if method.is_none() && is_answer {
            return Self::failed(request_id(id), "the client's answer is not a valid MCP message");
        }
        let (code, problem) = match method {
            _ if RequestId::deserialize(id).is_err() => {
                (ErrorCode::INVALID_REQUEST, "`id` must be a string or an integer".into())
            }
            _ if message["jsonrpc"] != "2.0" => {
                (ErrorCode::INVALID_REQUEST, "`jsonrpc` must be \"2.0\"".into())
            }
            Some(Value::String(method)) if !is_answer => {
                let error = malformed_params(method);
                (error.code, error.message.into_owned())
            }
            _ => (ErrorCode::INVALID_REQUEST, "the message is not a valid MCP request".into()),
        };
        // The id is copied as the client wrote it. A parsed id could be written differently, and the client would not
        // recognise it.
        let fields = std::str::from_utf8(line).ok().and_then(Fields::read);
        let written = fields.as_ref().and_then(|fields| fields.get("id"));
        let id = written.map_or_else(|| id.to_string(), str::to_owned);
        Self { errors: vec![error_message(&id, code, &problem)], failed_answer: None }
    }

    /// Rejects a message of which only the first keys could be read.
    fn of_head(head: MessageHead, code: ErrorCode, problem: &str) -> Self {
        let MessageHead { id: Some(id), has_method, is_answer } = head else {
            return Self::default();
        };
        if is_answer && !has_method {
            return Self::failed(Some(id), problem);
        }
        let id = serde_json::to_string(&id).unwrap_or_default();
        Self { errors: vec![error_message(&id, code, problem)], failed_answer: None }
    }

    fn failed(id: Option<RequestId>, problem: &str) -> Self {
        let error = ErrorData::internal_error(problem.to_owned(), None);
        let failed_answer = id.map(|id| Box::new(ClientJsonRpcMessage::error(error, Some(id))));
        Self { errors: Vec::new(), failed_answer }
    }
}

/// Rejects a line over the limit, of which only the start is known.
pub(super) fn too_large(start: &[u8], limit: usize) -> LineRejection {
    let problem = format!("the request is larger than the limit of {limit} bytes");
    LineRejection::of_head(MessageHead::read(start), ErrorCode::INVALID_REQUEST, &problem)
}

/// Rejects a line whose values would take too much memory. A batch gets a single error, because its messages are not
/// parsed.
pub(super) fn too_many_values(line: &[u8]) -> LineRejection {
    let problem = "the request has too many values for its size: send fewer";
    if line.trim_ascii_start().starts_with(b"[") {
        let errors = vec![error_message("", ErrorCode::INVALID_REQUEST, problem)];
        return LineRejection { errors, failed_answer: None };
    }
    LineRejection::of_head(MessageHead::read(line), ErrorCode::INVALID_REQUEST, problem)
}

/// Builds an error message for the request with this id. The id is given as JSON text, and is omitted if it is neither
/// a string nor a number.
fn error_message(id: &str, code: ErrorCode, problem: &str) -> String {
    let id = if id.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
    {
        format!("\"id\":{id},")
    } else {
        String::new()
    };
    let error = json!({"code": code.0, "message": problem});
    format!("{{\"jsonrpc\":\"2.0\",{id}\"error\":{error}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_id_as_the_client_wrote_it() {
        for id in ["1.50", "12345678901234567890123", "\"a\\u0062\"", "-0"] {
            let line = format!("{{\"jsonrpc\":\"2.0\", \"id\" : {id} ,\"method\":7}}");
            let errors = LineRejection::of_line(line.as_bytes()).errors;
            assert_eq!(errors.len(), 1);
            assert!(errors[0].contains(&format!("\"id\":{id},")), "{errors:?}");
        }
        for id in ["null", "{}", "true"] {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
            let errors = LineRejection::of_line(line.as_bytes()).errors;
            assert!(errors[0].starts_with("{\"jsonrpc\":\"2.0\",\"error\""), "{errors:?}");
        }
    }
}
