//! Keeps one server connected: connects, and restarts it after a delay whenever the connection ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::connect::{self, StartDeadline};
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

/// Why a connection ended.
enum Outcome {
    /// Nobody needed the server any more, or the user restarts it. The server connects again when it is needed.
    Reconnect,
    /// The gateway stops the server.
    Stopped,
    Failed {
        connected_for: Duration,
        failure: ConnectionFailure,
    },
}

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
            let (connected_for, failure) = match self.connect_once().await {
                Outcome::Failed { connected_for, failure } => (connected_for, failure),
                Outcome::Reconnect => {
                    backoff = RestartBackoff::default();
                    continue;
                }
                Outcome::Stopped => break,
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
                () = tokio::time::sleep(delay), if self.shared.restarts_servers => {}
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

    /// Runs one connection from beginning to end. Returns why it ended.
    async fn connect_once(&self) -> Outcome {
        let began = Instant::now();
        self.has_fetched_lists.store(false, Ordering::Relaxed);
        let connected = tokio::select! {
            connected = self.connect_in_time() => connected,
            () = self.stop.cancelled() => return Outcome::Stopped,
        };
        match connected {
            Ok(connection) => self.use_until_closed(connection, began.elapsed()).await,
            Err(failure) => Outcome::Failed { connected_for: Duration::ZERO, failure },
        }
    }

    /// Connects, within the configured time.
    async fn connect_in_time(&self) -> Result<Connection, ConnectionFailure> {
        let permit = self.shared.start_permits.acquire().await;
        let permit = permit.map_err(|_| ConnectionFailure::new("stopping"))?;
        let deadline = StartDeadline::after(seconds(self.config().start_timeout));
        let mut connecting = std::pin::pin!(self.connect(deadline));
        let soon = tokio::time::timeout(START_PERMIT_TIME, &mut connecting).await;
        // The permit is released even if the server has not answered yet, so that other servers can start.
        drop(permit);
        match soon {
            Ok(connected) => connected,
            Err(_) => connecting.await,
        }
    }

    /// Uses a connection until it ends. `start_time` is how long connecting took.
    async fn use_until_closed(&self, mut connection: Connection, start_time: Duration) -> Outcome {
        let up = Instant::now();
        let handle = connection.handle.clone();
        let era =
            if handle.uses_newer_protocol() { ProtocolEra::Newer } else { ProtocolEra::Older };
        tracing::info!(server = %self.name, tools = self.lists().map_or(0, |lists| lists.tools.len()), ms = start_time.as_millis(), "server is up");
        let process_id = connection.process.as_ref().map_or(0, Process::pid);
        self.process_id.store(process_id, Ordering::Relaxed);
        self.connection.store(Some(Arc::new(handle.clone())));
        self.set_status(|status| status.set_connected(era, start_time, &handle.server_info));
        // A process that was started only for its lists is not kept for the idle time.
        if !self.every_client_needs_own_process() {
            self.demand.touch();
        }
        let ended = tokio::select! {
            ended = self.monitor_until_closed(&mut connection) => ended,
            () = self.stopped() => {
                self.connection.store(None);
                connection.end(None).await;
                return Outcome::Stopped;
            }
        };
        let failure = match ended {
            ConnectionEnd::Failed(failure) => failure,
            ConnectionEnd::Idle => {
                tracing::info!(server = %self.name, "server is idle and was stopped");
                connection.end(None).await;
                self.process_id.store(0, Ordering::Relaxed);
                return Outcome::Reconnect;
            }
            ConnectionEnd::Restart => {
                tracing::info!(server = %self.name, "server is restarted by the user");
                self.connection.store(None);
                self.set_status(ServerStatus::set_starting);
                connection.end(Some("it was restarted by the user".into())).await;
                self.process_id.store(0, Ordering::Relaxed);
                return Outcome::Reconnect;
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
        Outcome::Failed { connected_for: up.elapsed(), failure }
    }

    async fn connect(&self, deadline: StartDeadline) -> Result<Connection, ConnectionFailure> {
        let (updates, mut updated) = mpsc::channel(64);
        let connection = connect::connect(self, updates, deadline).await?;
        let (server, shared) = (self.resource(""), Arc::clone(&self.shared));
        tokio::spawn(async move {
            while let Some(uri) = updated.recv().await {
                shared.subscriptions.notify(ResourceKey { uri, ..server.clone() });
            }
        });
        let failure = match deadline.limit(self.refresh_lists(&connection.handle)).await {
            Ok(Ok(())) => return Ok(connection),
            Ok(Err(error)) => ConnectionFailure::new(error),
            Err(timed_out) => timed_out,
        };
        Err(connection.close(failure).await)
    }
}
