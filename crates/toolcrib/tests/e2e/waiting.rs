//! Tests that the first list and the first search wait for servers without saved tools, at most once for each server.

use std::fs;

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{CONNECTIONS, DEFERRED, Home, connect, server};
use crate::support::{eventually, testkit_program};

const CHANGED: &str = "notifications/tools/list_changed";
const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Returns the config section of a server that starts only when the file `ready` exists in the home folder.
fn late(home: &Home) -> String {
    let ready = home.path().join("ready");
    let program = testkit_program(
        "faulty-server",
        &["--tools", "40", "--start-when", ready.to_str().unwrap()],
    );
    server("late", &program, "start_timeout = 600\n")
}

/// Replaces the config, and waits until the new one is in use. Tests change only a setting of the gateway, so no server
/// is restarted.
fn reload(home: &Home, log: impl Fn() -> String, config: &str) {
    home.configure(config);
    eventually("the config in use", || {
        log().contains("the config changed and was reloaded").then_some(())
    });
}

/// The server answers only after the list has been requested. The maximum wait is longer than any test, so the list
/// must end its wait when the server answers.
#[test]
fn the_first_list_waits_for_a_server_without_saved_tools() {
    for connection in CONNECTIONS {
        let home = Home::new("");
        let config = |more: &str| {
            let gateway = "[gateway]\nfirst_list_wait = 600\nwait = 0\n";
            format!("{DEFERRED}{gateway}{}{more}", late(&home))
        };
        home.configure(&config(""));
        let (mut client, _gateway) = connect(&home, connection);
        let id = client.start("tools/list", json!({}));
        fs::write(home.path().join("ready"), "").unwrap();
        let list = client.finish(id);
        let listing = list["result"]["tools"][0]["description"].as_str().unwrap();
        assert!(listing.contains("late__tool_39"), "{connection:?}: {list}");
        if connection.1 == Era::Newer {
            continue;
        }
        // The list that the client has is complete, so the first announced change must be the one that is made below.
        let ready = home.path().join("more");
        let more = testkit_program("faulty-server", &["--start-when", ready.to_str().unwrap()]);
        home.configure(&config(&server("more", &more, "start_timeout = 600\n")));
        eventually("the next server", || {
            let query = json!({"query": "select:more__echo"});
            let id = client.start("tools/call", json!({"name": "tool_search", "arguments": query}));
            client.finish(id).to_string().contains("connecting").then_some(())
        });
        assert_eq!(client.messages(CHANGED), 0, "{connection:?}");
        fs::write(&ready, "").unwrap();
        client.wait_for_message(CHANGED);
        let id = client.start("tools/list", json!({}));
        let list = client.finish(id);
        let listing = list["result"]["tools"][0]["description"].as_str().unwrap();
        assert!(listing.contains("more__echo"), "{connection:?}: {list}");
    }
}

#[test]
fn a_list_that_did_not_wait_is_followed_by_a_change() {
    let home = Home::new("");
    home.configure(&format!("{DEFERRED}[gateway]\nfirst_list_wait = 0\n{}", late(&home)));
    let mut client = home.stdio("test", Era::Older);
    assert_eq!(names(&client.tools()), BRIDGE);
    fs::write(home.path().join("ready"), "").unwrap();
    client.wait_for_message(CHANGED);
    let listed = client.tools();
    assert!(listed[0]["description"].as_str().unwrap().contains("late__tool_39"), "{listed:?}");
}

/// After the first wait, the maximum wait is set to longer than any test takes, so a second wait would make the test
/// fail.
#[test]
fn only_one_list_waits_for_a_server_that_hangs() {
    for connection in CONNECTIONS {
        let home = Home::new("");
        let config =
            |wait: &str| format!("{DEFERRED}[gateway]\nfirst_list_wait = {wait}\n{}", late(&home));
        home.configure(&config("0.5"));
        let (mut client, gateway) = connect(&home, connection);
        assert_eq!(names(&client.tools()), BRIDGE, "{connection:?}");
        let log = || match &gateway {
            Some(gateway) => gateway.log(),
            None => home.log(),
        };
        reload(&home, log, &config("600"));
        assert_eq!(names(&client.tools()), BRIDGE, "{connection:?}: the second list does not wait");
        if let Some(gateway) = &gateway {
            let mut other = Client::at(&gateway.url, connection.1);
            assert_eq!(
                names(&other.tools()),
                BRIDGE,
                "{connection:?}: another client does not wait"
            );
        }
    }
}

/// Other systems' rankers do not judge how well a hit fits. So the first search waits for a server that is still
/// starting, because it may have a better tool. A search for a tool by name does not wait if the tool is found.
#[test]
fn a_search_without_a_fit_waits_only_once_for_a_server_that_hangs() {
    for preset in ["everruns", "everruns@0.50", "hermes", "opencode"] {
        let home = Home::new("");
        let many = server("many", &testkit_program("faulty-server", &["--tools", "30"]), "");
        let config = |wait: &str| {
            let gateway = format!("[gateway]\nfirst_list_wait = 0\nwait = {wait}\n");
            format!("preset = \"{preset}\"\n{DEFERRED}{gateway}{many}{}", late(&home))
        };
        let search = |client: &mut Client, query: &str| {
            let query = json!({"query": query});
            let call = json!({"name": "tool_search", "arguments": query});
            client.result("tools/call", &call)["content"][0]["text"].to_string()
        };
        // Here the maximum wait is longer than any test. So the search by words must end its wait when the server
        // `late` is up.
        home.configure(&config("600"));
        let mut client = home.stdio("test", Era::Older);
        let named = search(&mut client, "select:many__tool_7");
        assert!(named.contains("department 7"), "{preset}: {named}");
        let id = client.start(
            "tools/call",
            json!({"name": "tool_search", "arguments": {"query": "invoices department"}}),
        );
        fs::write(home.path().join("ready"), "").unwrap();
        let found = client.finish(id)["result"]["content"][0]["text"].to_string();
        assert!(!found.contains("connecting"), "{preset}: {found}");
        client.kill();
        home.stop();

        // Now the server `late` does not start, so the first search waits for the maximum time. Later searches must not
        // wait again.
        fs::remove_file(home.path().join("ready")).unwrap();
        fs::remove_dir_all(home.path().join("state")).unwrap();
        fs::remove_file(home.path().join("stderr")).unwrap();
        home.configure(&config("0.5"));
        let mut client = home.stdio("test", Era::Older);
        eventually("the other server", || {
            let named = search(&mut client, "select:many__tool_7");
            named.contains("department 7").then_some(())
        });
        let log = || home.log();
        let first = search(&mut client, "invoices department");
        assert!(first.contains("many__tool_") && first.contains("connecting"), "{preset}: {first}");
        reload(&home, log, &config("600"));
        assert_eq!(search(&mut client, "invoices department"), first, "{preset}");
        let named = search(&mut client, "select:many__tool_7");
        assert!(named.contains("department 7"), "{preset}: {named}");
    }
}
