//! Tests of a config that is edited while the gateway runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::probe::{DEADLINE, count, until_true};
use crate::raw_client::Era;

/// Returns the log lines about configs that could not be used.
fn refusals(stderr: &str) -> impl Iterator<Item = &str> {
    stderr.lines().filter(|line| line.contains("cannot be used; the previous one stays"))
}

/// The config is edited two hundred times, and every third edit is invalid. Meanwhile, calls run on a server that no
/// edit changes. No call may fail, that server must stay the same process, and an invalid config must never be used.
#[test]
fn two_hundred_config_edits_are_applied() {
    let steady = TestEnvironment::new("edits").faulty("steady", &[]);
    let log = steady.log("steady");
    let base = steady.text().to_owned();
    let extra = |n: usize| {
        let server = steady.text().replace("steady", &format!("extra{}", n % 3));
        format!("{base}\n{server}")
    };
    // Each of these configs is different, because the gateway does not load the same text twice.
    let broken = |n: usize| {
        let text = match n % 3 {
            0 => format!("{base}\n[servers.wrong]\ncomand = 'x'\n"),
            1 => format!("{base}\n[servers.wrong\n"),
            _ => base[..base.len() / 2].to_owned(),
        };
        format!("# edit {n}\n{text}")
    };
    let gateway = steady.serve();
    let peer = Arc::new(gateway.peer(Era::Older));
    peer.ready("steady__echo");

    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let (peer, stop, calls) = (Arc::clone(&peer), Arc::clone(&stop), Arc::clone(&calls));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let n = calls.fetch_add(1, Ordering::Relaxed);
                    let answer = peer.call("steady__echo", json!({"n": n}));
                    assert_eq!(answer["structuredContent"], json!({"n": n}), "{answer}");
                }
            })
        })
        .collect();
    for n in 0..200 {
        let before = calls.load(Ordering::Relaxed);
        let refused = refusals(&steady.stderr()).count();
        steady.write(&if n % 3 == 2 { broken(n / 3) } else { extra(n) });
        until_true("calls are still answered", || calls.load(Ordering::Relaxed) > before + 2);
        // The file is polled twice a second, so most edits are not noticed. After every tenth edit, the test waits
        // until it is noticed.
        if n % 10 == 0 {
            let added = format!("extra{}__echo", n % 3);
            until_true("the edit is seen", || match n % 3 {
                2 => refusals(&steady.stderr()).count() > refused,
                _ => peer.names().contains(&added),
            });
        }
    }
    for n in 0..3 {
        let before = refusals(&steady.stderr()).count();
        steady.write(&broken(1_000 + n));
        until_true("the broken config is refused", || refusals(&steady.stderr()).count() > before);
        assert!(peer.names().contains(&"steady__echo".to_owned()), "the previous config stays");
    }
    steady.write(&extra(1));
    until_true("the added server's tool is listed", || {
        peer.names().contains(&"extra1__echo".to_owned())
    });
    steady.write(&base);
    until_true("the removed server's tool is not listed", || {
        !peer.names().iter().any(|name| name.starts_with("extra"))
    });
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().expect("no call was dropped");
    }
    crate::print_figure("calls during 200 edits, none dropped", calls.load(Ordering::Relaxed));
    assert_eq!(count(&log, "start"), 1, "the server is never restarted");
    let stderr = steady.stderr();
    crate::print_figure("edits refused", refusals(&stderr).count());
    let unnamed = refusals(&stderr).find(|line| !line.contains("line "));
    assert_eq!(unnamed, None, "each refusal names a line");
    assert!(!stderr.contains("server=wrong"), "no server of a broken config is started");
}

/// If an edit removes a server, running calls to this server end with a response.
#[test]
fn a_server_is_removed_during_a_call() {
    let environment = TestEnvironment::new("removed").faulty("doomed", &["--hang", "hang"]);
    let gateway = environment.serve();
    let peer = gateway.peer(Era::Older);
    peer.ready("doomed__echo");
    let call = peer.begin("doomed__hang", json!({}));
    until_true("the server receives the call", || {
        count(&environment.log("doomed"), "call hang") == 1
    });
    environment.write("");
    let (answer, _) = call.answer(DEADLINE).expect("the call is answered");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    until_true("the server's process has exited", || {
        crate::probe::processes_with(environment.log("doomed").to_str().unwrap()).is_empty()
    });
}
