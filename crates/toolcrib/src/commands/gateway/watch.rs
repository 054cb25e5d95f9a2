//! The config file, looked at again when it changes.
//!
//! By asking twice a second, and not by being told: editors replace files, networks and containers do not
//! tell, and one question costs nothing. A file that cannot be used is said to be so, and the config
//! that runs goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_mcp::Gateway;

use crate::config::gateway::load;

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// Reloads the gateway whenever the file changes. A folder of vectors that was named when it started
/// stays.
pub(super) async fn watch(gateway: Arc<Gateway>, path: PathBuf, vectors: Option<PathBuf>) {
    let mut before = tokio::fs::read(&path).await.ok();
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let now = tokio::fs::read(&path).await.ok();
        // A file that is gone for a moment is being replaced.
        if now.is_none() || now == before {
            continue;
        }
        before = now;
        let before = gateway.config();
        let loaded = load(Some(&path), None);
        match loaded.and_then(|new| new.with_vectors(vectors.as_deref(), Some(&before.settings))) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                tracing::info!(
                    servers = loaded.config.servers.len(),
                    "the config changed and is in use"
                );
                gateway.reload(loaded.config);
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
