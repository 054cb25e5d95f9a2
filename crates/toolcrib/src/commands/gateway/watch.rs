//! The config file, loaded again when it changes.
//!
//! The file is polled twice a second instead of watched: editors replace files, network file systems and
//! containers send no events, and one read costs almost nothing. A file that cannot be used is logged as
//! an error, and the config in use stays.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_mcp::Gateway;
use toolcrib_server::HttpSettings;

use crate::args::Overrides;
use crate::config::gateway::load;
use crate::config::location::Location;

/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads the gateway whenever the file changes. `http` is what the file says now. What the
/// command line says, `overrides` and a vector table, stays.
pub(super) async fn watch(
    gateway: Arc<Gateway>,
    mut http: HttpSettings,
    location: Location,
    (overrides, vectors): (Overrides, Option<PathBuf>),
) {
    let mut before = tokio::fs::read(location.path()).await.ok();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let now = tokio::fs::read(location.path()).await.ok();
        // A file that is gone for a moment is being replaced.
        if now.is_none() || now == before {
            continue;
        }
        before = now;
        let before = gateway.config();
        let loaded = load(Some(&location), &overrides);
        match loaded.and_then(|new| new.with_vectors(vectors.as_deref(), Some(&before.settings))) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                let new = loaded.sections;
                tracing::info!(
                    servers = new.gateway.servers.len(),
                    "the config changed and is in use"
                );
                if new.http != http || new.gateway.gateway.limits != before.gateway.limits {
                    tracing::warn!(
                        "`[http]` and `[gateway.limits]` are read when the gateway starts: start it again"
                    );
                }
                http = new.http;
                gateway.reload(new.gateway);
            }
            Err(failure) => {
                tracing::error!(
                    hint = failure.hint(),
                    "the config changed and cannot be used; the one before stays: {failure}"
                );
            }
        }
    }
}
