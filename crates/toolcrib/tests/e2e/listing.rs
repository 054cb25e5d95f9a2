//! Tests that `tools/list` is the same for every client, short, and correct from the start.

use std::fs;

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{
    CONNECTIONS, DEFERRED, Home, connect, late_server, server, wait_until_ready,
};
use crate::support::wire::Wire;
use crate::support::{Program, assert_same, eventually, testkit_program};

const BRIDGE: [&str; 3] = ["tool_search", "tool_describe", "tool_call"];

fn faulty(tools: &str) -> Program {
    testkit_program("faulty-server", &["--tools", tools])
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Returns the tools of a server, under the names that clients of the gateway see.
fn server_tools(name: &str, program: &Program) -> Vec<Value> {
    let home = Home::new("");
    let mut tools = Client::of(program, home.path(), Era::Older).tools();
    for tool in &mut tools {
        tool["name"] = format!("{name}__{}", tool["name"].as_str().unwrap()).into();
    }
    tools
}

#[test]
fn the_list_is_byte_identical_for_every_client_and_in_every_run() {
    let fixture = server(
        "fixture",
        &testkit_program("fixture-server", &[]),
        "always_load = [\"test_simple_*\"]\n",
    );
    let home = Home::new(&format!("{DEFERRED}{}{fixture}", server("many", &faulty("40"), "")));
    let mut first = home.stdio("test", Era::Older);
    wait_until_ready(&mut first);
    let bytes = |client: &mut Client| Value::from(client.tools()).to_string();
    let expected = bytes(&mut first);
    assert_eq!(bytes(&mut first), expected);
    assert_eq!(bytes(&mut home.stdio("other", Era::Newer)), expected);
    for _ in 0..2 {
        let gateway = home.serve();
        for era in [Era::Older, Era::Newer, Era::Older, Era::Newer] {
            assert_eq!(bytes(&mut Client::at(&gateway.url, era)), expected, "{era:?}");
        }
    }
}

#[test]
fn saved_tools_are_listed_at_once_even_if_their_server_hangs() {
    let home = Home::new("");
    let hangs = home.path().join("hangs");
    // The server must start with the same command when it hangs, because a changed command would mean a different
    // server, without saved tools.
    let script = format!(
        "if [ -e {} ]; then exec sleep 600; else exec {} --tools 40; fi",
        hangs.display(),
        testkit_program("faulty-server", &[])[0]
    );
    let program = ["sh", "-c", &script].map(str::to_owned).to_vec();
    home.configure(&format!("{DEFERRED}{}", server("many", &program, "start = 'eager'")));
    let mut client = home.stdio("test", Era::Older);
    wait_until_ready(&mut client);
    let known = client.tools();
    assert!(known[0]["description"].as_str().unwrap().contains("many__tool_39"), "{known:?}");
    client.kill();
    home.stop();

    fs::write(&hangs, "").unwrap();
    for connection in CONNECTIONS {
        let (mut client, _gateway) = connect(&home, connection);
        assert_same(
            &Value::from(client.tools()),
            &Value::from(known.clone()),
            &format!("{connection:?}"),
        );
        let found = client.call("tool_search", &json!({"query": "select:many__tool_7"}));
        let reply = &found.answer["result"]["structuredContent"];
        assert_eq!(reply["connecting"], json!(["many"]), "{reply}");
        assert_eq!(reply["hits"][0]["name"], "many__tool_7", "{reply}");
        assert!(reply["hits"][0]["unavailable"].is_string(), "{reply}");
    }
}

#[test]
fn without_saved_tools_only_the_bridge_is_listed() {
    let silent = server("silent", &testkit_program("faulty-server", &["--never-answer"]), "");
    for connection in CONNECTIONS {
        let home = Home::new(&format!("[gateway]\nfirst_list_wait = 0\n{silent}"));
        let (mut client, _gateway) = connect(&home, connection);
        assert_eq!(names(&client.tools()), BRIDGE, "{connection:?}");
    }
}

#[test]
fn no_description_is_longer_than_clients_accept() {
    const SERVERS: [&str; 3] = ["one", "two", "three"];
    // With ten tools per server, all names fit into a description of 2,000 characters. With a hundred they do not, and
    // the last case has five thousand tools in total.
    for tools in ["10", "100", "1660"] {
        let servers = SERVERS.map(|name| server(name, &faulty(tools), "")).concat();
        for (limit, most) in [("", 2_000), ("[gateway]\ndescription_chars = 600\n", 600)] {
            let home = Home::new(&format!("{DEFERRED}{limit}{servers}"));
            let mut client = home.stdio("test", Era::Older);
            wait_until_ready(&mut client);
            let listed = client.tools();
            assert_eq!(names(&listed), BRIDGE);
            for tool in &listed {
                let description = tool["description"].as_str().unwrap();
                let length = description.chars().count();
                assert!(length <= most, "{tools} tools: {length} > {most}: {description}");
            }
            let listing = listed[0]["description"].as_str().unwrap();
            for name in SERVERS {
                assert!(listing.contains(name), "{tools} tools: {listing}");
            }
        }
    }
}

#[test]
fn a_short_list_passes_through_unchanged_except_for_the_names() {
    let (first, second) = (faulty("2"), testkit_program("fixture-server", &[]));
    let expected = [server_tools("first", &first), server_tools("second", &second)].concat();
    let config = format!(
        "[activation]\ntools = 100\ntokens = 100000\n{}{}",
        server("first", &first, ""),
        server("second", &second, "")
    );
    for connection in CONNECTIONS {
        let home = Home::new(&config);
        let (mut client, _gateway) = connect(&home, connection);
        let listed = eventually("all servers known", || {
            Some(client.tools()).filter(|tools| !names(tools).contains(&BRIDGE[0]))
        });
        assert_same(
            &Value::from(listed),
            &Value::from(expected.clone()),
            &format!("{connection:?}"),
        );
        // `tool_call` always works, whether or not the tool is listed.
        let exchange = client.bridge("first__echo", &json!({"a": 1}));
        assert_eq!(
            exchange.answer["result"]["structuredContent"],
            json!({"a": 1}),
            "{connection:?}"
        );
    }
}

#[test]
fn found_tools_are_added_for_session_clients_if_configured() {
    let program = faulty("30");
    let config = format!("{DEFERRED}[gateway]\nadd_found = true\n{}", server("many", &program, ""));
    let server_tools = server_tools("many", &program);
    let added = server_tools.iter().find(|tool| tool["name"] == "many__tool_7").unwrap();
    let find = json!({"query": "select:many__tool_7"});
    for (transport, era) in CONNECTIONS {
        let home = Home::new(&config);
        let (mut client, _gateway) = connect(&home, (transport, era));
        wait_until_ready(&mut client);
        let mut expected = client.tools();
        let id = client.start("tools/call", json!({"name": "tool_search", "arguments": find}));
        if era == Era::Older {
            client.wait_for_message("notifications/tools/list_changed");
            expected.push(added.clone());
        }
        client.finish(id);
        let listed = client.tools();
        assert_same(&Value::from(listed), &Value::from(expected), &format!("{transport} {era:?}"));
        if era == Era::Older {
            let exchange = client.call("many__tool_7", &json!({"query": "q"}));
            assert_eq!(exchange.answer["result"]["structuredContent"], json!({"query": "q"}));
        }
    }
}

/// The log says once for each session which list the client gets, and why.
#[test]
fn clients_with_their_own_tool_search_get_the_full_list_if_it_is_better_or_configured() {
    let program = faulty("30");
    let full = Value::from(server_tools("many", &program));
    let many = server("many", &program, "");
    let hidden = Some("the client searches tools itself, and would hide `tool_search`");
    let on = Some("`defer_to_clients = true`, and the client searches tools itself");
    for (option, client, in_full) in [
        ("", "codex-mcp-client@0.169.0", hidden),
        ("", "codex-mcp-client@0.142.0", None),
        ("", "claude-code@2.1.119", None),
        ("", "somebody", None),
        ("defer_to_clients = \"auto\"", "codex-mcp-client@0.143.0", hidden),
        ("defer_to_clients = \"auto\"", "Visual Studio Code@1.140.0", None),
        ("defer_to_clients = true", "codex-mcp-client@0.169.0", on),
        ("defer_to_clients = true", "claude-code@2.1.119", on),
        ("defer_to_clients = true", "Visual Studio Code@1.140.0", on),
        ("defer_to_clients = true", "codex-mcp-client@0.100.0", None),
        ("defer_to_clients = true", "somebody", None),
        ("defer_to_clients = false", "codex-mcp-client@0.169.0", None),
        ("defer_to_clients = false", "claude-code@2.1.119", None),
    ] {
        let home = Home::new(&format!("{DEFERRED}[gateway]\n{option}\n{many}"));
        let mut connected = home.stdio(client, Era::Older);
        wait_until_ready(&mut connected);
        let listed = connected.tools();
        let has_instructions =
            connected.initialize_result.get("instructions").is_some_and(Value::is_string);
        assert_eq!(has_instructions, in_full.is_none(), "{option} {client}");
        let (is_full, reason) = (in_full.is_some(), in_full.unwrap_or("full_list=false"));
        if is_full {
            assert_same(&Value::from(listed), &full, client);
        } else {
            assert_eq!(names(&listed), BRIDGE, "{option} {client}");
        }
        connected.tools();
        assert_eq!(list_decisions(&home), 1, "{option} {client}: {}", home.log());
        assert!(home.log().contains(reason), "{option} {client}: {}", home.log());
    }
}

/// Returns how often the log says which list a client gets.
fn list_decisions(home: &Home) -> usize {
    home.log().matches("full_list=").count()
}

/// In the newer protocol, the list must not depend on the client's name.
#[test]
fn clients_of_the_newer_protocol_get_the_same_list_under_every_name() {
    let many = server("many", &faulty("30"), "");
    for option in ["", "defer_to_clients = true"] {
        let home = Home::new(&format!("{DEFERRED}[gateway]\n{option}\n{many}"));
        for name in ["codex-mcp-client@0.169.0", "claude-code@2.1.327", "somebody"] {
            let mut client = home.stdio(name, Era::Newer);
            wait_until_ready(&mut client);
            assert_eq!(names(&client.tools()), BRIDGE, "{option} {name}");
            client.tools();
        }
        assert_eq!(list_decisions(&home), 3, "{option}: {}", home.log());
        let reason = "the list must not depend on the client in the newer protocol";
        assert!(home.log().contains(reason), "{option}: {}", home.log());
        // Over HTTP, no request of this protocol belongs to a session.
        let server = home.serve();
        let mut client =
            Client::named("codex-mcp-client@0.169.0", Wire::http(&server.url), Era::Newer);
        wait_until_ready(&mut client);
        assert_eq!(names(&client.tools()), BRIDGE, "{option}");
        assert!(!server.log().contains("full_list="), "{option}: {}", server.log());
    }
}

/// Over HTTP, each session of the older protocol gets the list for its own client.
#[test]
fn sessions_over_http_get_the_list_that_is_better_for_their_client() {
    let program = faulty("30");
    let full = Value::from(server_tools("many", &program));
    let home = Home::new(&format!("{DEFERRED}{}", server("many", &program, "")));
    let server = home.serve();
    for (name, is_full) in [("codex-mcp-client@0.169.0", true), ("claude-code@2.1.119", false)] {
        let mut client = Client::named(name, Wire::http(&server.url), Era::Older);
        wait_until_ready(&mut client);
        let listed = client.tools();
        if is_full {
            assert_same(&Value::from(listed), &full, name);
        } else {
            assert_eq!(names(&listed), BRIDGE, "{name}");
        }
    }
    assert_eq!(server.log().matches("full_list=true").count(), 1, "{}", server.log());
    assert_eq!(server.log().matches("full_list=false").count(), 1, "{}", server.log());
}

/// Later sessions start when the servers' tools are already known, and must get the same instructions as the first one.
#[test]
fn instructions_are_sent_from_the_first_session_on_and_stay_the_same() {
    for preset in ["default", "everruns", "everruns@0.50", "hermes", "opencode", "claude-code"] {
        let home = Home::new("");
        let (late, ready) = late_server(&home);
        home.configure(&format!("preset = \"{preset}\"\n{DEFERRED}{late}"));
        let mut first = home.stdio("test", Era::Older);
        let expected = first.initialize_result["instructions"].clone();
        assert!(expected.is_string(), "{preset}");
        fs::write(&ready, "").unwrap();
        let knows = |client: &mut Client| {
            let find = json!({"query": "select:late__tool_39"});
            client.call("tool_search", &find).answer.to_string().contains("department 39")
        };
        eventually("the server", || knows(&mut first).then_some(()));
        // From now on the server hangs, so the tools that are found were saved earlier.
        fs::remove_file(&ready).unwrap();
        for mut client in
            [home.stdio("test", Era::Older), Client::at(&home.serve().url, Era::Older)]
        {
            assert_eq!(client.initialize_result["instructions"], expected, "{preset}");
            assert!(knows(&mut client), "{preset}");
        }
    }
}

#[test]
fn instructions_are_sent_unless_deferral_is_off() {
    let silent = server("silent", &testkit_program("faulty-server", &["--never-answer"]), "");
    for (config, text) in [
        (silent.clone(), Some("`tool_search` finds them")),
        (format!("preset = \"opencode\"\n{silent}"), Some("get them from `tool_search`")),
        // If deferral is off, there is nothing to explain, so no instructions are sent.
        (format!("[activation]\nmode = \"off\"\n{silent}"), None),
    ] {
        let home = Home::new(&config);
        for client in [home.stdio("test", Era::Older), Client::at(&home.serve().url, Era::Older)] {
            let found = client.initialize_result["instructions"].as_str();
            match text {
                Some(text) => assert!(found.unwrap().contains(text), "{config}: {found:?}"),
                None => assert_eq!(found, None, "{config}"),
            }
        }
    }
}
