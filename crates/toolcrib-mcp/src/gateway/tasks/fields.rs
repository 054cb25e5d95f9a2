//! The fields of a task in a server's result.
//!
//! The newer protocol and the older one write a task differently. Here they are read without the SDK's types, which
//! would drop unknown fields and know only the newer form.

use std::time::Duration;

use serde_json::{Map, Value};
use toolcrib_text::shorten;

use crate::hidden_text::{clean_value, has_invisible_chars};

/// Maximum length of a server's id of a task, in bytes.
pub(super) const MAX_ID_BYTES: usize = 1_024;
/// Maximum length of a status message that is sent to the client as progress, in characters.
const MAX_MESSAGE_CHARS: usize = 1_000;
/// The time between two polls if the server specifies none, and the shortest and the longest time that it can specify.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_mins(1);
/// The key of `_meta` with which the older protocol names the task that a result belongs to.
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// How a server writes tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum TaskForm {
    /// As in the extension of the newer protocol. `tasks/get` also returns the result.
    Extension,
    /// As in version 2025-11-25. The result is fetched with `tasks/result`.
    Older,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    fn read(name: &str) -> Option<Self> {
        Some(match name {
            "working" => Self::Working,
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    /// Whether the task has ended.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task as a server describes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskFields {
    pub(super) id: String,
    pub(super) status: TaskStatus,
    pub(super) poll_interval: Duration,
    /// How long the server keeps the task. `None` means without limit.
    pub(super) ttl: Option<Duration>,
    /// What changes while the server works on the task.
    pub(super) activity: Activity,
    /// What the server says about the state, cut at [`MAX_MESSAGE_CHARS`].
    pub(super) message: Option<String>,
}

/// What shows that the server is working on a task. The fields themselves are not kept, because they may be large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Activity(blake3::Hash);

impl Activity {
    fn new(updated_at: Option<&str>, message: Option<&str>) -> Self {
        let fields = Value::from_iter([updated_at, message]);
        Self(blake3::hash(fields.to_string().as_bytes()))
    }
}

/// Returns the form and the fields of the task in a call's result, if the server answered the call with a task.
pub(in crate::gateway) fn created_task(result: &Value) -> Option<(TaskForm, &Map<String, Value>)> {
    let fields = result.as_object()?;
    if fields.get("resultType").is_some_and(|kind| kind == "task") {
        return Some((TaskForm::Extension, fields));
    }
    // A result of a tool may have any other fields too, so this is a task only if it cannot be such a result.
    let task = fields.get("task").filter(|_| !fields.contains_key("content"))?.as_object()?;
    task.contains_key("taskId").then_some((TaskForm::Older, task))
}

impl TaskFields {
    /// Reads the fields of a task. The error completes the sentence "its task …".
    pub(super) fn read(form: TaskForm, fields: &Map<String, Value>) -> Result<Self, &'static str> {
        let (ttl, poll_interval) = match form {
            TaskForm::Extension => ("ttlMs", "pollIntervalMs"),
            TaskForm::Older => ("ttl", "pollInterval"),
        };
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let millis = |key| fields.get(key).and_then(Value::as_u64).map(Duration::from_millis);
        let id = text("taskId").filter(|id| !id.is_empty() && !has_invisible_chars(id));
        let id = id.filter(|id| id.len() <= MAX_ID_BYTES).ok_or("has no valid id")?;
        let status = text("status").and_then(TaskStatus::read).ok_or("has no valid status")?;
        let message = text("statusMessage");
        let activity = Activity::new(text("lastUpdatedAt"), message);
        let message = message.map(|message| shorten(message, MAX_MESSAGE_CHARS).into_owned());
        let poll_interval = millis(poll_interval).unwrap_or(DEFAULT_POLL_INTERVAL);
        let poll_interval = poll_interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        Ok(Self { id: id.to_owned(), status, poll_interval, ttl: millis(ttl), activity, message })
    }
}

/// Removes what names the task from a call's result, because its client does not know the task.
pub(super) fn without_related_task(mut result: Value) -> Value {
    if let Some(fields) = result.as_object_mut()
        && let Some(meta) = fields.get_mut("_meta").and_then(Value::as_object_mut)
        && meta.shift_remove(RELATED_TASK_KEY).is_some()
        && meta.is_empty()
    {
        fields.shift_remove("_meta");
    }
    result
}

/// Prepares a server's description of a task for a client: it names the task by the gateway's id, and promises to keep
/// the task only for as long as the gateway does. Hidden characters are removed from the texts about the task.
pub(super) fn prepare_for_client(result: &mut Value, id: &str, max_ttl: Duration) {
    let Some(fields) = result.as_object_mut() else { return };
    fields.insert("taskId".into(), id.into());
    let max_ttl = u64::try_from(max_ttl.as_millis()).unwrap_or(u64::MAX);
    let ttl = fields.get("ttlMs").and_then(Value::as_u64);
    if ttl.is_none_or(|ttl| ttl > max_ttl) {
        fields.insert("ttlMs".into(), max_ttl.into());
    }
    for key in ["statusMessage", "error"] {
        fields.get_mut(key).map(clean_value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(form: TaskForm, fields: &Value) -> Result<TaskFields, &'static str> {
        TaskFields::read(form, fields.as_object().unwrap())
    }

    #[test]
    fn a_task_is_recognised_in_both_forms_and_a_result_is_not() {
        let form = |result: Value| created_task(&result).map(|(form, _)| form);
        let task = json!({"taskId": "1", "status": "working"});
        assert_eq!(form(json!({"resultType": "task", "taskId": "1"})), Some(TaskForm::Extension));
        assert_eq!(form(json!({"task": task})), Some(TaskForm::Older));
        assert_eq!(form(json!({"content": [], "task": task})), None);
        assert_eq!(form(json!({"content": [], "resultType": "complete"})), None);
        assert_eq!(form(json!({"task": "clean up"})), None);
    }

    #[test]
    fn the_time_between_polls_has_bounds() {
        let interval = |interval: Value| {
            let fields = json!({"taskId": "1", "status": "working", "pollIntervalMs": interval});
            read(TaskForm::Extension, &fields).unwrap().poll_interval.as_millis()
        };
        for (specified, used) in
            [(0, 100), (100, 100), (101, 101), (60_000, 60_000), (60_001, 60_000)]
        {
            assert_eq!(interval(specified.into()), used);
        }
        assert_eq!(interval(json!(-1)), 1_000);
        assert_eq!(interval(json!("soon")), 1_000);
    }

    #[test]
    fn a_long_message_is_cut_but_every_change_of_it_is_noticed() {
        let state = |message: &str, at: &str| {
            let fields = json!({"taskId": "1", "status": "working", "statusMessage": message, "lastUpdatedAt": at});
            read(TaskForm::Extension, &fields).unwrap()
        };
        let long = "x".repeat(10_000);
        let before = state(&format!("{long}a"), "1");
        assert_eq!(before.message.as_deref().map(str::len), Some(1_000 + "…".len() - 1));
        assert_eq!(state(&format!("{long}a"), "1").activity, before.activity);
        assert_ne!(state(&format!("{long}b"), "1").activity, before.activity);
        assert_ne!(state(&format!("{long}a"), "2").activity, before.activity);
    }

    #[test]
    fn an_id_has_a_maximum_length_and_no_invisible_characters() {
        let has_id = |id: &str| {
            read(TaskForm::Older, &json!({"taskId": id, "status": "working"})).map(|task| task.id)
        };
        let longest = "x".repeat(MAX_ID_BYTES);
        assert_eq!(has_id(&longest), Ok(longest.clone()));
        for id in [&*format!("{longest}x"), "", "a\u{200b}b"] {
            assert_eq!(has_id(id), Err("has no valid id"));
        }
        let status = read(TaskForm::Older, &json!({"taskId": "1", "status": "resting"}));
        assert_eq!(status, Err("has no valid status"));
    }

    #[test]
    fn a_client_sees_the_gateways_id_and_a_time_that_the_gateway_can_keep() {
        let hour = Duration::from_hours(1);
        for (ttl, shown) in [(json!(null), 3_600_000), (json!(3_600_001), 3_600_000), (json!(5), 5)]
        {
            let mut task =
                json!({"x": 1, "taskId": "1", "statusMessage": "a\u{200b}b", "ttlMs": ttl});
            prepare_for_client(&mut task, "ours", hour);
            let expected = r#"{"x":1,"taskId":"ours","statusMessage":"ab","ttlMs":"#;
            assert_eq!(task.to_string(), format!("{expected}{shown}}}"));
        }
    }
}
