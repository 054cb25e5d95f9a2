//! Maximum sizes of the progress and log messages that are forwarded to a client.
//!
//! Over HTTP the SDK keeps the last messages of each stream, so that a client can read them again after a disconnect. A
//! server could make each of them megabytes long. Therefore long texts are truncated, with a note at the end, and other
//! large fields are removed.

use rmcp::model::{LoggingMessageNotificationParam, NotificationMetaObject};
use serde_json::{Map, Value};

use crate::hidden_text::loggable_name;
use crate::upstream::memory_of;

/// Maximum size of a message's text, of its data and of its `_meta`, each in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Truncates the message of a progress notification, and removes other fields that are too large.
pub(super) fn limit_progress(fields: &mut Map<String, Value>) {
    if let Some(Value::String(message)) = fields.get_mut("message") {
        cut(message);
    }
    fields.retain(|key, value| key == "message" || memory_of(value) <= MAX_BYTES);
}

/// Truncates the data of a log message. Large data that is not a string is replaced by the beginning of its JSON.
pub(super) fn limit_log(log: &mut LoggingMessageNotificationParam) {
    log.logger = log.logger.take().map(|logger| loggable_name(&logger));
    let fits = |meta: &NotificationMetaObject| {
        serde_json::to_value(meta).is_ok_and(|meta| memory_of(&meta) <= MAX_BYTES)
    };
    log.meta = log.meta.take().filter(fits);
    if memory_of(&log.data) <= MAX_BYTES {
        return;
    }
    let mut text = match log.data.take() {
        Value::String(text) => text,
        data => data.to_string(),
    };
    cut(&mut text);
    log.data = Value::String(text);
}

/// Truncates a text that is too long, and adds a note about this at its end.
fn cut(text: &mut String) {
    let bytes = text.len();
    if bytes > MAX_BYTES {
        // This creates a new string, because truncating the old string would not free its memory.
        *text = format!("{}… [cut: {bytes} bytes]", &text[..text.floor_char_boundary(MAX_BYTES)]);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::LoggingLevel;
    use serde_json::json;

    use super::*;

    #[test]
    fn short_messages_are_not_changed() {
        let progress =
            json!({"progress": 1, "message": "é".repeat(MAX_BYTES / 2), "_meta": {"a": 1}});
        let mut limited = progress.clone();
        limit_progress(limited.as_object_mut().unwrap());
        assert_eq!(limited, progress);
        let mut log =
            LoggingMessageNotificationParam::new(LoggingLevel::Info, json!({"a": [1, 2]}));
        let before = log.clone();
        limit_log(&mut log);
        assert_eq!(log, before);
    }

    #[test]
    fn long_messages_are_visibly_cut() {
        let long = "é".repeat(MAX_BYTES);
        let mut progress = json!({"progress": 1, "message": format!("x{long}"), "_meta": {"a": long}, "x": vec![0; MAX_BYTES]});
        limit_progress(progress.as_object_mut().unwrap());
        let message = progress["message"].as_str().unwrap();
        assert!(message.starts_with("xé") && message.ends_with("é… [cut: 131073 bytes]"));
        assert!(message.len() < MAX_BYTES + 100, "{}", message.len());
        assert_eq!(progress.as_object().unwrap().len(), 2, "the rest is left out");

        let data = json!({"text": long});
        let mut log = LoggingMessageNotificationParam::new(LoggingLevel::Info, data);
        log.logger = Some(long.clone());
        limit_log(&mut log);
        let data = log.data.as_str().unwrap();
        assert!(
            data.starts_with(r#"{"text":"é"#) && data.ends_with("[cut: 131083 bytes]"),
            "{}",
            &data[..20]
        );
        assert!(data.len() < MAX_BYTES + 100 && log.logger.unwrap().chars().count() <= 80);
    }
}
