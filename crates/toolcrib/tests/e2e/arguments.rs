//! Tests that the arguments of a call reach the server byte for byte as the client wrote them.

use std::fs;

use crate::support::client::{Client, Era};
use crate::support::gateway::{
    CONNECTIONS, DEFERRED, Home, IN_FULL, connect, server, wait_until_ready,
};
use crate::support::{Program, eventually, testkit_program};

/// JSON whose number spelling, key order, whitespace and escapes would change if it were parsed and serialised again.
const ARGUMENTS: &str = r#"{"z":1.00, "a":12345678901234567890123,"e" : 2E+5,"t":"a  b\u00e9\/\t","z2":{"y":-0.0,"b":[1.10]}}"#;

/// Returns the command of a server that records every byte it receives.
fn recording_server(home: &Home) -> Program {
    let (log, program) = (home.path().join("sent"), &testkit_program("faulty-server", &[])[0]);
    let script = format!("tee -a {} | {program}", log.display());
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

/// Returns the arguments of the call that the server received, and clears the record. This waits for the call, because
/// `tee` may write to the file after the server has answered.
fn sent(home: &Home) -> String {
    let log = home.path().join("sent");
    let call = eventually("a call in the log", || {
        let sent = fs::read_to_string(&log).unwrap();
        let call = sent.split_inclusive('\n').find(|line| line.contains("\"tools/call\""))?;
        call.ends_with('\n').then(|| call.to_owned())
    });
    fs::write(&log, "").unwrap();
    let (_, rest) = call.split_once("\"arguments\":").unwrap();
    rest[..ARGUMENTS.len().min(rest.len())].to_owned()
}

#[test]
fn a_direct_call_arrives_byte_for_byte() {
    for connection in CONNECTIONS {
        let home = Home::new("");
        home.configure(&format!("{IN_FULL}{}", server("one", &recording_server(&home), "")));
        let (mut client, _gateway) = connect(&home, connection);
        eventually("the server's tools", || (!client.tools().is_empty()).then_some(()));
        let answer = client.call_with_text("one__echo", ARGUMENTS);
        assert!(answer["result"].get("isError").is_none(), "{connection:?}: {answer}");
        assert_eq!(sent(&home), ARGUMENTS, "{connection:?}");
    }
}

/// A default is added at the end. The rest stays as the client wrote it.
#[test]
fn a_call_with_a_default_arrives_byte_for_byte() {
    for connection in CONNECTIONS {
        let home = Home::new("");
        let defaults = "tools.echo.defaults = { x = 1.5 }\n";
        let server = server("one", &recording_server(&home), defaults);
        home.configure(&format!("{IN_FULL}{server}"));
        let (mut client, _gateway) = connect(&home, connection);
        eventually("the server's tools", || (!client.tools().is_empty()).then_some(()));
        let arguments = ARGUMENTS.replacen(r#","z2":{"y":-0.0,"b":[1.10]}}"#, "}", 1);
        let answer = client.call_with_text("one__echo", &arguments);
        assert!(answer["result"].get("isError").is_none(), "{connection:?}: {answer}");
        let expected = format!(r#"{},"x":1.5}}"#, arguments.strip_suffix('}').unwrap());
        assert!(sent(&home).starts_with(&expected), "{connection:?}");
    }
}

#[test]
fn a_call_through_the_bridge_arrives_byte_for_byte() {
    let wrapped = format!("{{\"name\": \"one__echo\",  \"arguments\": {ARGUMENTS}}}");
    for connection in CONNECTIONS {
        let home = Home::new("");
        home.configure(&format!("{DEFERRED}{}", server("one", &recording_server(&home), "")));
        let (mut client, _gateway) = connect(&home, connection);
        wait_until_ready(&mut client);
        let answer = client.call_with_text("tool_call", &wrapped);
        assert!(answer["result"].get("isError").is_none(), "{connection:?}: {answer}");
        assert_eq!(sent(&home), ARGUMENTS, "{connection:?}");
    }
}

/// Here the server over HTTP is a second gateway, which forwards to a server that records what it receives.
#[test]
fn a_call_to_a_server_over_http_arrives_byte_for_byte() {
    let behind = Home::new("");
    behind.configure(&format!(
        "{IN_FULL}{}",
        server("one", &recording_server(&behind), "prefix = \"\"\n")
    ));
    let gateway = behind.serve();
    let mut near = Client::at(&gateway.url, Era::Older);
    eventually("the server's tools", || (!near.tools().is_empty()).then_some(()));
    for connection in CONNECTIONS {
        let home = Home::new(&format!("{IN_FULL}[servers.two]\nurl = \"{}\"\n", gateway.url));
        let (mut client, _gateway) = connect(&home, connection);
        eventually("the server's tools", || (!client.tools().is_empty()).then_some(()));
        let answer = client.call_with_text("two__echo", ARGUMENTS);
        assert!(answer["result"].get("isError").is_none(), "{connection:?}: {answer}");
        assert_eq!(sent(&behind), ARGUMENTS, "{connection:?}");
    }
}

/// A client may send a message with line breaks over HTTP. On stdio a line break ends the message, so a message to a
/// server on stdio must not contain any.
#[test]
fn line_breaks_between_tokens_become_spaces_on_stdio() {
    let home = Home::new("");
    home.configure(&format!("{IN_FULL}{}", server("one", &recording_server(&home), "")));
    let (mut client, _gateway) = connect(&home, ("http", Era::Older));
    eventually("the server's tools", || (!client.tools().is_empty()).then_some(()));
    let answer = client.call_with_text("one__echo", "{\n  \"a\": 1.00\r\n}");
    assert!(answer["result"].get("isError").is_none(), "{answer}");
    let sent = sent(&home);
    assert!(sent.starts_with("{   \"a\": 1.00  }"), "{sent}");
}
