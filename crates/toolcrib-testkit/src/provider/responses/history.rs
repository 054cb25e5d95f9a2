//! Responses that `previous_response_id` may name. The provider stores no other part of a conversation.

use parking_lot::Mutex;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::provider::dialect::{ApiError, list};

/// The input and output items of stored responses, by response id.
#[derive(Default)]
pub(crate) struct History {
    items: Mutex<HashMap<String, Vec<Value>>>,
}

impl History {
    /// Returns the request with the items of the previous response inserted at the start of `input`. Fails if the
    /// request names a previous response that is not stored.
    pub(crate) fn expand(&self, mut request: Value) -> Result<Value, ApiError> {
        let own = match &request["input"] {
            Value::String(text) => vec![json!({"role": "user", "content": text})],
            other => list(other).to_vec(),
        };
        let mut input = match request["previous_response_id"].as_str() {
            Some(id) => {
                let items = self.items.lock();
                items.get(id).cloned().ok_or_else(|| ApiError {
                    status: 400,
                    message: format!("Previous response with id '{id}' not found."),
                })?
            }
            None => Vec::new(),
        };
        input.extend(own);
        if request.is_object() {
            request["input"] = input.into();
        }
        Ok(request)
    }

    /// Stores the input and output items of a response, unless the request has `store: false`.
    pub(crate) fn keep(&self, request: &Value, id: &str, output: &[Value]) {
        if request["store"] == false {
            return;
        }
        let mut items = list(&request["input"]).to_vec();
        items.extend(output.iter().cloned());
        self.items.lock().insert(id.to_owned(), items);
    }
}
