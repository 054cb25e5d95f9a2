//! What is loaded again when it changes: the config file, and the listener's token and certificate.
//!
//! Files are polled twice a second instead of watched: editors replace files, network file systems and
//! containers send no events, and one read costs almost nothing. A file that cannot be used is logged as
//! an error, and what was in use stays.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_mcp::Gateway;
use toolcrib_server::HttpSettings;

use super::listener::Listener;
use crate::args::Overrides;
use crate::config::gateway::load;
use crate::config::location::Location;

/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// What is in use, and where it comes from.
pub(super) struct Watched {
    /// The `[http]` section.
    pub(super) http: HttpSettings,
    /// The config file, if there is one.
    pub(super) location: Option<Location>,
    /// What the command line says, overrides and a vector table, which stays.
    pub(super) stated: (Overrides, Option<PathBuf>),
}

/// Reloads the gateway whenever the config file changes, and refreshes the listener, if there is one.
pub(super) async fn watch(
    gateway: Arc<Gateway>,
    mut watched: Watched,
    mut listener: Option<Listener>,
) {
    let mut before = watched.read().await;
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let now = watched.read().await;
        // A file that is gone for a moment is being replaced.
        if now.is_some() && now != before {
            before = now;
            watched.reload(&gateway, listener.as_mut());
        }
        if let Some(listener) = &mut listener {
            listener.refresh();
        }
    }
}

impl Watched {
    async fn read(&self) -> Option<Vec<u8>> {
        tokio::fs::read(self.location.as_ref()?.path()).await.ok()
    }

    fn reload(&mut self, gateway: &Gateway, listener: Option<&mut Listener>) {
        let before = gateway.config();
        let (overrides, vectors) = &self.stated;
        let loaded = load(self.location.as_ref(), overrides);
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
                let is_fixed = fixed(&new.http) == fixed(&self.http)
                    && new.gateway.gateway.limits == before.gateway.limits;
                if !is_fixed {
                    tracing::warn!(
                        "`[http]`, except for `token` and the files of `tls`, and `[gateway.limits]` are read when the gateway starts: start it again"
                    );
                }
                if let Some(listener) = listener {
                    listener.configure(&new.http);
                }
                self.http = new.http;
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

/// The part of `[http]` that a running listener cannot change, and whether it has TLS.
fn fixed(http: &HttpSettings) -> (HttpSettings, bool) {
    (HttpSettings { token: None, tls: None, ..http.clone() }, http.tls.is_some())
}
