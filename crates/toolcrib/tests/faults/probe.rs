//! Inspects processes and waits for conditions.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Maximum time that a test waits for anything; then it fails. Even on a busy machine, nothing that succeeds takes this
/// long.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);
/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until `look` returns a value. Returns the value and the time that passed.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> (T, Duration) {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return (found, began.elapsed());
        }
        assert!(began.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until a condition holds. Returns the time that passed.
#[track_caller]
pub(crate) fn until_true(what: &str, mut look: impl FnMut() -> bool) -> Duration {
    until(what, || look().then_some(())).1
}

/// Fails if a figure exceeds its limit. This is only for counts and bytes: durations depend on the machine, so they are
/// printed with [`crate::print_duration`] and not asserted.
#[track_caller]
pub(crate) fn at_most<T: PartialOrd + Debug>(what: &str, value: T, bound: T) {
    println!("figure: {what}: {value:?}, at most {bound:?}");
    assert!(value <= bound, "{what}: {value:?} is over {bound:?}");
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "`kill {name} {pid}` failed");
}

/// Waits until a process that was told to exit has exited. If it does not exit, it is killed, and the test fails.
pub(crate) fn wait_or_kill(child: &mut Child) {
    let deadline = Instant::now() + DEADLINE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            assert!(std::thread::panicking(), "the process did not exit within {DEADLINE:?}");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether a process is running. A process that has exited and waits to be reaped is not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Returns all processes whose command line contains `text`. If `text` is the path of a test's folder, this finds
/// everything that the test started, even processes whose parent has changed.
pub(crate) fn processes_with(text: &str) -> BTreeSet<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text) && is_alive(*pid)
        })
        .collect()
}

/// Returns the number of open file descriptors of a process.
pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns the peak memory of a process, in bytes. The kernel updates this value in batches for each thread, so a later
/// value can be slightly smaller.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// Returns the CPU time of a process, in clock ticks.
pub(crate) fn cpu_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Returns the number of lines in a server's log that begin with `word`.
pub(crate) fn count(log: &Path, word: &str) -> usize {
    lines(log, word).len()
}

/// Returns the lines in a server's log that begin with `word`, without that word.
pub(crate) fn lines(log: &Path, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let rest = |line: &str| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
    text.lines().filter_map(rest).collect()
}

/// Returns the process id of a server's last start, or `None` if the log contains no start.
pub(crate) fn last_start(log: &Path) -> Option<u32> {
    lines(log, "start").last()?.parse().ok()
}
