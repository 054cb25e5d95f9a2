//! Reloads the config file when it changes.
//!
//! The file is polled twice a second; one read costs almost nothing. Rejected: file system events, because a watch on
//! the file is lost when an editor replaces the file, and because network file systems and containers send no events. A
//! file that cannot be used is logged as an error, and the current config stays in use. The listener's token and
//! certificate are checked at the same interval.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_mcp::Gateway;
use toolcrib_server::HttpSettings;

use super::listener::Listener;
use crate::args::{Overrides, VectorArgs};
use crate::config::location::Location;
use crate::config::network::{LoadedConfig, load_in};
use crate::deep::Embedding;
use crate::output::Failure;

/// Interval at which the file is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Time between two reads of a changed file. Many editors empty a file and then write it. If the file is the same after
/// this time, it is complete.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// A config file, and its content when it was last loaded.
pub(super) struct WatchedFile {
    location: Location,
    loaded: Option<Vec<u8>>,
    /// New content that was read once.
    unsettled: Option<Vec<u8>>,
}

/// What one read of the file means.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    Unchanged,
    /// The content is new, but the file may still be being written.
    Unsettled,
    /// The content is new and complete.
    Changed,
}

impl WatchedFile {
    /// Remembers the content of a file that has just been loaded. The content is read here rather than by the task that
    /// watches the file, because the file may change before that task starts.
    pub(super) fn new(location: Location) -> Self {
        Self { loaded: std::fs::read(location.path()).ok(), location, unsettled: None }
    }

    /// Whether the content has changed since the last change that was reported. Each change is reported once.
    async fn has_changed(&mut self) -> bool {
        let mut reading = self.read().await;
        if reading == Reading::Unsettled {
            tokio::time::sleep(SETTLE_TIME).await;
            reading = self.read().await;
        }
        reading == Reading::Changed
    }

    async fn read(&mut self) -> Reading {
        let content = tokio::fs::read(self.location.path()).await.ok();
        self.compare(content)
    }

    /// Compares the content with what was read before. New content must be read twice: a part of a config may be a valid
    /// config, and would stop the servers that are missing from it.
    fn compare(&mut self, content: Option<Vec<u8>>) -> Reading {
        let before = self.unsettled.take();
        // A missing file does not count as a change, because it is probably being replaced.
        if content.is_none() || content == self.loaded {
            Reading::Unchanged
        } else if content == before {
            self.loaded = content;
            Reading::Changed
        } else {
            self.unsettled = content;
            Reading::Unsettled
        }
    }
}

/// The config in use, and where it comes from.
pub(super) struct ConfigWatch {
    /// The `[http]` section.
    pub(super) http: HttpSettings,
    /// The config file, if there is one.
    pub(super) file: Option<WatchedFile>,
    /// The overrides and the vector table from the command line, which apply to every reloaded config.
    pub(super) command_line: (Overrides, VectorArgs),
    /// The working folder of the client that the gateway was started for.
    pub(super) folder: PathBuf,
}

/// Reloads the gateway whenever the config file changes. `apply_elsewhere` first applies the config to the parts
/// outside the gateway; if that fails, the config is not used at all. Also refreshes the listener, if there is one.
pub(super) async fn watch_config(
    gateway: Arc<Gateway>,
    mut watch: ConfigWatch,
    mut listener: Option<Listener>,
    apply_elsewhere: impl Fn(&LoadedConfig) -> Result<(), Failure> + Send,
) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if let Some(file) = &mut watch.file
            && file.has_changed().await
        {
            let location = file.location.clone();
            watch.reload(&location, &gateway, listener.as_mut(), &apply_elsewhere);
        }
        if let Some(listener) = &mut listener {
            listener.refresh();
        }
    }
}

impl ConfigWatch {
    fn reload(
        &mut self,
        location: &Location,
        gateway: &Gateway,
        listener: Option<&mut Listener>,
        apply_elsewhere: impl Fn(&LoadedConfig) -> Result<(), Failure>,
    ) {
        let before = gateway.config();
        let (overrides, vectors) = &self.command_line;
        let loaded = load_in(Some(location), overrides, &self.folder).and_then(|new| {
            new.with_vectors(vectors, Some(&before.settings), Embedding::InBackground)
        });
        match loaded.and_then(|new| apply_elsewhere(&new).map(|()| new)) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                let new = loaded.sections;
                tracing::info!(
                    servers = new.gateway.servers.len(),
                    "the config changed and was reloaded"
                );
                let needs_restart = settings_that_need_restart(&new.http)
                    != settings_that_need_restart(&self.http)
                    || new.gateway.gateway.limits != before.gateway.limits;
                if needs_restart {
                    tracing::warn!(
                        "`[http]` or `[gateway.limits]` changed: except for the tokens and the files of `tls`, the changes take effect after a restart of `toolcrib serve` (`toolcrib stop` for the background gateway)"
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
                    "the changed config cannot be used; the previous one stays in use: {failure}"
                );
            }
        }
    }
}

/// Returns the part of `[http]` that cannot change while the listener runs, and whether TLS is configured.
fn settings_that_need_restart(http: &HttpSettings) -> (HttpSettings, bool) {
    let fixed = HttpSettings { token: None, admin_token: None, tls: None, ..http.clone() };
    (fixed, http.tls.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_being_written_is_not_loaded() {
        let location = Location::Named("no-such-file.toml".into());
        let mut file = WatchedFile::new(location);
        let mut compare = |content: Option<&str>| file.compare(content.map(Into::into));
        for content in ["", "[servers.a]\n", "[servers.a]\n[servers.b]\n"] {
            assert_eq!(compare(Some(content)), Reading::Unsettled, "{content}");
        }
        assert_eq!(compare(Some("[servers.a]\n[servers.b]\n")), Reading::Changed);
        assert_eq!(compare(Some("[servers.a]\n[servers.b]\n")), Reading::Unchanged);
        assert_eq!(compare(None), Reading::Unchanged);
        // A change that is undone before it is loaded.
        assert_eq!(compare(Some("")), Reading::Unsettled);
        assert_eq!(compare(Some("[servers.a]\n[servers.b]\n")), Reading::Unchanged);
        assert_eq!(compare(Some("")), Reading::Unsettled);
        // The user may also empty the file.
        assert_eq!(compare(Some("")), Reading::Changed);
    }
}
