//! A live connection with its service, its process and its secrets, and how it is closed.

use std::time::Duration;

use rmcp::service::{RoleClient, RunningService};

use super::client_service::ClientService;
use super::connection_failure::ConnectionFailure;
use super::connection_handle::ConnectionHandle;
use super::secrets::Secrets;
use crate::process::{Exit, Process};

/// How long to wait for the exit status of a failed server.
const EXIT_WAIT: Duration = Duration::from_millis(300);
/// How long to wait for the last lines of the server's stderr.
const STDERR_WAIT: Duration = Duration::from_millis(100);
/// How many lines of the server's stderr are added to the reason of the failure.
const STDERR_LINES: usize = 3;

/// A live connection. Dropping it closes the connection and ends the server's process.
pub(super) struct Connection {
    pub(super) handle: ConnectionHandle,
    pub(super) service: RunningService<RoleClient, ClientService>,
    pub(super) process: Option<Process>,
    /// The secrets that are masked in the server's last output.
    pub(super) secrets: Secrets,
}

impl Connection {
    /// Whether the server is not a child process of the gateway.
    pub(super) fn is_remote(&self) -> bool {
        self.process.is_none()
    }

    /// Completes only if the wardens of the server's process were killed. If the server ends in any other way, the end
    /// of its output closes the connection, after all of the output was read.
    pub(super) async fn wardens_lost(&mut self) -> ConnectionFailure {
        if let Some(process) = &mut self.process
            && process.wait().await == Exit::WardenLost
        {
            return ConnectionFailure::new("its warden processes were killed");
        }
        std::future::pending().await
    }

    /// Returns why the connection is closed.
    pub(super) fn close_reason(&self) -> ConnectionFailure {
        let tap = &self.handle.tap;
        if let Some(reason) = tap.violation() {
            return ConnectionFailure::limit_violation(reason);
        }
        let reason = tap.close_reason();
        ConnectionFailure::new(reason.unwrap_or_else(|| "it closed the connection".into()))
    }

    /// Masks the server's secrets in a failure.
    pub(super) fn masked(&self, failure: ConnectionFailure) -> ConnectionFailure {
        failure.masked(&self.secrets)
    }

    /// Closes the connection, and waits until the server's processes have ended. If the server is needed again, the new
    /// process must not find the old one's locks. `reason` is for the requests in progress.
    pub(super) async fn end(mut self, reason: Option<String>) {
        self.handle.tap.close(reason);
        drop(self.service);
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }

    /// Closes the connection. Returns the failure with the process's exit status and stderr added.
    pub(super) async fn close(mut self, failure: ConnectionFailure) -> ConnectionFailure {
        let violation = self.handle.tap.violation();
        let failure = violation.map_or(failure, ConnectionFailure::limit_violation);
        self.handle.tap.close(Some(failure.reason.clone()));
        drop(self.service);
        let failure = match self.process.take() {
            Some(process) => add_exit_and_stderr(process, failure).await,
            None => failure,
        };
        failure.masked(&self.secrets)
    }
}

/// Adds the exit status of the process and the last lines of its stderr to the reason, and ends the process.
pub(super) async fn add_exit_and_stderr(
    mut process: Process,
    failure: ConnectionFailure,
) -> ConnectionFailure {
    let exit = tokio::time::timeout(EXIT_WAIT, process.wait()).await.ok();
    // The last lines may still be in the pipe, so wait a moment for them.
    let first_line = async {
        while process.stderr().tail(1).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(STDERR_WAIT, first_line).await;
    let stderr = toolcrib_text::clean::one_line(&process.stderr().tail(STDERR_LINES));
    // Ending the processes that the server started may take longer, so it runs in the background. Nothing here depends
    // on it.
    tokio::spawn(process.end());
    let reason = match exit {
        Some(exit @ Exit::Code(_)) if !failure.by_gateway => format!("it {exit}"),
        Some(exit @ Exit::Signal(_)) if !failure.by_gateway => format!("it was {exit}"),
        _ => failure.reason,
    };
    let reason = if stderr.is_empty() {
        reason
    } else {
        format!("{reason}; the end of its stderr: {stderr}")
    };
    ConnectionFailure { reason, ..failure }
}
