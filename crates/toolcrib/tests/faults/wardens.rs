//! Tests in which wardens are killed with SIGKILL: one warden, both wardens, or one warden together with the gateway.

use serde_json::{Value, json};

use crate::environment::{HttpGateway, TestEnvironment};
use crate::probe::{is_alive, processes_with, signal, until, until_true};
use crate::raw_client::{Era, RawClient};

/// The processes of a server, and its two wardens.
struct ProcessTree {
    /// The server, a child process in its process group, and a child process in a session of its own.
    server: Vec<u32>,
    inner: u32,
    outer: u32,
}

fn start(name: &str) -> (TestEnvironment, HttpGateway, RawClient, ProcessTree) {
    let environment =
        TestEnvironment::new(name).faulty("family", &["--grandchild", "--hang", "hang"]);
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    let process_tree = process_tree(&peer);
    (environment, gateway, peer, process_tree)
}

fn process_tree(peer: &RawClient) -> ProcessTree {
    let (pids, _) = until("up", || {
        let pids = peer.call("family__pids", json!({}))["structuredContent"].take();
        pids.is_object().then_some(pids)
    });
    let pid = |who: &str| pids[who].as_u64().unwrap() as u32;
    let inner = parent(pid("own"));
    ProcessTree {
        server: ["own", "group", "session"].map(pid).to_vec(),
        inner,
        outer: parent(inner),
    }
}

fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

/// If either warden is killed, the server and everything it started must end, the running call must get an error, and
/// the server must be restarted.
#[test]
fn a_warden_is_killed() {
    for which in ["inner", "outer"] {
        let (_stage, _served, peer, before) = start(&format!("warden-{which}"));
        let call = peer.begin("family__hang", json!({}));
        signal(if which == "inner" { before.inner } else { before.outer }, "-KILL");
        until_true("the server and its children are gone", || {
            !before.server.iter().any(|pid| is_alive(*pid))
        });
        until_true("the wardens are gone", || !is_alive(before.inner) && !is_alive(before.outer));
        let answer: Value = call.end();
        assert_eq!(answer["isError"], true, "{which}: {answer}");
        let after = process_tree(&peer);
        assert!(after.server.iter().all(|pid| is_alive(*pid) && !before.server.contains(pid)));
    }
}

/// A server whose wardens are both killed keeps answering, so the gateway cannot notice this from the server's output.
/// The server's process group must still be ended, and the server restarted. A child process in a session of its own
/// cannot be reached any more.
#[test]
fn both_wardens_are_killed() {
    let (_stage, _served, peer, before) = start("warden-both");
    signal(before.outer, "-STOP");
    signal(before.inner, "-KILL");
    signal(before.outer, "-KILL");
    let [own, group, session] = before.server[..] else { panic!("three processes") };
    until_true("the server and its group are gone", || !is_alive(own) && !is_alive(group));
    let after = process_tree(&peer);
    assert!(after.server.iter().all(|pid| is_alive(*pid) && !before.server.contains(pid)));
    signal(session, "-KILL");
}

/// If the gateway and one warden are killed, the other warden must clean up.
#[test]
fn a_warden_is_killed_with_the_gateway() {
    for which in ["inner", "outer"] {
        let (environment, mut gateway, peer, process_tree) =
            start(&format!("warden-gateway-{which}"));
        peer.begin("family__hang", json!({}));
        signal(if which == "inner" { process_tree.inner } else { process_tree.outer }, "-KILL");
        gateway.kill();
        until_true("no process is left", || {
            let folder = environment.folder.to_str().unwrap();
            !process_tree.server.iter().any(|pid| is_alive(*pid))
                && processes_with(folder).is_empty()
        });
    }
}
