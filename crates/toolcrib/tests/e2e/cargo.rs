//! Fields and kinds of content that no revision of the protocol knows yet.
//!
//! The tool `cargo` of `faulty-server` is defined and answers with such things. A gateway is not the one to
//! take them away, whichever way a client comes.

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{Home, IN_FULL, WAYS, come, server};
use crate::support::pair::Pair;
use crate::support::{Program, assert_same, eventually, own};

fn faulty() -> Program {
    own("faulty-server", &[])
}

fn direct(program: &Program, home: &Home) -> Client {
    Client::of(program, home.path(), Era::Old)
}

#[test]
fn an_answer_from_the_future_arrives_unchanged() {
    for way in WAYS {
        Pair::new("faulty", &faulty(), way, direct).call("cargo", &json!({}));
    }
}

#[test]
fn a_definition_from_the_future_is_listed_unchanged_but_for_its_name() {
    let alone = Home::new("");
    let mut own = direct(&faulty(), &alone).tools();
    for tool in &mut own {
        tool["name"] = format!("faulty__{}", tool["name"].as_str().unwrap()).into();
    }
    assert!(own.iter().any(|tool| tool.get("x-vendor").is_some()), "{own:?}");
    for way in WAYS {
        let home = Home::new(&format!("{IN_FULL}{}", server("faulty", &faulty(), "")));
        let (mut client, _served) = come(&home, way);
        let listed = eventually("the server's tools", || {
            Some(client.tools()).filter(|tools| !tools.is_empty())
        });
        assert_same(&Value::from(listed), &Value::from(own.clone()), &format!("{way:?}"));
    }
}
