//! Tests that `list_changed` is sent if and only if the list that a session would get now differs from the list that it
//! last received.

use std::fs;

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{DEFERRED, Home, connect, late_server, server, wait_until_ready};
use crate::support::wire::Wire;
use crate::support::{eventually, testkit_program};

const CHANGED: &str = "notifications/tools/list_changed";

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn many() -> String {
    server(
        "many",
        &testkit_program("faulty-server", &["--tools", "30"]),
        "always_load = [\"tool_5\"]\n",
    )
}

fn silent() -> String {
    server(
        "silent",
        &testkit_program("faulty-server", &["--never-answer"]),
        "start_timeout = 600\n",
    )
}

/// Finds a tool by its name with `tool_search`. Messages that were received before are kept.
fn find(client: &mut Client, name: &str) {
    let query = json!({"query": format!("select:{name}")});
    let id = client.start("tools/call", json!({"name": "tool_search", "arguments": query}));
    let answer = client.finish(id);
    assert!(answer["result"]["content"].to_string().contains(name), "{answer}");
}

fn list(client: &mut Client) -> Vec<Value> {
    let id = client.start("tools/list", json!({}));
    serde_json::from_value(client.finish(id)["result"]["tools"].take()).unwrap()
}

/// Replaces the config and waits until it is in use.
fn reload(home: &Home, config: &str) {
    let used = || {
        let log = home.log();
        log.matches("the config changed and was reloaded").count()
    };
    let before = used();
    home.configure(config);
    eventually("the config in use", || (used() > before).then_some(()));
}

/// A session has found tools of a server, and then the server is removed with all its tools. While the server that
/// replaces it starts, the session must still have `tool_search`.
#[test]
fn the_gateways_own_tools_stay_while_a_server_starts() {
    for (preset, own_tools) in [("claude-code", 1), ("everruns", 1), ("everruns@0.50", 1)] {
        let config = |server: &str| format!("preset = \"{preset}\"\n{DEFERRED}{server}");
        let home = Home::new(&config(&many()));
        let mut client = home.stdio("test", Era::Older);
        eventually("the server", || (client.tools().len() > own_tools).then_some(()));
        find(&mut client, "many__tool_7");
        list(&mut client);
        let gateway = "[gateway]\nfirst_list_wait = 0\n";
        reload(&home, &config(&format!("{gateway}{}", silent())));
        let listed = eventually("the list without the server", || {
            Some(list(&mut client)).filter(|list| !names(list).contains(&"many__tool_5"))
        });
        assert_eq!(names(&listed), ["tool_search"], "{preset}");
    }
}

/// Checks the number of notifications. A surplus notification arrives before the next change is made, so the next check
/// would detect it.
#[test]
fn a_session_is_notified_once_of_each_change_and_of_nothing_else() {
    let config = |more: &str| format!("preset = \"claude-code\"\n{DEFERRED}{}{more}", many());
    let home = Home::new(&config(""));
    let mut client = home.stdio("test", Era::Older);
    eventually("the server", || {
        let query = json!({"query": "select:many__tool_3"});
        let found =
            client.result("tools/call", &json!({"name": "tool_search", "arguments": query}));
        found.to_string().contains("department 3").then_some(())
    });
    // This tool is found before the client requests its first list. That list already contains the tool, so nothing
    // must be announced.
    find(&mut client, "many__tool_4");
    let expected = ["many__tool_5", "tool_search", "many__tool_3", "many__tool_4"];
    assert_eq!(names(&list(&mut client)), expected);
    // These tools are already in the list, so finding them must not be announced.
    find(&mut client, "many__tool_5");
    find(&mut client, "many__tool_3");
    assert_eq!(client.messages(CHANGED), 0);
    find(&mut client, "many__tool_8");
    find(&mut client, "many__tool_8");
    // A disabled server must not change what this client sees, and neither must a server that has not answered yet.
    reload(&home, &config("[servers.off]\ncommand = \"none\"\nenabled = false\n"));
    let ready = home.path().join("ready");
    let more = testkit_program("faulty-server", &["--start-when", ready.to_str().unwrap()]);
    let more = server("more", &more, "start_timeout = 600\n");
    reload(&home, &config(&more));
    eventually("the new server", || {
        let query = json!({"query": "select:more__nothing"});
        let id = client.start("tools/call", json!({"name": "tool_search", "arguments": query}));
        client.finish(id).to_string().contains("connecting").then_some(())
    });
    client.wait_for_message(CHANGED);
    assert_eq!(client.messages(CHANGED), 0, "only one notification for the found tools");
    fs::write(&ready, "").unwrap();
    client.wait_for_message(CHANGED);
    let listed = list(&mut client);
    assert!(listed[1]["description"].as_str().unwrap().contains("more__echo"), "{listed:?}");
    find(&mut client, "many__tool_9");
    client.wait_for_message(CHANGED);
    assert_eq!(client.messages(CHANGED), 0, "only one notification for the found tools");
}

/// A client with its own tool search gets the full list. A changed schema changes that list, although the short list
/// would stay the same. Finding a tool changes only the short list.
#[test]
fn a_client_with_its_own_tool_search_is_notified_of_changes_to_the_full_list() {
    let home = Home::new("");
    let file = home.path().join("tools.json");
    let define = |property: &str| {
        let tool = |name: &str| {
            let schema = json!({"type": "object", "properties": {property: {"type": "string"}}});
            json!({"name": name, "description": "Reads a gauge.", "inputSchema": schema})
        };
        let draft = home.path().join("draft");
        fs::write(&draft, json!([tool("gauge"), tool("meter")]).to_string()).unwrap();
        fs::rename(draft, &file).unwrap();
    };
    define("before");
    let program = testkit_program("faulty-server", &["--define", file.to_str().unwrap()]);
    let option = "[gateway]\ndefer_to_clients = true\nadd_found = true\n";
    home.configure(&format!("{DEFERRED}{option}{}", server("plant", &program, "")));
    let mut client = home.stdio("claude-code@2.1.327", Era::Older);
    wait_until_ready(&mut client);
    assert_eq!(names(&list(&mut client)), ["plant__gauge", "plant__meter"]);
    find(&mut client, "plant__gauge");
    assert_eq!(client.messages(CHANGED), 0, "a tool in the list is not announced");
    define("after");
    client.wait_for_message(CHANGED);
    let listed = Value::from(list(&mut client)).to_string();
    assert!(listed.contains("after") && !listed.contains("before"), "{listed}");
}

/// A client may request a list before it completes the handshake. If the list changes in between, the change must be
/// announced once the handshake is complete.
#[test]
fn a_change_before_the_end_of_the_handshake_is_announced() {
    for transport in ["stdio", "http"] {
        let home = Home::new("");
        let (late, ready) = late_server(&home);
        home.configure(&format!("{DEFERRED}[gateway]\nfirst_list_wait = 0\n{late}"));
        let gateway = (transport == "http").then(|| home.serve());
        let mut client = Client::before_initialized(match &gateway {
            Some(gateway) => Wire::http(&gateway.url),
            None => Wire::stdio(&home.mcp(), home.path()),
        });
        let before = list(&mut client);
        fs::write(&ready, "").unwrap();
        wait_until_ready(&mut client);
        client.say_initialized();
        client.wait_for_message(CHANGED);
        assert_ne!(list(&mut client), before, "{transport}");
    }
}

/// Two gateways in a chain are both started before the server answers. The tools that the inner gateway lists later
/// must still reach the client of the outer gateway.
#[test]
fn a_gateway_behind_a_gateway_announces_tools_that_it_lists_later() {
    let inner = Home::new("");
    let ready = inner.path().join("ready");
    let late = testkit_program("faulty-server", &["--start-when", ready.to_str().unwrap()]);
    let wait = "[gateway]\nfirst_list_wait = 0\n";
    inner.configure(&format!("{wait}{}", server("late", &late, "start_timeout = 600\n")));
    let gateway = inner.serve();
    let outer = Home::new(&format!("{DEFERRED}[servers.inner]\nurl = {}\n", json!(gateway.url)));
    let (mut client, _outer) = connect(&outer, ("stdio", Era::Older));
    wait_until_ready(&mut client);
    fs::write(&ready, "").unwrap();
    eventually("the tool of the server behind both", || {
        let found = client.call("tool_search", &json!({"query": "select:inner__late__echo"}));
        found.answer.to_string().contains("input_schema").then_some(())
    });
}
