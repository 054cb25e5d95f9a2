//! Servers with tasks, and clients that support them.

use serde_json::{Value, json};

use crate::environment::{HttpGateway, TestEnvironment};
use crate::probe::{until, until_true};
use crate::raw_client::{Era, RawClient};

/// A client of the newer protocol that supports tasks.
pub(crate) struct TaskClient(pub(crate) RawClient);

impl TaskClient {
    pub(crate) fn ask(&self, method: &str, mut params: Value) -> Value {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        self.0.ask(method, params)
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool that runs as a task. Returns the id of the task.
    pub(crate) fn start(&self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["resultType"], "task", "{answer}");
        answer["taskId"].as_str().unwrap().to_owned()
    }

    /// Sends `tasks/get`, `tasks/update` or `tasks/cancel`.
    pub(crate) fn about(&self, method: &str, id: &str) -> Value {
        self.ask(method, json!({"taskId": id, "inputResponses": {}}))
    }

    /// Waits until a task has this status.
    pub(crate) fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let task = || Some(self.about("tasks/get", id)).filter(|task| task["status"] == status);
        until(status, task).0
    }
}

/// A gateway over stdio or HTTP, and a client of it.
pub(crate) struct Connected<C> {
    pub(crate) client: C,
    /// The gateway, if it is not the client's own child process. It runs until this is dropped.
    gateway: Option<HttpGateway>,
}

/// Connects a client over each transport in turn, to a gateway of its own.
pub(crate) fn over_both(
    environment: &TestEnvironment,
    era: Era,
) -> impl Iterator<Item = Connected<RawClient>> {
    [false, true].into_iter().map(move |is_http| {
        if !is_http {
            return Connected { client: ready(environment.stdio(era)), gateway: None };
        }
        let gateway = environment.serve();
        Connected { client: ready(gateway.peer(era)), gateway: Some(gateway) }
    })
}

/// Waits until the gateway knows the tools of its servers.
pub(crate) fn ready(client: RawClient) -> RawClient {
    until_true("the servers are up", || {
        let names = client.names();
        let defers = names.contains(&"tool_search".to_owned());
        !names.is_empty() && (!defers || client.search("").get("connecting").is_none())
    });
    client
}

/// Like [`over_both`], with a client that supports tasks.
pub(crate) fn with_tasks(
    environment: &TestEnvironment,
) -> impl Iterator<Item = Connected<TaskClient>> {
    over_both(environment, Era::Newer)
        .map(|Connected { client, gateway }| Connected { client: TaskClient(client), gateway })
}

/// Returns a script of a server of the newer protocol that answers every call of its tool `job` with the task `1`. The
/// answers about the task are in `methods`. Without any, the task never ends, and its log has the line
/// `hang tasks/cancel` for each cancellation.
pub(crate) fn task_script(methods: Value) -> Value {
    let task = json!({
        "resultType": "task",
        "taskId": "1",
        "status": "working",
        "statusMessage": "Digging.",
        "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "ttlMs": null,
        "pollIntervalMs": 100,
    });
    let mut state = task.clone();
    state["resultType"] = "complete".into();
    let mut answers = json!({
        "server/discover": {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            "serverInfo": {"name": "digger", "version": "1"},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "digger", "version": "1"}},
            "ttlMs": 0,
            "cacheScope": "private",
        },
        "tasks/get": state,
        "tasks/cancel": null,
    });
    for (method, answer) in methods.as_object().unwrap() {
        answers[method] = answer.clone();
    }
    json!({"methods": answers, "tools": {"job": [{"result": task}]}})
}

/// Returns a script of a server of the older protocol, whose tool `job` must run as a task. The tool has further steps
/// after it has answered with the task. Each state that the server reports is the same.
pub(crate) fn older_task_script(steps: Value) -> Value {
    let task = json!({
        "taskId": "1",
        "status": "working",
        "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "ttl": 3_600_000,
        "pollInterval": 100,
    });
    let mut job = vec![json!({"result": {"task": task}})];
    job.extend(steps.as_array().unwrap().iter().cloned());
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}},
        "methods": {"tasks/get": task, "tasks/cancel": task},
        "tools": {"job": job, "hang": []},
        "definitions": {"job": {"execution": {"taskSupport": "required"}}},
    })
}
