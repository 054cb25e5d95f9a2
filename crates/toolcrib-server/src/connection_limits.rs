//! How many connections the process can afford: each takes a file descriptor, and so does everything else.

use crate::connections::ConnectionLimits;

/// Maximum number of connections by default, however many files the process may open. An idle connection takes
/// some 10 KB of memory.
const MAX_DEFAULT: usize = 10_000;

/// The limits to use. `total` and `per_address` are as configured.
///
/// By default, half of the files that the process may open are for connections: the request that a client sends
/// to the proxy needs another connection to the provider. A configured total may take three quarters of them.
pub(crate) fn connection_limits(
    total: Option<usize>,
    per_address: Option<usize>,
) -> ConnectionLimits {
    limits(max_files(), total, per_address)
}

fn limits(files: usize, total: Option<usize>, per_address: Option<usize>) -> ConnectionLimits {
    let (most, default) = ((files / 4 * 3).max(1), (files / 2).clamp(1, MAX_DEFAULT));
    if let Some(total) = total.filter(|total| *total > most) {
        tracing::warn!(
            configured = total,
            used = most,
            files,
            "`http.connections` is more than three quarters of the files that this process may open; raise `ulimit -n`"
        );
    }
    let total = total.unwrap_or(default).min(most);
    // One address must not take everything. A proxy server on another machine is one address, hence not less.
    ConnectionLimits { total, per_address: per_address.unwrap_or((total / 2).max(1)) }
}

#[cfg(unix)]
fn max_files() -> usize {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize)
}

/// Other systems have no such limit on sockets.
#[cfg(not(unix))]
fn max_files() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_stays_below_the_limit_of_files() {
        let limit = |files, total, each| {
            let ConnectionLimits { total, per_address } = limits(files, total, each);
            (total, per_address)
        };
        assert_eq!(limit(256, None, None), (128, 64));
        assert_eq!(limit(1024, None, None), (512, 256));
        assert_eq!(limit(usize::MAX, None, None), (10_000, 5_000));
        assert_eq!(limit(1024, Some(768), Some(9)), (768, 9));
        assert_eq!(limit(1024, Some(769), None), (768, 384));
        assert_eq!(limit(1 << 20, Some(50_000), None), (50_000, 25_000));
        assert_eq!(limit(1, None, None), (1, 1));
    }
}
