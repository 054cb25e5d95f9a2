//! Looking at processes, and waiting for conditions.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine. Reaching it is a failure, never a way to wait.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);
/// Between two looks at a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Looks until there is something, and returns it with the time it took.
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

/// Waits until a condition holds, and returns how long that took.
#[track_caller]
pub(crate) fn until_true(what: &str, mut look: impl FnMut() -> bool) -> Duration {
    until(what, || look().then_some(())).1
}

/// Fails when a figure is over its bound. For counts and bytes: how long something takes says as much about
/// the machine as about the gateway, so times are printed with [`crate::took`] and not asserted.
#[track_caller]
pub(crate) fn at_most<T: PartialOrd + Debug>(what: &str, value: T, bound: T) {
    println!("figure: {what}: {value:?}, at most {bound:?}");
    assert!(value <= bound, "{what}: {value:?} is over {bound:?}");
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill {name} {pid}");
}

/// Waits for the end of a process that was told to end. One that does not end is killed, and fails the test.
pub(crate) fn wait_or_kill(child: &mut Child) {
    let deadline = Instant::now() + DEADLINE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            assert!(
                std::thread::panicking(),
                "it was told to end, and did not within {DEADLINE:?}"
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether a process is there and not only waiting to be collected.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Every process whose command line has `text` in it. Tests name their folders, so this finds what
/// they started, whoever its parent is by now.
pub(crate) fn processes_with(text: &str) -> BTreeSet<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text) && is_alive(*pid)
        })
        .collect()
}

/// How many descriptors a process holds.
pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The most memory a process ever had, in bytes. The kernel counts each thread's memory in batches, so a later figure
/// can be a little smaller.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// The processor time that a process has used, in ticks of the clock.
pub(crate) fn cpu_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// How many lines of a server's log begin with `word`.
pub(crate) fn count(log: &Path, word: &str) -> usize {
    lines(log, word).len()
}

/// What follows `word` in the lines of a server's log that begin with it.
pub(crate) fn lines(log: &Path, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let rest = |line: &str| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
    text.lines().filter_map(rest).collect()
}

/// The process id of a server's last start.
pub(crate) fn last_start(log: &Path) -> Option<u32> {
    lines(log, "start").last()?.parse().ok()
}
