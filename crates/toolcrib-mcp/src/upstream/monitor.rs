//! Watches a live connection: fetches the lists again when they change, and checks whether the server still answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use toolcrib_text::shorten;

use super::change_listener::ChangeListener;
use super::connection::Connection;
use super::connection_failure::ConnectionFailure;
use super::debounce::Debounce;
use super::resource_subscriptions::subscribe;
use super::{ConnectionHandle, ServerLists, Upstream, UpstreamError, health_check};
use crate::config::seconds;

/// How often a server that is connected over HTTP is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How long to wait before the next check if the server was busy.
const BUSY_RECHECK: Duration = Duration::from_secs(1);
/// Timeout of a health check, and of subscribing again after a reconnect.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the lists are fetched from a server that does not announce changes.
const REFRESH_INTERVAL: Duration = Duration::from_mins(10);
/// Maximum length of a server's error in the log, in characters.
const ERROR_CHARS: usize = 300;

/// Why a connection ended.
pub(super) enum ConnectionEnd {
    /// Nobody needs the server.
    Idle,
    /// The user restarts the server.
    Restart,
    Failed(ConnectionFailure),
}

impl From<ConnectionFailure> for ConnectionEnd {
    fn from(failure: ConnectionFailure) -> Self {
        Self::Failed(failure)
    }
}

impl Upstream {
    /// Fetches the server's lists and stores them.
    pub(super) async fn refresh_lists(
        &self,
        connection: &ConnectionHandle,
    ) -> Result<(), UpstreamError> {
        let timeout = seconds(self.config().call_timeout);
        let mut lists = ServerLists::fetch(connection, &self.shared.limits, timeout).await?;
        lists.questions = *self.questions.lock();
        let before = self.status().notes;
        for note in lists.notes.iter().filter(|note| !before.contains(note)) {
            self.warn(note);
        }
        self.shared.metrics.refreshed(&self.name);
        self.lists_confirmed.store(true, Ordering::Relaxed);
        let unchanged = self.lists().is_some_and(|before| *before == lists);
        self.set_status(|status| status.notes.clone_from(&lists.notes));
        let is_first = !self.has_fetched_lists.swap(true, Ordering::Relaxed);
        if !unchanged {
            let is_seen = |before: Arc<ServerLists>| before.is_seen_as(&lists);
            if is_first && self.owner().is_some() && !self.lists().is_some_and(is_seen) {
                self.started_with_other_lists.store(true, Ordering::Relaxed);
            }
            self.replace_lists(lists);
        }
        Ok(())
    }

    /// Waits until the connection ends or nobody needs the server, and fetches the lists again when they change.
    pub(super) async fn monitor_until_closed(&self, connection: &mut Connection) -> ConnectionEnd {
        let handle = connection.handle.clone();
        let mut debounce = Debounce::default();
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        check.reset();
        let over_http = connection.is_remote();
        let (mut failed_checks, mut recheck) = (0, None);
        let capabilities = &handle.server_info.capabilities;
        let announces_changes = capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        let mut refresh = tokio::time::interval(REFRESH_INTERVAL);
        refresh.reset();
        if !handle.uses_newer_protocol() {
            for uri in self.watched_resources() {
                let _ = subscribe(&handle, &uri, true, CHECK_TIMEOUT).await;
            }
        }
        self.send_log_level().await;
        let listen = || ChangeListener::start(&handle, self.watched_resources());
        let mut listener = listen();
        loop {
            let due = debounce.due().map(tokio::time::Instant::from_std);
            let idle_at = self.need().ends_at();
            tokio::select! {
                () = handle.tap.closed() => return connection.close_reason().into(),
                failure = connection.wardens_lost() => return failure.into(),
                () = self.demand.changed() => {}
                () = self.restart.notified() => return ConnectionEnd::Restart,
                () = sleep_until(idle_at) => if self.release_connection_if_idle() {
                    return ConnectionEnd::Idle;
                },
                () = handle.tap.lists_changed() => debounce.changed(Instant::now()),
                () = sleep_until(due) => {
                    debounce.refreshed();
                    if let Err(error) = self.refresh_lists(&handle).await {
                        let error = error.to_string();
                        let error = shorten(&error, ERROR_CHARS);
                        self.warn(format_args!("its lists cannot be fetched; the last ones are used: {error}"));
                        self.health_check.notify_one();
                    }
                }
                () = self.health_check.notified() => {
                    // A server that works on a call may be too busy to answer a check. It is checked anyway if a call
                    // timed out or found the connection broken, and the server has been silent for longer than
                    // `CHECK_TIMEOUT`.
                    let reported = self.reported_broken.load(Ordering::Relaxed);
                    let silent = reported && handle.tap.silent_for() > CHECK_TIMEOUT;
                    if !self.is_idle() && !silent {
                        recheck = Some(tokio::time::Instant::now() + BUSY_RECHECK);
                        continue;
                    }
                    recheck = None;
                    match health_check::check(&handle, CHECK_TIMEOUT).await {
                        Ok(()) => {
                            failed_checks = 0;
                            self.reported_broken.store(false, Ordering::Relaxed);
                        }
                        Err(_) if failed_checks == 0 => {
                            failed_checks = 1;
                            self.health_check.notify_one();
                        }
                        Err(error) => return ConnectionFailure::new(error).into(),
                    }
                }
                () = sleep_until(recheck) => self.health_check.notify_one(),
                _ = check.tick(), if over_http => self.health_check.notify_one(),
                // A server that does not announce changes is polled.
                _ = refresh.tick(), if announces_changes != Some(true) => debounce.changed(Instant::now()),
                () = listener.ended() => {
                    listener = listen();
                    debounce.changed(Instant::now());
                }
                () = self.lists_outdated.notified() => debounce.changed(Instant::now()),
                () = self.resources_changed.notified() => {
                    listener = listen();
                    debounce.changed(Instant::now());
                }
            }
        }
    }
}

/// Waits until `due`, or forever if it is `None`.
pub(crate) async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
