//! Helpers that start a server with child processes, and that check that all of these processes are gone.

use crate::*;

/// Runs a future with a deadline, so that a test that hangs fails.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(DEADLINE, future).await };
    runtime.block_on(limited).unwrap()
}

/// Returns the settings for a server whose grace periods are as long as the deadline. If the server exits only after a
/// signal, the test fails.
pub(crate) fn launch(mark: &str, script: &str) -> Launch {
    let mark_variable = [(MARK.into(), mark.into())];
    Launch {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: environment(std::env::vars_os(), mark_variable),
        cwd: None,
        warden: vec![std::env::current_exe().unwrap().into(), "role:warden".into()],
        grace: GracePeriods {
            after_eof: DEADLINE,
            after_sigterm: DEADLINE,
            after_sigkill: DEADLINE,
        },
    }
}

/// Like [`launch`], but SIGTERM is sent 100 ms after stdin is closed.
pub(crate) fn launch_sigterm_soon(mark: &str, script: &str) -> Launch {
    let mut launch = launch(mark, script);
    launch.grace.after_eof = Duration::from_millis(100);
    launch
}

/// Like [`launch_sigterm_soon`], but SIGKILL is sent 100 ms after SIGTERM.
pub(crate) fn launch_sigkill_soon(mark: &str, script: &str) -> Launch {
    let mut launch = launch_sigterm_soon(mark, script);
    launch.grace.after_sigterm = Duration::from_millis(100);
    launch
}

pub(crate) fn fresh_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the ids of all running processes that have the mark in their environment.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environ = std::fs::read(entry.path().join("environ")).ok()?;
        environ.split(|b| *b == 0).any(|one| one == wanted.as_bytes()).then_some(pid)
    })
    .collect()
}

/// Polls until `condition` holds, and returns how long that took.
#[track_caller]
pub(crate) fn until(condition: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "the condition did not hold within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

pub(crate) fn exists(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Waits until none of `pids` exists, not even as a zombie, and no other process has the mark. Returns how long that
/// took.
pub(crate) fn all_gone(pids: &[u32], mark: &str) -> Duration {
    until(|| !pids.iter().copied().any(exists) && marked(mark).is_empty())
}

pub(crate) async fn ready(process: &mut Process) {
    let mut line = [0; 6];
    process.stdout.as_mut().unwrap().read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"ready\n");
}

/// Starts a server and waits until all its processes run. There are at least six: two wardens, a shell, two `sleep`s,
/// and `cat` or a third `sleep`. Returns the server, the ids of all these processes, and the mark in their environment.
pub(crate) async fn spawn_tree(
    launch: fn(&str, &str) -> Launch,
    script: &str,
) -> (Process, Vec<u32>, String) {
    let mark = fresh_mark();
    let mut process = launch(&mark, script).spawn().await.unwrap();
    ready(&mut process).await;
    let count = || marked(&mark).len();
    until(|| count() >= 6);
    let pids = marked(&mark);
    (process, pids, mark)
}

pub(crate) fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

pub(crate) fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

pub(crate) fn report(event: &str, took: Duration) {
    println!("  {event}: all gone after {} ms", took.as_millis());
}
