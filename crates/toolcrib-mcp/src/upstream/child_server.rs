//! Starts a server as a child process and connects to it over stdio.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService};
use rmcp::transport::Transport as SdkTransport;
use tokio::sync::mpsc;

use super::Upstream;
use super::client_service::ClientService;
use super::connect::{
    StartDeadline, answering_transport, connection_handle, handshake_error, serve,
};
use super::connection::{Connection, add_exit_and_stderr};
use super::connection_failure::ConnectionFailure;
use super::protocol_probe::ProbedTransport;
use super::secrets::Secrets;
use super::stdio::StdioTransport;
use super::tap::Tap;
use crate::process::Launch;

/// A server that is started as a child process.
pub(super) struct ChildServer<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) launch: Launch,
    pub(super) resource_updates: mpsc::Sender<String>,
    pub(super) deadline: StartDeadline,
    pub(super) secrets: &'a Secrets,
}

impl ChildServer<'_> {
    /// Starts the server and connects to it.
    ///
    /// Some servers of the older protocol exit on a request they do not know. So if a server has never been connected and
    /// exits on the probe, it is started again at once, with the handshake of the older protocol. If that fails as well,
    /// the next attempt probes again.
    pub(super) async fn connect(&self) -> Result<Connection, ConnectionFailure> {
        let upstream = self.upstream;
        let probes = upstream.tries_newer_protocol.load(Ordering::Relaxed);
        let (mut connected, mut has_probed) = (self.connect_once(probes).await, probes);
        let exited_on_probe = matches!(&connected, Err((_, ProbeOutcome::Closed)));
        if exited_on_probe && upstream.status().era.is_none() {
            tracing::debug!(server = %upstream.name, "started again without a probe for the newer protocol");
            (connected, has_probed) = (self.connect_once(false).await, false);
        }
        upstream.tries_newer_protocol.store(connected.is_ok() == has_probed, Ordering::Relaxed);
        connected.map_err(|(failure, _)| failure)
    }

    async fn connect_once(
        &self,
        probes: bool,
    ) -> Result<Connection, (ConnectionFailure, ProbeOutcome)> {
        let upstream = self.upstream;
        let unprobed = |failure| (failure, ProbeOutcome::Other);
        let mut process = self
            .launch
            .clone()
            .spawn()
            .await
            .map_err(|error| unprobed(ConnectionFailure::with_hint(&error, error.hint())))?;
        let (Some(input), Some(output)) = (process.stdout.take(), process.stdin.take()) else {
            return Err(unprobed(ConnectionFailure::new("its standard input or output is closed")));
        };
        let limits = &upstream.shared.limits;
        let (calls, log) = (Arc::clone(&upstream.active_calls), Arc::clone(&upstream.log));
        let updates = self.resource_updates.clone();
        let (tap, accepted) = Tap::new(calls, log, self.secrets.clone(), limits, updates);
        let transport = StdioTransport::new(input, output, Arc::clone(&tap), limits.message_bytes);
        let (transport, knows_roots) =
            answering_transport(upstream, transport, Arc::clone(&tap), accepted);
        let (started, outcome) = match self.deadline.limit(start(transport, probes)).await {
            Ok((started, outcome)) => {
                let failed = |error| ConnectionFailure::new(handshake_error(&error));
                (started.map_err(failed), outcome)
            }
            Err(timed_out) => (Err(timed_out), ProbeOutcome::Other),
        };
        match started {
            Ok(service) => {
                let handle = connection_handle(&service, tap, knows_roots);
                let secrets = self.secrets.clone();
                Ok(Connection { handle, service, process: Some(process), secrets })
            }
            Err(failure) => {
                let violation = tap.violation();
                let failure = violation.map_or(failure, ConnectionFailure::limit_violation);
                let failure = add_exit_and_stderr(process, failure).await;
                Err((failure.with_stray_text(tap.stray_text()), outcome))
            }
        }
    }
}

/// Runs the handshake and the SDK's service. If `probes` is true, the newer protocol is tried first.
async fn start<T: SdkTransport<RoleClient> + 'static>(
    transport: T,
    probes: bool,
) -> (Result<RunningService<RoleClient, ClientService>, ClientInitializeError>, ProbeOutcome) {
    if !probes {
        return (serve(transport, ClientLifecycleMode::Initialize).await, ProbeOutcome::Other);
    }
    match ProbedTransport::probe(transport).await {
        Ok(transport) => {
            let mode = transport.mode();
            (serve(transport, mode).await, ProbeOutcome::Other)
        }
        Err(closed) => (Err(closed.into()), ProbeOutcome::Closed),
    }
}

/// Whether a connection failed because the server closed it instead of answering the probe.
enum ProbeOutcome {
    Closed,
    Other,
}
