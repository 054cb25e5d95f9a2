//! Lists the children of a process.
//!
//! This works only on Linux, with `/proc`. A warden that is a child subreaper becomes the parent of every orphan among
//! its descendants, including those that left the process group with `setsid`. So every process that still has to be
//! ended is a child of the warden, or becomes one when its own parent exits. Children stay in `/proc` until the warden
//! reaps them, so an id found here cannot belong to another process.

use std::io;

use rustix::process::Pid;

/// A child process and its process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChildProcess {
    pub(super) pid: Pid,
    pub(super) group: Option<Pid>,
}

/// Returns the children of `parent`, including exited ones that were not reaped.
#[cfg(target_os = "linux")]
pub(super) fn children_of(parent: Pid) -> io::Result<Vec<ChildProcess>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Ok(entry) = entry else { continue };
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may have been reaped in the meantime.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let Some((its_parent, group)) = parse(&stat) else { continue };
        if let (Some(pid), true) = (Pid::from_raw(pid), its_parent == parent.as_raw_pid()) {
            children.push(ChildProcess { pid, group: Pid::from_raw(group) });
        }
    }
    Ok(children)
}

/// Returns an error, because children cannot be listed on this system. Only the process group is known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn children_of(_parent: Pid) -> io::Result<Vec<ChildProcess>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Parses the parent and the process group from `/proc/PID/stat`. The program's name is in parentheses and may itself
/// contain parentheses and spaces, so parsing begins after the last `)`.
#[cfg(target_os = "linux")]
fn parse(stat: &[u8]) -> Option<(i32, i32)> {
    let after = stat.iter().rposition(|b| *b == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace();
    let _state = fields.next()?;
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn program_names_may_contain_parentheses_and_spaces() {
        assert_eq!(parse(b"7 (sh) S 5 6 6 0 -1"), Some((5, 6)));
        assert_eq!(parse(b"7 (a) S 1 (b) R 5 6 6 0"), Some((5, 6)));
        assert_eq!(parse(b"7 (caf\xff) Z 5 6"), Some((5, 6)));
        assert_eq!(parse(b"7 (sh"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_child_is_listed_until_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let (me, pid) = (rustix::process::getpid(), Pid::from_child(&child));
        let listed = || children_of(me).unwrap().iter().any(|c| c.pid == pid);
        assert!(listed());
        child.wait().unwrap();
        assert!(!listed());
    }
}
