//! The config file, loaded again when it changes.
//!
//! The file is polled twice a second instead of watched: editors replace files, network file systems and
//! containers send no events, and one read costs almost nothing. A file that cannot be used is logged as
//! an error, and the config in use stays. The listener's token and certificate are looked at as often.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_mcp::Gateway;
use toolcrib_server::HttpSettings;

use super::listener::Listener;
use crate::args::Overrides;
use crate::config::gateway::{Loaded, load};
use crate::config::location::Location;
use crate::output::Failure;

/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// A config file, and its bytes when it was last loaded.
pub(super) struct WatchedFile {
    location: Location,
    loaded: Option<Vec<u8>>,
}

impl WatchedFile {
    /// A file that was loaded just now. It is read here and not by the task, which may start after a change.
    pub(super) fn new(location: Location) -> Self {
        Self { loaded: std::fs::read(location.path()).ok(), location }
    }

    /// Whether the file has other bytes than when it was last loaded.
    async fn has_changed(&mut self) -> bool {
        let now = tokio::fs::read(self.location.path()).await.ok();
        // A file that is gone for a moment is being replaced.
        if now.is_none() || now == self.loaded {
            return false;
        }
        self.loaded = now;
        true
    }
}

/// What is in use, and where it comes from.
pub(super) struct Watched {
    /// The `[http]` section.
    pub(super) http: HttpSettings,
    /// The config file, if there is one.
    pub(super) file: Option<WatchedFile>,
    /// What the command line says, overrides and a vector table, which stays.
    pub(super) stated: (Overrides, Option<PathBuf>),
}

/// Reloads the gateway whenever the config file changes, and with `others` what else takes a new config; if that
/// fails, the config is not used at all. Refreshes the listener, if there is one.
pub(super) async fn watch(
    gateway: Arc<Gateway>,
    mut watched: Watched,
    mut listener: Option<Listener>,
    others: impl Fn(&Loaded) -> Result<(), Failure> + Send,
) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if let Some(file) = &mut watched.file
            && file.has_changed().await
        {
            let location = file.location.clone();
            watched.reload(&location, &gateway, listener.as_mut(), &others);
        }
        if let Some(listener) = &mut listener {
            listener.refresh();
        }
    }
}

impl Watched {
    fn reload(
        &mut self,
        location: &Location,
        gateway: &Gateway,
        listener: Option<&mut Listener>,
        others: impl Fn(&Loaded) -> Result<(), Failure>,
    ) {
        let before = gateway.config();
        let (overrides, vectors) = &self.stated;
        let loaded = load(Some(location), overrides)
            .and_then(|new| new.with_vectors(vectors.as_deref(), Some(&before.settings)));
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
                let is_fixed = fixed(&new.http) == fixed(&self.http)
                    && new.gateway.gateway.limits == before.gateway.limits;
                if !is_fixed {
                    tracing::warn!(
                        "`[http]` or `[gateway.limits]` changed; restart to apply the change: only the tokens and the files of `tls` are reloaded"
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
    let changeable = HttpSettings { token: None, admin_token: None, tls: None, ..http.clone() };
    (changeable, http.tls.is_some())
}
