//! Tests that no process of a server is left, however the server ends.

use crate::process_tree::{
    all_gone, block_on, exists, fresh_mark, kill, launch, launch_sigkill_soon, launch_sigterm_soon,
    marked, parent, ready, report, spawn_tree, until,
};
use crate::*;

pub(crate) fn end_also_ends_the_children() {
    block_on(async {
        // The server exits when its stdin ends, or at SIGTERM if it is slow. Its children exit only at a signal, so the
        // warden must end them.
        let (process, pids, mark) = spawn_tree(launch_sigterm_soon, WITH_CHILDREN).await;
        let start = Instant::now();
        let exit = process.end().await;
        assert!(matches!(exit, Exit::Code(0) | Exit::Signal(15)), "{exit}");
        let took = start.elapsed();
        // `end` returns only when all processes are gone.
        assert_eq!(marked(&mark), Vec::<u32>::new());
        all_gone(&pids, &mark);
        report("end()", took);
    });
}

pub(crate) fn a_server_that_ignores_signals_is_killed() {
    block_on(async {
        let (process, pids, mark) = spawn_tree(launch_sigkill_soon, IGNORES_SIGNALS).await;
        let start = Instant::now();
        assert_eq!(process.end().await, Exit::Signal(9));
        let took = start.elapsed();
        all_gone(&pids, &mark);
        report("end(), signals ignored", took);
    });
}

pub(crate) fn dropping_the_process_ends_the_server() {
    block_on(async {
        let (process, pids, mark) = spawn_tree(launch_sigkill_soon, IGNORES_SIGNALS).await;
        drop(process);
        // This waits on another thread, because tokio must be free to reap the warden on the current one.
        let gone = tokio::task::spawn_blocking(move || all_gone(&pids, &mark)).await;
        report("dropped", gone.unwrap());
    });
}

/// Starts a gateway process with a server. Returns the gateway, its stdout, the ids of all processes, and the mark in
/// the environment of these processes.
fn gateway_process(
    script: &str,
) -> (std::process::Child, BufReader<ChildStdout>, Vec<u32>, String) {
    // Makes this process, instead of init, adopt the gateway's orphans. Init may be slow to reap them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mark = fresh_mark();
    let mut gateway = Command::new(std::env::current_exe().unwrap())
        .args(["role:gateway", &mark, script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(gateway.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    until(|| marked(&mark).len() >= 6);
    let pids = marked(&mark);
    (gateway, stdout, pids, mark)
}

/// Like [`all_gone`], but also reaps the processes that this process adopted when their parent died.
fn reap_until_all_gone(pids: &[u32], mark: &str) -> Duration {
    until(|| {
        for pid in pids {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
        }
        !pids.iter().copied().any(exists) && marked(mark).is_empty()
    })
}

pub(crate) fn a_killed_gateway_leaves_no_process() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(WITH_CHILDREN);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    report("SIGKILL of the gateway", reap_until_all_gone(&pids, &mark));
}

pub(crate) fn a_killed_gateway_leaves_no_server_that_ignores_signals() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(IGNORES_SIGNALS);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    report("SIGKILL of the gateway, signals ignored", reap_until_all_gone(&pids, &mark));
}

pub(crate) fn a_terminated_gateway_leaves_no_process() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(WITH_CHILDREN);
    kill(gateway.id(), Signal::TERM);
    assert_eq!(gateway.wait().unwrap().code(), Some(0));
    report("SIGTERM of the gateway", reap_until_all_gone(&pids, &mark));
}

pub(crate) fn a_killed_server_leaves_no_children() {
    block_on(async {
        let (mut process, pids, mark) = spawn_tree(launch_sigterm_soon, WITH_CHILDREN).await;
        let outer = parent(parent(process.pid()));
        let server: Vec<_> = pids.iter().copied().filter(|pid| *pid != outer).collect();
        let start = Instant::now();
        kill(process.pid(), Signal::KILL);
        let exit = process.wait().await;
        assert_eq!((exit, exit.to_string().as_str()), (Exit::Signal(9), "killed by signal 9"));
        // The wardens end the children before `end` is called. Only the outer warden may still exist, as a zombie that
        // `end` reaps.
        all_gone(&server, &mark);
        assert_eq!(process.end().await, Exit::Signal(9));
        all_gone(&pids, &mark);
        report("SIGKILL of the server", start.elapsed());
    });
}

pub(crate) fn a_server_that_exits_leaves_no_children() {
    block_on(async {
        let script = "sleep 600 & setsid sleep 600 & sleep 600 & echo ready; read line; exit 3";
        let (mut process, pids, mark) = spawn_tree(launch_sigterm_soon, script).await;
        let start = Instant::now();
        process.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
        assert_eq!(process.wait().await, Exit::Code(3));
        // The server's children inherited its stdout, so end-of-file is reached only after all of them have exited.
        let mut rest = Vec::new();
        process.stdout.as_mut().unwrap().read_to_end(&mut rest).await.unwrap();
        drop(process.stdin.take());
        assert_eq!(process.end().await, Exit::Code(3));
        all_gone(&pids, &mark);
        report("exit of the server", start.elapsed());
    });
}

/// The outer warden ends all processes when the inner one is killed.
pub(crate) fn a_killed_inner_warden_leaves_no_process() {
    block_on(async {
        let (mut process, pids, mark) = spawn_tree(launch_sigterm_soon, WITH_CHILDREN).await;
        kill(parent(process.pid()), Signal::KILL);
        assert_eq!(process.wait().await, Exit::WardenLost);
        assert_eq!(process.end().await, Exit::WardenLost);
        report("SIGKILL of the inner warden", all_gone(&pids, &mark));
    });
}

/// The inner warden ends all processes when the outer one is killed.
pub(crate) fn a_killed_outer_warden_leaves_no_process() {
    // Makes this process, instead of init, adopt the inner warden, so that the test can reap the warden.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    block_on(async {
        let (mut process, pids, mark) = spawn_tree(launch_sigkill_soon, IGNORES_SIGNALS).await;
        kill(parent(parent(process.pid())), Signal::KILL);
        assert_eq!(process.wait().await, Exit::WardenLost);
        assert_eq!(process.end().await, Exit::WardenLost);
        report("SIGKILL of the outer warden", reap_until_all_gone(&pids, &mark));
    });
}

pub(crate) fn a_terminated_warden_ends_the_server() {
    block_on(async {
        let (mut process, pids, mark) = spawn_tree(launch_sigterm_soon, WITH_CHILDREN).await;
        let start = Instant::now();
        kill(parent(process.pid()), Signal::TERM);
        // The server's stdin is still open, so only the signal ends it.
        assert_eq!(process.wait().await, Exit::Signal(15));
        process.end().await;
        all_gone(&pids, &mark);
        report("SIGTERM of the warden", start.elapsed());
    });
}

pub(crate) fn no_signal_is_sent_while_a_server_exits_in_time() {
    block_on(async {
        let script =
            "trap 'exit 77' TERM; echo ready; while read line; do :; done; sleep 0.3; exit 5";
        let mut process = launch(&fresh_mark(), script).spawn().await.unwrap();
        ready(&mut process).await;
        assert_eq!(process.end().await, Exit::Code(5));
    });
}

pub(crate) fn sigterm_is_sent_once() {
    block_on(async {
        // The server exits with the number of SIGTERMs that it received. A second SIGTERM would arrive during its last
        // `sleep`.
        let script = "n=0; trap 'n=$((n+1))' TERM; echo ready; \
                      while [ $n = 0 ]; do sleep 0.01; done; sleep 0.3; exit $n";
        let mut process = launch_sigterm_soon(&fresh_mark(), script).spawn().await.unwrap();
        ready(&mut process).await;
        assert_eq!(process.end().await, Exit::Code(1));
    });
}
