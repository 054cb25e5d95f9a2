//! Keeps one server connected: connects, and restarts it after a delay whenever the connection ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::connect;
use super::connection::Connection;
use super::connection_failure::ConnectionFailure;
use super::monitor::ConnectionEnd;
use super::restart_backoff::{self, RestartBackoff};
use super::{ProtocolEra, ResourceKey, ServerPhase, ServerStatus, Upstream};
use crate::config::seconds;
use crate::process::Process;

/// How long a starting server holds its start permit. If it takes longer, it continues without the permit, and the next
/// server may start.
const START_PERMIT_TIME: Duration = Duration::from_secs(3);
/// Maximum time for sending the last cancellations to a server that is stopped.
const CANCELLATION_TIMEOUT: Duration = Duration::from_millis(200);

impl Upstream {
    /// Connects, and restarts the server whenever its connection ends, until the gateway stops it.
    pub(crate) async fn run_with_restarts(self: Arc<Self>) {
        let _ended = self.ended.clone().drop_guard();
        if !self.config().enabled {
            return;
        }
        let mut backoff = RestartBackoff::default();
        let mut restarts = 0;
        while self.wait_until_needed().await {
            let ended = tokio::select! {
                ended = self.connect_once() => ended,
                () = self.stopped() => break,
            };
            let Some((connected_for, failure)) = ended else {
                backoff = RestartBackoff::default();
                continue;
            };
            self.connection.store(None);
            let jitter = restart_backoff::jitter(&self.name, restarts);
            let delay = backoff.next_delay(connected_for, jitter);
            restarts += 1;
            tracing::warn!(server = %self.name, why = failure.reason, retry_in_ms = delay.as_millis(), "server is down");
            self.set_status(|status| {
                status.phase =
                    if failure.needs_login { ServerPhase::NeedsLogin } else { ServerPhase::Down };
                status.needs_login = failure.needs_login;
                status.reason = Some(failure.reason);
                status.hint = failure.hint;
            });
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.restart.notified() => {}
                () = self.stop.cancelled() => break,
            }
            self.shared.metrics.restarted(&self.name);
            self.set_status(|status| status.phase = ServerPhase::Connecting);
        }
        self.connection.store(None);
        self.set_status(|status| status.phase = ServerPhase::Off);
    }

    /// Restarts the server if it runs, and connects at once if it waits for the next attempt. Returns false if it does
    /// not run because nobody needs it.
    pub(crate) fn restart(&self) -> bool {
        let runs = !matches!(self.status().phase, ServerPhase::Idle | ServerPhase::Off);
        if runs {
            self.restart.notify_one();
        }
        runs
    }

    /// Waits until the server is stopped, then gives pending cancellations a moment to reach it.
    async fn stopped(&self) {
        self.stop.cancelled().await;
        if let Some(connection) = self.connection() {
            let cancellations = &connection.tap.cancellations;
            cancellations.close();
            let _ = tokio::time::timeout(CANCELLATION_TIMEOUT, cancellations.wait()).await;
        }
    }

    /// Runs one connection from beginning to end. Returns how long it lasted and why it ended, or `None` if it ended
    /// because nobody needed the server.
    async fn connect_once(&self) -> Option<(Duration, ConnectionFailure)> {
        let Ok(permit) = self.shared.start_permits.acquire().await else {
            return Some((Duration::ZERO, ConnectionFailure::new("stopping")));
        };
        let began = Instant::now();
        let timeout = seconds(self.config().start_timeout);
        let connected = async {
            let mut connecting = std::pin::pin!(tokio::time::timeout(timeout, self.connect()));
            let soon = tokio::time::timeout(START_PERMIT_TIME, &mut connecting).await;
            // A slow server must not prevent other servers from starting.
            drop(permit);
            match soon {
                Ok(connected) => connected,
                Err(_) => connecting.await,
            }
        };
        let connected = connected.await;
        let mut connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(failure)) => return Some((Duration::ZERO, failure)),
            Err(_) => return Some((Duration::ZERO, ConnectionFailure::timed_out(timeout))),
        };
        let up = Instant::now();
        let handle = connection.handle.clone();
        let era =
            if handle.uses_newer_protocol() { ProtocolEra::Newer } else { ProtocolEra::Older };
        tracing::info!(server = %self.name, tools = self.lists().map_or(0, |lists| lists.tools.len()), ms = began.elapsed().as_millis(), "server is up");
        let process_id = connection.process.as_ref().map_or(0, Process::pid);
        self.process_id.store(process_id, Ordering::Relaxed);
        self.connection.store(Some(Arc::new(handle.clone())));
        self.set_status(|status| status.set_connected(era, began.elapsed(), &handle.server_info));
        // A process that was started only for its lists is not kept for the idle time.
        if !self.every_client_needs_own_process() {
            self.demand.touch();
        }
        let failure = match self.monitor_until_closed(&mut connection).await {
            ConnectionEnd::Failed(failure) => failure,
            ConnectionEnd::Idle => {
                tracing::info!(server = %self.name, "server is idle and was stopped");
                connection.end(None).await;
                self.process_id.store(0, Ordering::Relaxed);
                return None;
            }
            ConnectionEnd::Restart => {
                tracing::info!(server = %self.name, "server is restarted by the user");
                self.connection.store(None);
                self.set_status(ServerStatus::set_starting);
                connection.end(Some("it was restarted by the user".into())).await;
                self.process_id.store(0, Ordering::Relaxed);
                return None;
            }
        };
        let failure = connection.masked(failure);
        self.connection.store(None);
        // The status is changed first, because reading the server's exit status and stderr may take a moment.
        self.set_status(|status| {
            status.phase = ServerPhase::Down;
            status.reason = Some(failure.reason.clone());
        });
        let failure = connection.close(failure).await;
        self.process_id.store(0, Ordering::Relaxed);
        Some((up.elapsed(), failure))
    }

    async fn connect(&self) -> Result<Connection, ConnectionFailure> {
        let (updates, mut updated) = mpsc::channel(64);
        let connection = connect::connect(self, updates).await?;
        let (server, shared) = (self.resource(""), Arc::clone(&self.shared));
        tokio::spawn(async move {
            while let Some(uri) = updated.recv().await {
                shared.subscriptions.notify(ResourceKey { uri, ..server.clone() });
            }
        });
        match self.refresh_lists(&connection.handle).await {
            Ok(()) => Ok(connection),
            Err(error) => Err(connection.close(ConnectionFailure::new(error)).await),
        }
    }
}
