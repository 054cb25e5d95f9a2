//! Measures how much memory processes use, together with all processes below them.

use std::collections::BTreeMap;

/// A process, as the system lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListedProcess {
    id: u32,
    parent: u32,
    /// Resident memory, in bytes.
    resident: u64,
}

/// The resident memory of all processes at one moment.
#[derive(Debug, Default)]
pub(crate) struct ProcessMemory {
    by_parent: BTreeMap<u32, Vec<ListedProcess>>,
    by_id: BTreeMap<u32, ListedProcess>,
}

impl ProcessMemory {
    /// Lists all processes. Blocks. If the system cannot list them, all memory is unknown.
    pub(crate) fn now() -> Self {
        list().map(Self::new).unwrap_or_default()
    }

    fn new(processes: Vec<ListedProcess>) -> Self {
        let mut by_parent = BTreeMap::<u32, Vec<ListedProcess>>::new();
        for process in &processes {
            by_parent.entry(process.parent).or_default().push(*process);
        }
        Self { by_parent, by_id: processes.into_iter().map(|one| (one.id, one)).collect() }
    }

    /// Returns the memory of a process and of all processes below it, in bytes. Pages that several processes share are
    /// counted for each of them.
    pub(crate) fn of_tree(&self, root: u32) -> Option<u64> {
        let mut total = self.by_id.get(&root)?.resident;
        let mut below = vec![root];
        while let Some(parent) = below.pop() {
            for child in self.by_parent.get(&parent).into_iter().flatten() {
                total += child.resident;
                below.push(child.id);
            }
        }
        Some(total)
    }

    /// Returns the memory of one process without the processes below it, in bytes.
    pub(crate) fn of_process(&self, id: u32) -> Option<u64> {
        self.by_id.get(&id).map(|process| process.resident)
    }
}

/// Lists all processes. `ps` reports the same on every Unix system, but is missing in small containers.
#[cfg(target_os = "linux")]
fn list() -> Option<Vec<ListedProcess>> {
    let page = rustix::param::page_size() as u64;
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may have ended in the meantime.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        if let Some((parent, pages)) = parse_stat(&stat) {
            processes.push(ListedProcess { id, parent, resident: pages * page });
        }
    }
    Some(processes)
}

/// Parses the parent and the number of resident pages from `/proc/PID/stat`. The program's name is in parentheses and
/// may itself contain parentheses and spaces, so parsing begins after the last `)`.
#[cfg(target_os = "linux")]
fn parse_stat(stat: &[u8]) -> Option<(u32, u64)> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    Some((parent, fields.nth(19)?.parse().ok()?))
}

/// Lists all processes with `ps`.
#[cfg(not(target_os = "linux"))]
fn list() -> Option<Vec<ListedProcess>> {
    let done = std::process::Command::new("ps").args(["-axo", "pid=,ppid=,rss="]).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    let processes = text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (id, parent, kibibytes) = (next()?, next()?, next()?);
        Some(ListedProcess {
            id: u32::try_from(id).ok()?,
            parent: u32::try_from(parent).ok()?,
            resident: kibibytes << 10,
        })
    });
    Some(processes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_tree_is_the_sum_of_its_processes() {
        let process = |id, parent, resident| ListedProcess { id, parent, resident };
        let all = [process(1, 0, 100), process(2, 1, 20), process(3, 2, 3), process(4, 1, 5000)];
        let memory = ProcessMemory::new(all.to_vec());
        assert_eq!(memory.of_tree(2), Some(23));
        assert_eq!(memory.of_tree(1), Some(5123));
        assert_eq!(memory.of_process(1), Some(100));
        assert_eq!(memory.of_tree(9), None);
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        let own = ProcessMemory::now().of_process(std::process::id()).unwrap();
        assert!(own > 1 << 20, "{own}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn program_names_may_contain_parentheses_and_spaces() {
        let stat = b"7 (a) S 1 (b) S 5 6 6 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 2000 42 18";
        assert_eq!(parse_stat(stat), Some((5, 42)));
        assert_eq!(parse_stat(b"7 (sh"), None);
    }
}
