//! Tests of `toolcrib stats --live`, which finds running gateways and asks them what they have done.

use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::until_true;
use crate::raw_client::Era;

/// Runs `stats --live --json`. The command finds instances in the state folder, so it gets no config.
fn live(environment: &TestEnvironment) -> (i32, Value) {
    let mut stats = environment.toolcrib_without_config(&["stats", "--live", "--json"]);
    stats.env("XDG_STATE_HOME", environment.folder.join("state"));
    stats.env_remove("TOOLCRIB_KEY");
    let done = stats.stdout(Stdio::piped()).output().unwrap();
    (done.status.code().unwrap(), serde_json::from_slice(&done.stdout).unwrap())
}

#[test]
fn everything_that_runs_is_found_with_its_calls() {
    let environment = TestEnvironment::new("live").faulty("fine", &[]).background("1m");
    assert_eq!(live(&environment), (1, json!({"instances": []})));
    let served = environment.serve();
    let (over_http, over_stdio) = (served.peer(Era::Older), environment.shared(Era::Older));
    for client in [&over_http, &over_stdio] {
        client.ready("fine__echo");
        client.search("select:fine__echo");
        assert_eq!(
            client.call("fine__echo", json!({"n": 1}))["structuredContent"],
            json!({"n": 1})
        );
    }
    let (code, report) = live(&environment);
    let instances = report["instances"].as_array().unwrap();
    let kinds: Vec<_> = instances.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!((code, kinds), (0, vec!["serve", "background"]), "{report}");
    assert_eq!(instances[0]["url"], format!("http://{}", served.address));
    for instance in instances {
        let gateway = &instance["gateway"];
        assert_eq!(gateway["sessions"], 1, "{report}");
        assert!(gateway["searches"].as_u64() >= Some(1), "{report}");
        let server = &gateway["servers"][0];
        assert_eq!((&server["server"], &server["failed"]), (&json!("fine"), &json!(0)), "{report}");
        assert!(server["calls"].as_u64() >= Some(1), "{report}");
    }
    served.terminate();
    let is_gone = || live(&environment).1["instances"].as_array().unwrap().len() == 1;
    until_true("a stopped `serve` is not listed", is_gone);
}

/// After a crash, another program may listen at the address. It must not get the key.
#[test]
fn the_address_of_a_killed_process_is_not_used() {
    let environment = TestEnvironment::new("live-killed");
    let mut served = environment.serve();
    served.kill();
    let folder = environment.state().join("serve");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "the file of the killed process");
    let other = TcpListener::bind(&served.address).unwrap();
    other.set_nonblocking(true).unwrap();
    assert_eq!(live(&environment), (1, json!({"instances": []})));
    assert!(other.accept().is_err(), "nothing has connected");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the file was removed");
}
