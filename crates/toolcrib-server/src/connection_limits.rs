//! Derives the maximum number of connections from the number of file descriptors that the process may have, because
//! each connection takes one.

use crate::connections::ConnectionLimits;

/// Maximum of the default limit, even if the process may open more files. An idle connection takes about 10 KB of
/// memory, so this many take about 100 MB.
const MAX_DEFAULT: usize = 10_000;

/// Returns the limits to use. `total` and `per_address` are the configured limits.
///
/// By default, connections may use half of the files that the process may open, because each request to the proxy needs
/// another connection to the provider. A configured total may use up to three quarters of these files.
pub(crate) fn connection_limits(
    total: Option<usize>,
    per_address: Option<usize>,
) -> ConnectionLimits {
    limits(max_files(), total, per_address)
}

fn limits(files: usize, total: Option<usize>, per_address: Option<usize>) -> ConnectionLimits {
    let (max, default) = ((files / 4 * 3).max(1), (files / 2).clamp(1, MAX_DEFAULT));
    if let Some(total) = total.filter(|total| *total > max) {
        tracing::warn!(
            configured = total,
            used = max,
            files,
            "`http.connections` is more than three quarters of the files that this process may open; raise `ulimit -n`"
        );
    }
    let total = total.unwrap_or(default).min(max);
    // One address must not take all connections. It may take half of them, because all clients of a reverse proxy on
    // another machine have the same address.
    ConnectionLimits { total, per_address: per_address.unwrap_or((total / 2).max(1)) }
}

#[cfg(unix)]
fn max_files() -> usize {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize)
}

/// Returns no limit, because systems other than Unix do not limit the number of sockets.
#[cfg(not(unix))]
fn max_files() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_stays_below_the_limit_on_files() {
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
