//! Tests of MCP Apps: a host finds the user interface of a tool, even if the tool is deferred.

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{count, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

const CHART: &str = "ui://chart/view.html";

/// Returns the script of a server whose tool `draw` has the user interface `uri`. `listed` are the server's resources.
fn script(uri: &str, listed: &[&str]) -> Value {
    let resources: Vec<Value> = listed.iter().map(|uri| json!({"uri": uri, "name": "r"})).collect();
    let returns = json!([{"arguments": true}]);
    let own =
        json!([{"result": {"content": [], "_meta": {"x": 1, "ui": {"resourceUri": "ui://own"}}}}]);
    let content = json!({"uri": uri, "mimeType": "text/html;profile=mcp-app", "text": "<p>"});
    json!({
        "capabilities": {"tools": {}, "resources": {}},
        "methods": {
            "resources/list": {"resources": resources},
            "resources/templates/list": {"resourceTemplates": []},
            "resources/read": {"contents": [content]},
        },
        "tools": {"draw": returns, "plain": returns, "own": own},
        "definitions": {
            "draw": {"_meta": {"y": 2, "ui": {"resourceUri": uri, "visibility": ["model"]}}},
            "own": {"_meta": {"ui": {"resourceUri": uri}}},
        },
    })
}

fn environment(name: &str) -> TestEnvironment {
    TestEnvironment::new(name)
        .with("[activation]\nmode = \"on\"\n")
        .scripted("maps", &script(CHART, &[CHART, "file:///a"]), "")
        .scripted("other", &script("ui://other", &["note:1"]), "")
}

fn ready(peer: &RawClient, servers: &[&str]) {
    for server in servers {
        let call = json!({"name": format!("{server}__plain"), "arguments": {}});
        until_true(server, || {
            let answer = peer.call("tool_call", call.clone());
            answer["content"][0]["text"] == "plain {}"
        });
    }
}

fn read(peer: &RawClient, uri: &str) -> Value {
    peer.ask("resources/read", json!({"uri": uri}))
}

fn uris(peer: &RawClient) -> Vec<String> {
    let list = peer.ask("resources/list", json!({}));
    let resources = list["resources"].as_array().unwrap();
    resources.iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()).collect()
}

/// Checks what every client sees, whether or not it shows user interfaces.
fn check(environment: &TestEnvironment, peer: &RawClient) {
    ready(peer, &["maps", "other"]);
    assert_eq!(uris(peer), [CHART, "maps+file:///a", "other+note:1"]);
    let ui = json!({"resourceUri": CHART, "visibility": ["model"]});
    let found = peer.search("select:maps__draw");
    assert_eq!(found["hits"][0]["_meta"], json!({ "ui": ui }), "{found}");
    let found = peer.search("select:maps__plain");
    assert!(found["hits"][0].get("_meta").is_none(), "{found}");
    let described = peer.call("tool_describe", json!({"name": "maps__draw"}));
    assert_eq!(described["structuredContent"]["hits"][0]["_meta"]["ui"], ui, "{described}");
    let call = |name: &str| peer.call("tool_call", json!({"name": name, "arguments": {}}));
    let drawn = call("maps__draw");
    assert_eq!(drawn["content"][0]["text"], "draw {}");
    assert_eq!(drawn["_meta"]["ui"], ui, "{drawn}");
    assert!(call("maps__plain").get("_meta").is_none_or(|meta| meta.get("ui").is_none()));
    let own = call("maps__own");
    assert_eq!(
        (&own["_meta"]["x"], &own["_meta"]["ui"]["resourceUri"]),
        (&json!(1), &json!("ui://own"))
    );
    // The address is the same in the tool, in the list and in the contents. `other` does not list its interface.
    for (uri, server) in [(CHART, "maps"), ("ui://other", "other")] {
        let before = count(&environment.log(server), &format!("read {uri}"));
        assert_eq!(read(peer, uri)["contents"][0]["uri"], uri, "{uri}");
        assert_eq!(count(&environment.log(server), &format!("read {uri}")), before + 1);
    }
}

fn app_tools(peer: &RawClient) -> Vec<String> {
    peer.names().into_iter().filter(|name| !name.starts_with("tool_")).collect()
}

const APP_TOOLS: [&str; 4] = ["maps__draw", "maps__own", "other__draw", "other__own"];

#[test]
fn a_host_finds_the_interface_of_a_deferred_tool() {
    for era in ERAS {
        let environment = environment("apps");
        let plain = environment.stdio(era);
        check(&environment, &plain);
        assert_eq!(app_tools(&plain), [""; 0]);
        drop(plain);
        let host = RawClient::before_handshake(environment.toolcrib(&["mcp", "--own"]), era);
        let host = host.showing_apps().with_handshake();
        check(&environment, &host);
        let gateway = environment.serve();
        let over_http = RawClient::host_over_http(&gateway.address, era);
        check(&environment, &over_http);
        for host in [&host, &over_http] {
            assert_eq!(app_tools(host), APP_TOOLS);
            let list = host.ask("tools/list", json!({}));
            let draw = list["tools"].as_array().unwrap();
            let draw = draw.iter().find(|tool| tool["name"] == "maps__draw").unwrap();
            assert_eq!(draw["_meta"]["ui"]["resourceUri"], CHART, "{draw}");
            assert_eq!(draw["_meta"]["y"], 2, "{draw}");
            assert_eq!(host.call("maps__draw", json!({}))["content"][0]["text"], "draw {}");
        }
        // Another client of the same gateway is not affected.
        assert_eq!(app_tools(&gateway.peer(era)), [""; 0]);
    }
}

/// If several servers claim an interface, no server gets the request, because it could be the wrong server's interface
/// that the user sees. A profile with one of the servers resolves that.
#[test]
fn an_interface_that_two_servers_claim_is_not_read() {
    let profile = "[profiles.maps]\nservers = ['maps']\n\
                   [profiles.denied]\ndeny = ['evil/draw', 'evil/own']\n";
    // `evil` is first in every order, and only its tool names the address.
    let environment =
        environment("apps-twice").scripted("evil", &script(CHART, &[]), "").with(profile);
    let peer = environment.stdio(Era::Older);
    ready(&peer, &["evil", "maps", "other"]);
    assert_eq!(uris(&peer)[0], CHART);
    let answer = read(&peer, CHART);
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(count(&environment.log("evil"), "read"), 0);
    assert_eq!(count(&environment.log("maps"), "read"), 0);
    assert_eq!(read(&peer, &format!("maps+{CHART}"))["contents"][0]["text"], "<p>");
    drop(peer);
    let narrow = environment.stdio_as(Era::Older, "maps");
    ready(&narrow, &["maps"]);
    assert_eq!(read(&narrow, CHART)["contents"][0]["text"], "<p>");
    drop(narrow);
    // A tool that a profile denies claims nothing for its clients.
    let denied = environment.stdio_as(Era::Older, "denied");
    ready(&denied, &["evil", "maps"]);
    assert_eq!(read(&denied, CHART)["contents"][0]["text"], "<p>");
    assert_eq!(count(&environment.log("evil"), "read"), 0);
}

/// The templates of two servers are the same, so a completion could send what the user types to the wrong server.
#[test]
fn a_template_of_interfaces_that_two_servers_have_is_not_completed() {
    let mut both = script("ui://chart/1", &[]);
    let template = json!({"uriTemplate": "ui://chart/{id}", "name": "t"});
    both["methods"]["resources/templates/list"] = json!({"resourceTemplates": [template]});
    both["methods"]["completion/complete"] = Value::Null;
    both["capabilities"]["completions"] = json!({});
    let environment = TestEnvironment::new("apps-complete")
        .with("[activation]\nmode = \"on\"\n")
        .scripted("aaa", &both, "")
        .scripted("maps", &both, "");
    let peer = environment.stdio(Era::Older);
    ready(&peer, &["aaa", "maps"]);
    let reference = json!({"type": "ref/resource", "uri": "ui://chart/{id}"});
    let argument = json!({"name": "id", "value": "mine"});
    let answer = peer.ask("completion/complete", json!({"ref": reference, "argument": argument}));
    assert_eq!(answer["error"]["data"]["servers"], json!(["aaa", "maps"]), "{answer}");
    for server in ["aaa", "maps"] {
        assert_eq!(count(&environment.log(server), "hang completion/complete"), 0);
    }
}

/// All servers use the same scheme for their interfaces, so an address that only has this scheme belongs to no server.
#[test]
fn an_interface_that_no_server_claims_is_not_read() {
    let mut lists_others = script("ui://evil/view", &["ui://evil/view"]);
    let template = json!({"uriTemplate": "ui://{+rest}", "name": "t"});
    lists_others["methods"]["resources/templates/list"] = json!({"resourceTemplates": [template]});
    let environment = TestEnvironment::new("apps-unclaimed")
        .with("[activation]\nmode = \"on\"\n")
        .scripted("evil", &lists_others, "");
    let peer = environment.stdio(Era::Older);
    ready(&peer, &["evil"]);
    let answer = read(&peer, CHART);
    assert!(answer["error"].is_object(), "{answer}");
    assert_eq!(count(&environment.log("evil"), "read"), 0);
    assert_eq!(read(&peer, "ui://evil/view")["contents"][0]["text"], "<p>");
}
