//! Tests of the ids of tasks: who can use one, how many there are, and what happens to one when its server is gone.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, last_start, lines, signal, until_true};
use crate::raw_client::Era;
use crate::task_environment::{TaskClient, ready, task_script, with_tasks};

const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];
const IN_FULL: &str = "[activation]\nmode = \"off\"";

/// Returns the error for an id that never existed.
fn unknown(client: &TaskClient, method: &str) -> Value {
    let error = client.about(method, &format!("toolcrib-{}", "0".repeat(32)));
    assert_eq!(error["error"]["code"], -32602, "{error}");
    error
}

/// For a client, another client's task is like one that never existed.
#[test]
fn another_clients_task_does_not_exist() {
    let environment = TestEnvironment::new("task-owners")
        .scripted("digger", &with_second_job(task_script(json!({}))), "share = 'all'")
        .with(IN_FULL)
        .with("[profiles.one]\n[profiles.two]\n[profiles.none]\nservers = ['other']");
    let gateway = environment.serve();
    let client = |profile| TaskClient(ready(gateway.peer_as(Era::Newer, profile)));
    let none = TaskClient(gateway.peer_as(Era::Newer, "none"));
    let (one, two) = (client("one"), client("two"));
    let (of_one, of_two) =
        (one.start("digger__job", json!({})), two.start("digger__second", json!({})));
    assert_ne!(of_one, of_two);
    for method in METHODS {
        for (stranger, id) in [(&two, &of_one), (&one, &of_two), (&none, &of_one)] {
            assert_eq!(stranger.about(method, id), unknown(stranger, method));
        }
        // The server's own id, and the gateway's id with other letters, are not ids of tasks either.
        assert_eq!(one.about(method, "1"), unknown(&one, method));
        assert_eq!(one.about(method, &of_one.to_uppercase()), unknown(&one, method));
    }
    assert_eq!(count(&environment.log("digger"), "hang tasks/cancel"), 0);
    assert_eq!(one.about("tasks/get", &of_one)["status"], "working");
    assert_eq!(two.about("tasks/get", &of_two)["status"], "working");
}

/// Adds a tool `second`, which answers with the task `2`.
fn with_second_job(mut script: Value) -> Value {
    let mut answer = script["tools"]["job"].clone();
    answer[0]["result"]["taskId"] = "2".into();
    script["tools"]["second"] = answer;
    script
}

/// A server that gives an id again no longer has the earlier task, for example because it was restarted. The owner of
/// the earlier task must not be able to use the later one.
#[test]
fn a_task_does_not_lead_to_a_later_task_with_the_same_id() {
    let environment = TestEnvironment::new("task-again")
        .scripted("digger", &task_script(json!({})), "share = 'all'")
        .with(IN_FULL)
        .with("[profiles.one]\n[profiles.two]");
    let gateway = environment.serve();
    let client = |profile| TaskClient(ready(gateway.peer_as(Era::Newer, profile)));
    let (one, two) = (client("one"), client("two"));
    let earlier = one.start("digger__job", json!({}));
    let later = two.start("digger__job", json!({}));
    for method in METHODS {
        assert_eq!(one.about(method, &earlier), unknown(&one, method));
    }
    assert_eq!(two.about("tasks/get", &later)["status"], "working");
    assert_eq!(count(&environment.log("digger"), "hang tasks/cancel"), 0, "the later one goes on");
}

/// A client of another name cannot use a task, either.
#[test]
fn a_task_belongs_to_the_client_that_called() {
    let environment = TestEnvironment::new("task-names")
        .scripted("digger", &task_script(json!({})), "")
        .with(IN_FULL);
    let gateway = environment.serve();
    let client = TaskClient(ready(gateway.peer(Era::Newer)));
    let id = client.start("digger__job", json!({}));
    let named = |name: &str| {
        let info = json!({"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}});
        client.ask("tasks/get", json!({"taskId": id, "_meta": info}))
    };
    assert_eq!(named("faults")["status"], "working");
    assert_eq!(named("other"), unknown(&client, "tasks/get"));
}

/// A reload that hides the tool also hides its tasks.
#[test]
fn a_task_of_a_hidden_tool_does_not_exist() {
    let environment = TestEnvironment::new("task-hidden")
        .scripted("digger", &task_script(json!({})), "")
        .with(IN_FULL)
        .with("[gateway]\nprofile = 'mine'\n[profiles.mine]");
    let gateway = environment.serve();
    let client = TaskClient(ready(gateway.peer(Era::Newer)));
    let id = client.start("digger__job", json!({}));
    environment.write(&format!("{}deny = ['digger/job']\n", environment.text()));
    until_true("the tool is hidden", || client.0.names().is_empty());
    assert_eq!(client.about("tasks/get", &id), unknown(&client, "tasks/get"));
}

/// The server is killed while a task runs. Its next process gives the same id to another task, so the first one must
/// not lead there.
#[test]
fn a_task_does_not_lead_to_the_next_process_of_its_server() {
    let environment = TestEnvironment::new("task-kill")
        .scripted("digger", &task_script(json!({})), "")
        .with(IN_FULL);
    for connected in with_tasks(&environment) {
        let client = connected.client;
        let id = client.start("digger__job", json!({}));
        let log = environment.log("digger");
        let starts = count(&log, "start");
        signal(last_start(&log).unwrap(), "-KILL");
        until_true("the server is started again", || count(&log, "start") > starts);
        let mut next = String::new();
        until_true("it answers", || {
            let answer = client.call("digger__job", json!({}));
            next = answer["taskId"].as_str().unwrap_or_default().to_owned();
            answer["resultType"] == "task"
        });
        let lost = client.about("tasks/get", &id);
        assert_eq!(lost["error"]["code"], -32602, "{lost}");
        let message = lost["error"]["message"].as_str().unwrap();
        assert!(message.contains("`digger` was restarted"), "{message}");
        assert!(message.ends_with("the task may still run"), "{message}");
        assert_eq!(
            client.about("tasks/get", &id),
            unknown(&client, "tasks/get"),
            "the second time"
        );
        assert_eq!(client.about("tasks/get", &next)["status"], "working");
    }
}

/// At the maximum, tasks that are over are dropped, and for further tasks the gateway itself waits.
#[test]
fn the_number_of_tasks_is_limited() {
    for (limit, own) in [("tasks_per_client = 2", true), ("tasks = 2", false)] {
        let environment = TestEnvironment::new(&format!("task-limit-{own}"))
            .fixture("fixture", "")
            .with(IN_FULL)
            .with(&format!("[profiles.one]\n[profiles.two]\n[gateway.limits]\n{limit}"));
        let gateway = environment.serve();
        let client = |profile| TaskClient(ready(gateway.peer_as(Era::Newer, profile)));
        let (one, two) = (client("one"), client("two"));
        let long = json!({"seconds": 3600});
        let first = one.start("fixture__slow_compute", long.clone());
        let second = one.start("fixture__slow_compute", long);
        let waited = one.call("fixture__slow_compute", json!({"seconds": 0.2}));
        assert_eq!(waited["content"][0]["text"], "It is done.", "{waited}");
        let of_two = two.call("fixture__slow_compute", json!({"seconds": 0.2}));
        assert_eq!(of_two["resultType"] == "task", own, "{of_two}");
        one.about("tasks/cancel", &first);
        assert_eq!(one.about("tasks/get", &first)["status"], "cancelled");
        let third = one.start("fixture__slow_compute", json!({"seconds": 0.2}));
        assert_eq!(one.about("tasks/get", &first), unknown(&one, "tasks/get"));
        assert_eq!(one.about("tasks/get", &second)["status"], "working");
        one.wait_for_status(&third, "completed");
    }
}

/// A cancelled task may be dropped for a new one, even if the client never asks for its state again.
#[test]
fn a_cancelled_task_makes_room_for_another() {
    let environment = TestEnvironment::new("task-room")
        .fixture("fixture", "")
        .with(IN_FULL)
        .with("[gateway.limits]\ntasks_per_client = 1");
    let client = TaskClient(ready(environment.stdio(Era::Newer)));
    let first = client.start("fixture__slow_compute", json!({"seconds": 3600}));
    client.about("tasks/cancel", &first);
    client.start("fixture__slow_compute", json!({"seconds": 3600}));
}

/// A client over stdio cannot come back, so its tasks are cancelled when it disconnects.
#[test]
fn the_tasks_of_a_disconnected_client_are_cancelled() {
    let environment = TestEnvironment::new("task-end")
        .scripted("digger", &task_script(json!({})), "")
        .with(IN_FULL);
    let client = TaskClient(ready(environment.stdio(Era::Newer)));
    let id = client.start("digger__job", json!({}));
    assert_eq!(client.about("tasks/get", &id)["status"], "working");
    client.0.close();
    until_true("the task is cancelled", || {
        lines(&environment.log("digger"), "hang tasks/cancel").len() == 1
    });
}
