//! Inspects processes and waits for conditions.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine. Reaching it is a failure, never a way to wait.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);
/// Interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until there is a value, and returns it with the time it took.
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

/// Fails if a figure exceeds its limit. For counts and bytes only: durations depend on the machine, so they are printed
/// with [`crate::print_duration`] and not asserted.
#[track_caller]
pub(crate) fn at_most<T: PartialOrd + Debug>(what: &str, value: T, bound: T) {
    println!("figure: {what}: {value:?}, at most {bound:?}");
    assert!(value <= bound, "{what}: {value:?} is over {bound:?}");
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill {name} {pid}");
}

/// Waits until a process that was told to exit has done so. If it does not, it is killed, and the test fails.
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

/// Whether a process is running, and not only waiting to be reaped.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// All processes whose command line contains `text`. Tests name their folders, so this finds what they started,
/// whatever its parent is now.
pub(crate) fn processes_with(text: &str) -> BTreeSet<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text) && is_alive(*pid)
        })
        .collect()
}

/// Number of open file descriptors of a process.
pub(crate) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Peak memory of a process, in bytes. The kernel counts each thread's memory in batches, so a later value can be
/// slightly smaller.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// CPU time of a process, in clock ticks.
pub(crate) fn cpu_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Number of lines in a server's journal that begin with `word`.
pub(crate) fn count(log: &Path, word: &str) -> usize {
    lines(log, word).len()
}

/// The rest of each line in a server's journal that begins with `word`.
pub(crate) fn lines(log: &Path, word: &str) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let rest = |line: &str| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
    text.lines().filter_map(rest).collect()
}

/// The process id of a server's last start.
pub(crate) fn last_start(log: &Path) -> Option<u32> {
    lines(log, "start").last()?.parse().ok()
}
