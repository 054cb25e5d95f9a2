//! Servers as real processes: what goes in comes out, and nothing is left of them, however it ends.
//!
//! The executable plays three parts. Run by cargo it is the tests; as `role:warden` it is the warden they
//! launch; as `role:gateway` a gateway that can be killed. Every process of a test carries a
//! mark in its environment, by which it is found in `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, atomic::AtomicU32};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcrib_mcp::lines::{Event, Lines};
use toolcrib_mcp::process::{Exit, Launch, Process, SpawnError, environment, warden};

/// No orphan may live longer than this.
const LIMIT: Duration = Duration::from_secs(5);

const MARK: &str = "TOOLCRIB_TEST_MARK";

/// A server with a child in its group and one that left it; it ends when its stdin does.
const FAMILY: &str = "sleep 600 & setsid sleep 600 & echo ready; cat";
/// The same, but nobody in it listens to anything but SIGKILL.
const STUBBORN: &str =
    "trap '' TERM INT HUP; sleep 600 & setsid sleep 600 & echo ready; while :; do sleep 1; done";

const TESTS: &[(&str, fn())] = &[
    ("bytes_pass_unchanged", bytes_pass_unchanged),
    ("a_line_of_a_gigabyte_costs_no_memory", a_line_of_a_gigabyte_costs_no_memory),
    ("ended_with_its_family", ended_with_its_family),
    ("ended_though_stubborn", ended_though_stubborn),
    ("dropped_it_ends_too", dropped_it_ends_too),
    ("gateway_killed", gateway_killed),
    ("gateway_killed_server_stubborn", gateway_killed_server_stubborn),
    ("gateway_terminated", gateway_terminated),
    ("server_killed", server_killed),
    ("server_exits_before_its_children", server_exits_before_its_children),
    ("warden_killed", warden_killed),
    ("warden_terminated", warden_terminated),
    ("the_exit_code_is_passed_on", the_exit_code_is_passed_on),
    ("stdin_and_stdout_end_when_they_should", stdin_and_stdout_end_when_they_should),
    ("sigterm_comes_once_and_in_time", sigterm_comes_once_and_in_time),
    ("the_command_cannot_be_run", the_command_cannot_be_run),
    ("the_environment_is_what_was_given", the_environment_is_what_was_given),
    ("stderr_is_kept_and_never_in_the_way", stderr_is_kept_and_never_in_the_way),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(role) if role == "role:warden" => warden::run(args),
        Some(role) if role == "role:gateway" => gateway(args),
        Some(role) if role == "role:reader" => reader(),
        filter => {
            run_tests(&filter.and_then(|filter| filter.into_string().ok()).unwrap_or_default())
        }
    }
}

/// All at once: they wait more than they work.
fn run_tests(filter: &str) -> ExitCode {
    let chosen = TESTS.iter().filter(|(name, _)| filter.starts_with('-') || name.contains(filter));
    let running: Vec<_> = chosen
        .map(|(name, test)| {
            (
                name,
                std::thread::spawn(move || {
                    let start = Instant::now();
                    (catch_unwind(AssertUnwindSafe(test)).is_ok(), start.elapsed())
                }),
            )
        })
        .collect();
    let mut passed = true;
    for (name, thread) in running {
        let (ok, took) = thread.join().unwrap();
        passed &= ok;
        println!(
            "test {name} ... {} ({:.2} s)",
            if ok { "ok" } else { "FAILED" },
            took.as_secs_f64()
        );
    }
    ExitCode::from(u8::from(!passed))
}

// The parts other than test.

/// Starts `sh -c SCRIPT` under the mark it was given, and lives until it is killed or told to go.
fn gateway(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&told)).unwrap();
    let (mark, script) = (args.next().unwrap(), args.next().unwrap());
    block_on(async {
        let mut process =
            launch(mark.to_str().unwrap(), script.to_str().unwrap()).spawn().await.unwrap();
        ready(&mut process).await;
        println!("ready");
        while !told.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    ExitCode::SUCCESS
}

/// Reads a line of a gigabyte between two short ones, and prints what it saw and the memory it took.
fn reader() -> ExitCode {
    block_on(async {
        let script = "echo before; head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo after";
        let mut process = launch("reader", script).spawn().await.unwrap();
        let mut stdout = process.stdout.take().unwrap();
        let (mut lines, mut chunk) = (Lines::default(), vec![0; 64 << 10]);
        loop {
            let read = stdout.read(&mut chunk).await.unwrap();
            let mut input = &chunk[..read];
            while let Some(event) = lines.take(&mut input) {
                match event {
                    Event::Line(line) => println!("{}", String::from_utf8_lossy(line)),
                    Event::TooLong { start } => println!("too long, {} shown", start.len()),
                }
            }
            if read == 0 {
                break;
            }
        }
        process.end().await;
    });
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap());
    ExitCode::SUCCESS
}

// Tools.

/// No test may hang: what never comes is a failure.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(30), future).await };
    runtime.block_on(limited).unwrap()
}

fn launch(mark: &str, script: &str) -> Launch {
    let named = [(MARK.into(), mark.into())];
    Launch {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: environment(std::env::vars_os(), named),
        cwd: None,
        warden: vec![std::env::current_exe().unwrap().into(), "role:warden".into()],
    }
}

fn fresh_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// All living processes with the mark.
fn marked(mark: &str) -> Vec<u32> {
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

/// Polls until `what` holds, and says how long it took.
fn within(limit: Duration, what: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < limit, "not within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

fn exists(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Waits until there is no trace of `pids`, not even a zombie, and of anyone else with the mark.
fn all_gone(pids: &[u32], mark: &str) -> Duration {
    within(LIMIT, || !pids.iter().copied().any(exists) && marked(mark).is_empty())
}

async fn ready(process: &mut Process) {
    let mut line = [0; 6];
    process.stdout.as_mut().unwrap().read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"ready\n");
}

/// A server and everyone it started: warden, shell, two `sleep`s and perhaps `cat`.
async fn family(script: &str) -> (Process, Vec<u32>, String) {
    let mark = fresh_mark();
    let mut process = launch(&mark, script).spawn().await.unwrap();
    ready(&mut process).await;
    let count = || marked(&mark).len();
    within(LIMIT, || count() >= 5);
    let pids = marked(&mark);
    (process, pids, mark)
}

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    line.trim().parse().unwrap()
}

fn note(what: &str, took: Duration) {
    println!("  {what}: all gone after {} ms", took.as_millis());
}

// The tests.

fn bytes_pass_unchanged() {
    block_on(async {
        let mut process = launch(&fresh_mark(), "cat").spawn().await.unwrap();
        let (mut stdin, mut stdout) =
            (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        // Every byte value, and no period that a buffer's size could hide.
        let bytes: Vec<u8> = (0..10_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let sent = bytes.clone();
        let writing = tokio::spawn(async move { stdin.write_all(&sent).await.unwrap() });
        let mut received = Vec::new();
        stdout.read_to_end(&mut received).await.unwrap();
        writing.await.unwrap();
        assert!(received == bytes, "{} of {} bytes", received.len(), bytes.len());
        assert_eq!(process.end().await, Exit::Code(0));
    });
}

fn a_line_of_a_gigabyte_costs_no_memory() {
    let output =
        Command::new(std::env::current_exe().unwrap()).arg("role:reader").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let [before, long, after, memory] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    assert_eq!([before, long, after], ["before", "too long, 512 shown", "after"]);
    let kib: u32 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    println!("  a line of 1 GiB: {kib} KiB at the most");
    assert!(kib < 32 << 10, "{memory}");
}

fn ended_with_its_family() {
    block_on(async {
        let (process, pids, mark) = family(FAMILY).await;
        let start = Instant::now();
        assert_eq!(process.end().await, Exit::Code(0));
        let took = start.elapsed();
        assert!(took < LIMIT, "{took:?}");
        // Not a moment later: `end` returns when it is over.
        assert_eq!(marked(&mark), Vec::<u32>::new());
        all_gone(&pids, &mark);
        note("end()", took);
    });
}

fn ended_though_stubborn() {
    block_on(async {
        let (process, pids, mark) = family(STUBBORN).await;
        let start = Instant::now();
        assert_eq!(process.end().await, Exit::Signal(9));
        let took = start.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
        all_gone(&pids, &mark);
        note("end(), nobody listens", took);
    });
}

fn dropped_it_ends_too() {
    block_on(async {
        let (process, pids, mark) = family(STUBBORN).await;
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
    within(LIMIT, || marked(&mark).len() >= 5);
    let pids = marked(&mark);
    (gateway, stdout, pids, mark)
}

/// Like [`all_gone`], but the warden's parent is dead, and the warden ours to reap.
fn all_gone_but_orphan(pids: &[u32], mark: &str) -> Duration {
    within(LIMIT, || {
        for pid in pids {
            let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
        }
        !pids.iter().copied().any(exists) && marked(mark).is_empty()
    })
}

fn gateway_killed() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(FAMILY);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    note("SIGKILL of the gateway", all_gone_but_orphan(&pids, &mark));
}

fn gateway_killed_server_stubborn() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(STUBBORN);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    note("SIGKILL of the gateway, nobody listens", all_gone_but_orphan(&pids, &mark));
}

fn gateway_terminated() {
    let (mut gateway, _stdout, pids, mark) = gateway_process(FAMILY);
    kill(gateway.id(), Signal::TERM);
    assert_eq!(gateway.wait().unwrap().code(), Some(0));
    note("SIGTERM of the gateway", all_gone_but_orphan(&pids, &mark));
}

fn server_killed() {
    block_on(async {
        let (mut process, pids, mark) = family(FAMILY).await;
        let warden = parent(process.pid());
        let server: Vec<_> = pids.iter().copied().filter(|pid| *pid != warden).collect();
        let start = Instant::now();
        kill(process.pid(), Signal::KILL);
        let exit = process.wait().await;
        assert!(start.elapsed() < Duration::from_secs(1), "told after {:?}", start.elapsed());
        assert_eq!((exit, exit.to_string().as_str()), (Exit::Signal(9), "killed by signal 9"));
        // Without our doing; only the warden may be left, for us to reap.
        all_gone(&server, &mark);
        assert_eq!(process.end().await, Exit::Signal(9));
        all_gone(&pids, &mark);
        note("SIGKILL of the server", start.elapsed());
    });
}

fn server_exits_before_its_children() {
    block_on(async {
        let script = "sleep 600 & setsid sleep 600 & sleep 600 & echo ready; read line; exit 3";
        let (mut process, pids, mark) = family(script).await;
        let start = Instant::now();
        process.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
        assert_eq!(process.wait().await, Exit::Code(3));
        assert!(start.elapsed() < Duration::from_millis(400), "told after {:?}", start.elapsed());
        // Its children hold its stdout; it ends with them.
        let mut rest = Vec::new();
        process.stdout.as_mut().unwrap().read_to_end(&mut rest).await.unwrap();
        drop(process.stdin.take());
        assert_eq!(process.end().await, Exit::Code(3));
        all_gone(&pids, &mark);
        note("exit of the server", start.elapsed());
    });
}

fn warden_killed() {
    block_on(async {
        let mark = fresh_mark();
        // Without `setsid`: who left the group cannot be found without a warden.
        let mut process = launch(&mark, "sleep 600 & echo ready; cat").spawn().await.unwrap();
        ready(&mut process).await;
        kill(parent(process.pid()), Signal::KILL);
        assert_eq!(process.wait().await, Exit::WardenLost);
        assert_eq!(process.end().await, Exit::WardenLost);
        note("SIGKILL of the warden", all_gone(&[], &mark));
    });
}

fn warden_terminated() {
    block_on(async {
        let (mut process, pids, mark) = family(FAMILY).await;
        let start = Instant::now();
        kill(parent(process.pid()), Signal::TERM);
        // Its stdin is still open, so it takes the signal.
        assert_eq!(process.wait().await, Exit::Signal(15));
        process.end().await;
        all_gone(&pids, &mark);
        note("SIGTERM of the warden", start.elapsed());
    });
}

fn the_exit_code_is_passed_on() {
    block_on(async {
        for code in [0, 1, 77, 127, 137, 255] {
            let mut process = launch(&fresh_mark(), &format!("exit {code}")).spawn().await.unwrap();
            let exit = process.wait().await;
            assert_eq!(
                (exit, exit.to_string()),
                (Exit::Code(code), format!("exited with code {code}"))
            );
        }
    });
}

fn stdin_and_stdout_end_when_they_should() {
    block_on(async {
        let mut process = launch(&fresh_mark(), "cat; echo ended").spawn().await.unwrap();
        let start = Instant::now();
        process.stdin = None;
        let mut rest = String::new();
        process.stdout.as_mut().unwrap().read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "ended\n");
        assert_eq!(process.wait().await, Exit::Code(0));
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());

        // A server that closes its stdout and lives on: nobody else may hold it.
        let mut process = launch(&fresh_mark(), "exec >/dev/null; cat").spawn().await.unwrap();
        let end = process.stdout.as_mut().unwrap().read_to_string(&mut rest);
        assert_eq!(tokio::time::timeout(LIMIT, end).await.unwrap().unwrap(), 0);
        assert!(exists(process.pid()));
        assert_eq!(process.end().await, Exit::Code(0));
    });
}

fn sigterm_comes_once_and_in_time() {
    block_on(async {
        let script = "n=0; trap 'n=$((n+1)); echo term $n' TERM; echo ready; \
                      while [ $n = 0 ]; do sleep 0.01; done; sleep 0.3; exit $n";
        let mut process = launch(&fresh_mark(), script).spawn().await.unwrap();
        ready(&mut process).await;
        let start = Instant::now();
        assert_eq!(process.end().await, Exit::Code(1));
        let took = start.elapsed();
        assert!(took > Duration::from_millis(700) && took < Duration::from_secs(2), "{took:?}");
    });
}

fn the_command_cannot_be_run() {
    block_on(async {
        let start = |program: &str| {
            let mut launch = launch(&fresh_mark(), "");
            launch.program = program.into();
            launch
        };
        let missing = start("no-such-command-anywhere").spawn().await.unwrap_err();
        assert_eq!(missing.to_string(), "cannot find the command `no-such-command-anywhere`");
        assert!(matches!(missing, SpawnError::NotFound { path: Some(_), .. }));

        // A script whose interpreter is missing passes every check but the last, in the warden.
        let script = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-interpreter");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, run).unwrap();
        let broken = start(script.to_str().unwrap()).spawn().await.unwrap_err();
        let text =
            format!("cannot run `{}`: No such file or directory (os error 2)", script.display());
        assert_eq!(broken.to_string(), text);

        let mut elsewhere = start("sh");
        elsewhere.cwd = Some("/no/such/folder".into());
        let nowhere = elsewhere.spawn().await.unwrap_err();
        assert_eq!(nowhere.to_string(), "cannot run in `/no/such/folder`: not a folder");

        let mut unwatched = start("sh");
        unwatched.warden = vec!["/bin/sh".into(), "-c".into(), "echo I am no warden >&2".into()];
        let lost = unwatched.spawn().await.unwrap_err();
        assert_eq!(lost.to_string(), "the warden started no server: I am no warden");
    });
    // By hand, as somebody may try: a line and a code.
    let by_hand = Command::new(std::env::current_exe().unwrap())
        .args(["role:warden", "sh"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(by_hand.stderr).unwrap();
    assert!(said.starts_with("toolcrib warden: only the gateway can start a warden"), "{said}");
    assert_eq!(by_hand.status.code(), Some(127));
}

fn the_environment_is_what_was_given() {
    block_on(async {
        let mut launch = launch("m", "");
        launch.program = "env".into();
        launch.args.clear();
        launch.cwd = Some("/".into());
        launch.env =
            vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b c\n$HOME".into())];
        let mut process = launch.spawn().await.unwrap();
        let mut text = String::new();
        process.stdout.as_mut().unwrap().read_to_string(&mut text).await.unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["$HOME", "A=b c", "PATH=/usr/bin:/bin"]);
    });
}

fn stderr_is_kept_and_never_in_the_way() {
    block_on(async {
        let script =
            "head -c 5000000 /dev/zero | tr '\\0' e >&2; echo >&2; echo 'last words' >&2; exit 1";
        let mut process = launch(&fresh_mark(), script).spawn().await.unwrap();
        let stderr = process.stderr().clone();
        assert_eq!(process.wait().await, Exit::Code(1));
        process.end().await;
        let start = Instant::now();
        while stderr.tail(1) != "last words" {
            assert!(start.elapsed() < LIMIT, "{}", stderr.tail(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
