//! Nothing is left of a server, however it ends.

use crate::process_tree::{
    all_gone, block_on, exists, family, fresh_mark, kill, launch, launch_sigkill_soon,
    launch_sigterm_soon, marked, note, parent, ready, until,
};
use crate::*;

pub(crate) fn ended_with_its_family() {
    block_on(async {
        // The server exits when its stdin ends, or at SIGTERM if it is slow. Those it started do neither on
        // their own, so the warden must end them.
        let (process, pids, mark) = family(launch_sigterm_soon, FAMILY).await;
        let start = Instant::now();
        let exit = process.end().await;
        assert!(matches!(exit, Exit::Code(0) | Exit::Signal(15)), "{exit}");
        let took = start.elapsed();
        // `end` returns when it is over, and not before.
        assert_eq!(marked(&mark), Vec::<u32>::new());
        all_gone(&pids, &mark);
        note("end()", took);
    });
}

pub(crate) fn ended_though_stubborn() {
    block_on(async {
        let (process, pids, mark) = family(launch_sigkill_soon, STUBBORN).await;
        let start = Instant::now();
        assert_eq!(process.end().await, Exit::Signal(9));
        let took = start.elapsed();
        all_gone(&pids, &mark);
        note("end(), nobody listens", took);
    });
}

pub(crate) fn dropped_it_ends_too() {
    block_on(async {
        let (process, pids, mark) = family(launch_sigkill_soon, STUBBORN).await;
        drop(process);
        // On another thread, since tokio reaps the warden on this one.
        let gone = tokio::task::spawn_blocking(move || all_gone(&pids, &mark)).await;
        note("dropped", gone.unwrap());
    });
}

/// A gateway process with a server, what belongs to it, and the mark.
fn gateway_process(
    script: &str,
) -> (std::process::Child, BufReader<ChildStdout>, Vec<u32>, String) {
    // The gateway's orphans fall to us and not to init, which may take its time to reap.
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

/// Like [`all_gone`], but the warden's parent is dead, and the warden ours to reap.
fn all_gone_but_orphan(pids: &[u32], mark: &str) -> Duration {
    until(|| {
        for pid in pids {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
        }
        !pids.iter().copied().any(exists) && marked(mark).is_empty()
    })
}

pub(crate) fn gateway_killed() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(FAMILY);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    note("SIGKILL of the gateway", all_gone_but_orphan(&pids, &mark));
}

pub(crate) fn gateway_killed_server_stubborn() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(STUBBORN);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    note("SIGKILL of the gateway, nobody listens", all_gone_but_orphan(&pids, &mark));
}

pub(crate) fn gateway_terminated() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(FAMILY);
    kill(gateway.id(), Signal::TERM);
    assert_eq!(gateway.wait().unwrap().code(), Some(0));
    note("SIGTERM of the gateway", all_gone_but_orphan(&pids, &mark));
}

pub(crate) fn server_killed() {
    block_on(async {
        let (mut process, pids, mark) = family(launch_sigterm_soon, FAMILY).await;
        let outer = parent(parent(process.pid()));
        let server: Vec<_> = pids.iter().copied().filter(|pid| *pid != outer).collect();
        let start = Instant::now();
        kill(process.pid(), Signal::KILL);
        let exit = process.wait().await;
        assert_eq!((exit, exit.to_string().as_str()), (Exit::Signal(9), "killed by signal 9"));
        // Without our doing; only the outer warden may be left, for us to reap.
        all_gone(&server, &mark);
        assert_eq!(process.end().await, Exit::Signal(9));
        all_gone(&pids, &mark);
        note("SIGKILL of the server", start.elapsed());
    });
}

pub(crate) fn server_exits_before_its_children() {
    block_on(async {
        let script = "sleep 600 & setsid sleep 600 & sleep 600 & echo ready; read line; exit 3";
        let (mut process, pids, mark) = family(launch_sigterm_soon, script).await;
        let start = Instant::now();
        process.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
        assert_eq!(process.wait().await, Exit::Code(3));
        // Its children hold its stdout; it ends with them.
        let mut rest = Vec::new();
        process.stdout.as_mut().unwrap().read_to_end(&mut rest).await.unwrap();
        drop(process.stdin.take());
        assert_eq!(process.end().await, Exit::Code(3));
        all_gone(&pids, &mark);
        note("exit of the server", start.elapsed());
    });
}

/// The outer warden ends what the inner one can no longer end.
pub(crate) fn inner_warden_killed() {
    block_on(async {
        let (mut process, pids, mark) = family(launch_sigterm_soon, FAMILY).await;
        kill(parent(process.pid()), Signal::KILL);
        assert_eq!(process.wait().await, Exit::WardenLost);
        assert_eq!(process.end().await, Exit::WardenLost);
        note("SIGKILL of the inner warden", all_gone(&pids, &mark));
    });
}

/// The inner warden ends everything when the outer one is gone.
pub(crate) fn outer_warden_killed() {
    // The inner one falls to us, and not to init.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    block_on(async {
        let (mut process, pids, mark) = family(launch_sigkill_soon, STUBBORN).await;
        kill(parent(parent(process.pid())), Signal::KILL);
        assert_eq!(process.wait().await, Exit::WardenLost);
        assert_eq!(process.end().await, Exit::WardenLost);
        note("SIGKILL of the outer warden", all_gone_but_orphan(&pids, &mark));
    });
}

pub(crate) fn warden_terminated() {
    block_on(async {
        let (mut process, pids, mark) = family(launch_sigterm_soon, FAMILY).await;
        let start = Instant::now();
        kill(parent(process.pid()), Signal::TERM);
        // Its stdin is still open, so it takes the signal.
        assert_eq!(process.wait().await, Exit::Signal(15));
        process.end().await;
        all_gone(&pids, &mark);
        note("SIGTERM of the warden", start.elapsed());
    });
}

pub(crate) fn no_signal_comes_while_a_server_may_end_on_its_own() {
    block_on(async {
        let script =
            "trap 'exit 77' TERM; echo ready; while read line; do :; done; sleep 0.3; exit 5";
        let mut process = launch(&fresh_mark(), script).spawn().await.unwrap();
        ready(&mut process).await;
        assert_eq!(process.end().await, Exit::Code(5));
    });
}

pub(crate) fn sigterm_comes_once() {
    block_on(async {
        // It exits with the number of SIGTERMs. A second one would come while it sleeps.
        let script = "n=0; trap 'n=$((n+1))' TERM; echo ready; \
                      while [ $n = 0 ]; do sleep 0.01; done; sleep 0.3; exit $n";
        let mut process = launch_sigterm_soon(&fresh_mark(), script).spawn().await.unwrap();
        ready(&mut process).await;
        assert_eq!(process.end().await, Exit::Code(1));
    });
}
