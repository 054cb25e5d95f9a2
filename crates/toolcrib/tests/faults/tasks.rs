//! Tests of clients that support tasks: they get the tasks of servers, and can use them.

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era};
use crate::task_environment::{over_both, task_script, with_tasks};

/// Switches deferral off.
const IN_FULL: &str = "[activation]\nmode = \"off\"";

#[test]
fn a_task_is_passed_on_and_can_be_used() {
    for mode in ["off", "on"] {
        let environment = TestEnvironment::new(&format!("task-{mode}"))
            .fixture("fixture", "")
            .with(&format!("[activation]\nmode = \"{mode}\""));
        for connected in with_tasks(&environment) {
            let client = connected.client;
            let discovered = client.ask("server/discover", json!({}));
            let extensions = &discovered["capabilities"]["extensions"];
            assert_eq!(*extensions, json!({"io.modelcontextprotocol/tasks": {}}), "{discovered}");

            let created = client.call("fixture__slow_compute", json!({"seconds": 0.5}));
            let id = created["taskId"].as_str().unwrap().to_owned();
            assert!(id.starts_with("toolcrib-") && id.len() > 40, "{created}");
            assert_eq!(created["resultType"], "task");
            assert_eq!(created["pollIntervalMs"], 100);
            assert_eq!(created["ttlMs"], 60_000);
            let done = client.wait_for_status(&id, "completed");
            assert_eq!(done["taskId"], *id);
            assert_eq!(done["resultType"], "complete");
            assert_eq!(done["result"]["content"][0]["text"], "It is done.");

            let bridged =
                json!({"name": "fixture__confirm_delete", "arguments": {"filename": "a"}});
            let tool = if mode == "on" { "tool_call" } else { "fixture__confirm_delete" };
            let arguments = if mode == "on" { bridged } else { bridged["arguments"].clone() };
            let id = client.start(tool, arguments);
            let asks = client.wait_for_status(&id, "input_required");
            let message = &asks["inputRequests"]["confirm"]["params"]["message"];
            assert_eq!(*message, "[server \"fixture\"] Delete it?");
            let answer = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
            let ack = client.ask("tasks/update", json!({"taskId": id, "inputResponses": answer}));
            assert_eq!(ack, json!({"resultType": "complete"}));
            let done = client.wait_for_status(&id, "completed");
            assert_eq!(done["result"]["content"][0]["text"], "a is deleted.");

            let id = client.start("fixture__slow_compute", json!({"seconds": 3600}));
            assert_eq!(client.about("tasks/cancel", &id), json!({"resultType": "complete"}));
            assert_eq!(client.about("tasks/get", &id)["status"], "cancelled");
            let id = client.start("fixture__protocol_error_job", json!({}));
            let failed = client.wait_for_status(&id, "failed");
            assert_eq!(failed["error"]["message"], "The job is broken.");
        }
    }
}

/// Fields that the SDK does not know are kept, and so is a task that the SDK cannot parse.
#[test]
fn unknown_fields_of_a_task_are_kept() {
    let state = json!({
        "resultType": "complete", "taskId": "1", "status": "working", "x-depth": {"m": 2.50},
    });
    let script = task_script(json!({ "tasks/get": state }));
    let environment =
        TestEnvironment::new("task-fields").scripted("digger", &script, "").with(IN_FULL);
    for connected in with_tasks(&environment) {
        let id = connected.client.start("digger__job", json!({}));
        let task = connected.client.about("tasks/get", &id);
        assert_eq!((&task["x-depth"], &task["taskId"]), (&json!({"m": 2.5}), &json!(id)), "{task}");
    }
}

#[test]
fn a_client_without_tasks_cannot_use_the_methods() {
    let environment = TestEnvironment::new("task-methods").fixture("fixture", "").with(IN_FULL);
    for era in ERAS {
        for connected in over_both(&environment, era) {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = json!({"taskId": "1", "inputResponses": {}});
                let error = connected.client.ask(method, params)["error"].clone();
                if era == Era::Newer {
                    let required = &error["data"]["requiredCapabilities"]["extensions"];
                    assert_eq!(error["code"], -32021, "{error}");
                    assert_eq!(*required, json!({"io.modelcontextprotocol/tasks": {}}));
                } else {
                    // Over HTTP the SDK itself rejects the request, because of the missing capability.
                    let code = error["code"].as_i64().unwrap();
                    assert!([-32601, -32021].contains(&code), "{error}");
                }
            }
            for method in ["tasks/list", "tasks/result"] {
                let error = connected.client.ask(method, json!({"taskId": "1"}))["error"].clone();
                assert_eq!(error["code"], -32601, "{error}");
            }
        }
    }
}

/// A server that has a task is not stopped as idle. Another server, which was used later, is.
#[test]
fn a_server_runs_until_its_tasks_are_over() {
    let environment = TestEnvironment::new("task-idle")
        .scripted("digger", &task_script(json!({})), "idle = 0.2")
        .faulty_with("other", &[], "idle = 0.2")
        .with(IN_FULL);
    for connected in with_tasks(&environment) {
        let client = connected.client;
        let id = client.start("digger__job", json!({}));
        let exits = |server: &str| count(&environment.log(server), "exit");
        let before = (exits("digger"), exits("other"));
        client.call("other__echo", json!({}));
        until_true("the other server is stopped", || exits("other") > before.1);
        assert_eq!(exits("digger"), before.0);
        assert_eq!(client.about("tasks/get", &id)["status"], "working");
    }
}
