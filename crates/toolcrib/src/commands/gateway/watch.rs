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
use crate::config::gateway::{Loaded, load};
use crate::output::Failure;

/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// A config file, and its bytes when it was last loaded.
pub(super) struct WatchedFile {
    path: PathBuf,
    loaded: Option<Vec<u8>>,
}

impl WatchedFile {
    /// A file that was loaded just now. It is read here and not by the task, which may start after a change.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { loaded: std::fs::read(&path).ok(), path }
    }
}

/// Reloads the gateway whenever the file changes, and with `others` what else takes a new config; if that fails, the
/// config is not used at all. `http` is what the file says now. What the command line says, `overrides` and a vector
/// table, stays.
pub(super) async fn watch(
    gateway: Arc<Gateway>,
    mut http: HttpSettings,
    WatchedFile { path, loaded: mut before }: WatchedFile,
    (overrides, vectors): (Overrides, Option<PathBuf>),
    others: impl Fn(&Loaded) -> Result<(), Failure> + Send,
) {
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
        let loaded = load(Some(&path), &overrides);
        let loaded =
            loaded.and_then(|new| new.with_vectors(vectors.as_deref(), Some(&before.settings)));
        match loaded.and_then(|new| others(&new).map(|()| new)) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                let new = loaded.sections;
                tracing::info!(
                    servers = new.gateway.servers.len(),
                    "the config changed and is in use"
                );
                // The admin token is in use already.
                http.admin_token.clone_from(&new.http.admin_token);
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
