//! Tests with fields and kinds of content that are in no protocol version.
//!
//! The definition and the result of the tool `cargo` of `faulty-server` have such fields. The gateway must not remove
//! them, over any transport and in any protocol version.

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{CONNECTIONS, Home, IN_FULL, connect, server};
use crate::support::pair::Pair;
use crate::support::{Program, assert_same, eventually, testkit_program};

fn faulty() -> Program {
    testkit_program("faulty-server", &[])
}

fn direct(program: &Program, home: &Home) -> Client {
    Client::of(program, home.path(), Era::Older)
}

#[test]
fn a_result_with_unknown_fields_arrives_unchanged() {
    for connection in CONNECTIONS {
        Pair::new("faulty", &faulty(), connection, direct).call("cargo", &json!({}));
    }
}

#[test]
fn a_definition_with_unknown_fields_is_listed_unchanged_except_for_its_name() {
    let alone = Home::new("");
    let mut direct_tools = direct(&faulty(), &alone).tools();
    for tool in &mut direct_tools {
        tool["name"] = format!("faulty__{}", tool["name"].as_str().unwrap()).into();
    }
    assert!(direct_tools.iter().any(|tool| tool.get("x-vendor").is_some()), "{direct_tools:?}");
    for connection in CONNECTIONS {
        let home = Home::new(&format!("{IN_FULL}{}", server("faulty", &faulty(), "")));
        let (mut client, _gateway) = connect(&home, connection);
        let listed = eventually("the server's tools", || {
            Some(client.tools()).filter(|tools| !tools.is_empty())
        });
        assert_same(
            &Value::from(listed),
            &Value::from(direct_tools.clone()),
            &format!("{connection:?}"),
        );
    }
}
