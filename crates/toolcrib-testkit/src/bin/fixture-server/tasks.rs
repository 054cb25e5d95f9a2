//! Tools that run as tasks (the extension `io.modelcontextprotocol/tasks`), and the tasks themselves.
//!
//! Nothing runs in the background: the state of a task follows from its tool, its age and the answers that it got. The
//! ids are numbers that start again with each process, as in servers that keep tasks only in memory. So two processes
//! give the same id to different tasks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, DetailedTask, GetTaskResult, InputRequiredResult, InputResponses, JsonObject,
    Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::definition::{Definition, one_text};

pub(crate) const TOOLS: &[Definition] = &[
    Definition::taking("greet", "Greets somebody, without a task.", || {
        one_text("name", "Whom to greet.")
    }),
    Definition::taking(
        "slow_compute",
        "Takes some seconds.",
        || json!({"type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}}),
    ),
    Definition::plain("failing_job", "Fails, and runs only as a task."),
    Definition::plain("protocol_error_job", "Ends with a protocol error, and runs only as a task."),
    Definition::taking("confirm_delete", "Asks for a confirmation.", || {
        one_text("filename", "What to delete.")
    }),
    Definition::plain("multi_input", "Asks two things at once."),
    Definition::plain("test_tool_with_task", "Asks for a name, and then greets it in a task."),
    Definition::plain("test_task_statuses", "Returns the status of each task."),
];

/// How long a task works that has nothing to do. Long enough for a client to see the task at work.
const SHORT_WORK: Duration = Duration::from_millis(300);
/// The time between two polls that is recommended to clients, in milliseconds.
const POLL_INTERVAL_MS: u64 = 100;
const TTL_MS: u64 = 60_000;
/// The timestamps of every task. They are fixed, so that responses are the same on every run.
const TIMESTAMP: &str = "2026-07-28T00:00:00Z";

/// All tasks of this process.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<BTreeMap<u64, Job>>);

/// A task.
struct Job {
    tool: String,
    work: Duration,
    /// The text of the result.
    text: String,
    started: Instant,
    is_cancelled: bool,
    answers: InputResponses,
}

type Context = RequestContext<RoleServer>;

fn supports_tasks(context: &Context) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn text_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}

fn form(message: &str, field: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": {
            "type": "object",
            "properties": {field: {"type": if field == "name" { "string" } else { "boolean" }}},
        }},
    })
}

impl Tasks {
    /// Runs one of the tools in [`TOOLS`]. Returns `None` for any other name.
    pub(crate) async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let name = request.name.as_ref();
        match name {
            "greet" => {
                let whom = arguments["name"].as_str().unwrap_or_default();
                return Some(Ok(text_result(format!("Hello, {whom}!")).into()));
            }
            "test_task_statuses" => {
                return Some(Ok(CallToolResult::structured(self.statuses()).into()));
            }
            _ if !TOOLS.iter().any(|tool| tool.name == name) => return None,
            _ => {}
        }
        let seconds = arguments.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        let work =
            if name == "slow_compute" { Duration::from_secs_f64(seconds) } else { SHORT_WORK };
        if name == "slow_compute" && (work.is_zero() || !supports_tasks(context)) {
            tokio::time::sleep(work).await;
            return Some(Ok(text_result("It is done.").into()));
        }
        if !supports_tasks(context) {
            let required = ClientCapabilities::builder().enable_tasks().build();
            return Some(Err(ErrorData::missing_required_client_capability(required)));
        }
        let mut text = "It is done.".to_owned();
        if name == "test_tool_with_task" {
            let answers = request.input_responses.as_ref();
            let user =
                answers.and_then(|answers| answers.get("user_name")?.pointer("/content/name"));
            let Some(user) = user else {
                let questions = json!({"user_name": form("Who are you?", "name")});
                let questions = serde_json::from_value(questions).ok();
                return Some(Ok(InputRequiredResult::new(questions, None).into()));
            };
            text = format!("Hello, {}!", user.as_str().unwrap_or_default());
        }
        Some(Ok(self.start(name, work, text, &arguments).into()))
    }

    fn start(
        &self,
        tool: &str,
        work: Duration,
        text: String,
        arguments: &JsonObject,
    ) -> CreateTaskResult {
        let mut jobs = self.0.lock();
        let id = jobs.len() as u64 + 1;
        let text = match arguments.get("filename").and_then(Value::as_str) {
            Some(file) => format!("{file} is deleted."),
            None => text,
        };
        let job = Job {
            tool: tool.to_owned(),
            work,
            text,
            started: Instant::now(),
            is_cancelled: false,
            answers: InputResponses::new(),
        };
        let task = task(id, TaskStatus::Working);
        jobs.insert(id, job);
        CreateTaskResult::new(task)
    }

    fn with<T>(&self, id: &str, use_job: impl FnOnce(u64, &mut Job) -> T) -> Result<T, ErrorData> {
        let mut jobs = self.0.lock();
        let found = id.parse().ok().and_then(|id| Some((id, jobs.get_mut(&id)?)));
        let (id, job) = found
            .ok_or_else(|| ErrorData::invalid_params(format!("unknown task: `{id}`"), None))?;
        Ok(use_job(id, job))
    }

    pub(crate) fn get(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        self.with(id, |id, job| {
            let payload = job.payload();
            GetTaskResult::new(DetailedTask::new(task(id, payload.status()), payload))
        })
    }

    pub(crate) fn update(&self, id: &str, answers: InputResponses) -> Result<(), ErrorData> {
        self.with(id, |_, job| job.answers.extend(answers))
    }

    pub(crate) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.with(id, |_, job| {
            let is_final = |status| {
                matches!(status, TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled)
            };
            job.is_cancelled |= !is_final(job.payload().status());
        })
    }

    fn statuses(&self) -> Value {
        let jobs = self.0.lock();
        let status = |(id, job): (&u64, &Job)| (id.to_string(), json!(job.payload().status()));
        Value::Object(jobs.iter().map(status).collect())
    }
}

fn task(id: u64, status: TaskStatus) -> Task {
    Task::new(id.to_string(), status, TIMESTAMP, TIMESTAMP)
        .with_status_message("The task is at work.")
        .with_ttl_ms(TTL_MS)
        .with_poll_interval_ms(POLL_INTERVAL_MS)
}

impl Job {
    fn payload(&self) -> TaskPayload {
        let asked = match &*self.tool {
            "confirm_delete" => vec![("confirm", form("Delete it?", "confirm"))],
            "multi_input" => vec![
                ("first", form("What is your name?", "name")),
                ("second", form("Is that right?", "confirm")),
            ],
            _ => Vec::new(),
        };
        let open = asked.into_iter().filter(|(key, _)| !self.answers.contains_key(*key));
        let open: serde_json::Map<String, Value> =
            open.map(|(key, question)| (key.to_owned(), question)).collect();
        if self.is_cancelled {
            return TaskPayload::Cancelled;
        }
        if !open.is_empty()
            && let Ok(input_requests) = serde_json::from_value(Value::Object(open))
        {
            return TaskPayload::InputRequired { input_requests };
        }
        if self.started.elapsed() < self.work {
            return TaskPayload::Working;
        }
        if self.tool == "protocol_error_job" {
            let error = json!({"code": -32603, "message": "The job is broken."});
            return TaskPayload::Failed { error: error.as_object().cloned().unwrap_or_default() };
        }
        let result = json!({
            "content": [{"type": "text", "text": self.text}],
            "isError": self.tool == "failing_job",
        });
        TaskPayload::Completed { result: result.as_object().cloned().unwrap_or_default() }
    }
}
