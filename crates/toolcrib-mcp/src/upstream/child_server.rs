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
use super::protocol_probe::{ClosedDuringProbe, ProbedTransport};
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
    /// Some servers of the older protocol exit when they get a request that they do not know. So the first time that a
    /// server exits on the probe, it is started again at once, with the handshake of the older protocol. After a failed
    /// start, the next start uses the other of the two. A server that ignores the probe is not probed again.
    pub(super) async fn connect(&self) -> Result<Connection, ConnectionFailure> {
        let upstream = self.upstream;
        let probes = upstream.tries_newer_protocol.load(Ordering::Relaxed);
        let (mut connected, mut has_probed) = (self.connect_once(probes).await, probes);
        if let Err(first) = &mut connected
            && first.exited_on_probe
            && !upstream.was_started_without_probe.swap(true, Ordering::Relaxed)
        {
            tracing::debug!(server = %upstream.name, "started again without a probe for the newer protocol");
            let stray_text = first.stray_text.take();
            (connected, has_probed) = (self.connect_once(false).await, false);
            if let Err(second) = &mut connected {
                second.stray_text = second.stray_text.take().or(stray_text);
            }
        }
        let probes_next = match &connected {
            Ok(started) => has_probed && !started.ignores_probe,
            Err(_) => !has_probed,
        };
        upstream.tries_newer_protocol.store(probes_next, Ordering::Relaxed);
        let failure =
            |failed: FailedStart| failed.failure.with_stray_text(failed.stray_text.as_deref());
        connected.map(|started| started.connection).map_err(failure)
    }

    async fn connect_once(&self, probes: bool) -> Result<StartedServer, FailedStart> {
        let upstream = self.upstream;
        let mut process = self.launch.clone().spawn().await.map_err(|error| {
            FailedStart::from(ConnectionFailure::with_hint(&error, error.hint()))
        })?;
        let (Some(input), Some(output)) = (process.stdout.take(), process.stdin.take()) else {
            return Err(ConnectionFailure::new("its standard input or output is closed").into());
        };
        let limits = &upstream.shared.limits;
        let (calls, log) = (Arc::clone(&upstream.active_calls), Arc::clone(&upstream.log));
        let updates = self.resource_updates.clone();
        let (tap, accepted) = Tap::new(calls, log, self.secrets.clone(), limits, updates);
        let transport = StdioTransport::new(input, output, Arc::clone(&tap), limits.message_bytes);
        let (transport, knows_roots) =
            answering_transport(upstream, transport, Arc::clone(&tap), accepted);
        let started = self.deadline.limit(start(transport, probes)).await;
        let exited_on_probe = matches!(started, Ok(Err(StartError::ClosedDuringProbe(_))));
        let failed = |error: StartError| ConnectionFailure::new(error.reason());
        let started = started.and_then(|started| started.map_err(failed));
        match started {
            Ok((service, ignores_probe)) => {
                let handle = connection_handle(&service, tap, knows_roots);
                let secrets = self.secrets.clone();
                let connection = Connection { handle, service, process: Some(process), secrets };
                Ok(StartedServer { connection, ignores_probe })
            }
            Err(failure) => {
                let violation = tap.violation();
                let failure = violation.map_or(failure, ConnectionFailure::limit_violation);
                let failure = add_exit_and_stderr(process, failure).await;
                let stray_text = tap.stray_text().map(str::to_owned);
                Err(FailedStart { failure, exited_on_probe, stray_text })
            }
        }
    }
}

struct StartedServer {
    connection: Connection,
    /// Whether the server has answered the handshake of the older protocol, but not the probe.
    ignores_probe: bool,
}

/// Why a server was not started.
struct FailedStart {
    failure: ConnectionFailure,
    /// Whether the server closed the connection instead of answering the probe.
    exited_on_probe: bool,
    /// Text that the server wrote to standard output instead of messages.
    stray_text: Option<String>,
}

impl From<ConnectionFailure> for FailedStart {
    fn from(failure: ConnectionFailure) -> Self {
        Self { failure, exited_on_probe: false, stray_text: None }
    }
}

enum StartError {
    ClosedDuringProbe(ClosedDuringProbe),
    Handshake(Box<ClientInitializeError>),
}

impl StartError {
    fn reason(self) -> String {
        match self {
            Self::ClosedDuringProbe(closed) => handshake_error(&closed.into()),
            Self::Handshake(error) => handshake_error(&error),
        }
    }
}

/// Runs the handshake and the SDK's service. If `probes` is true, the newer protocol is tried first. Also returns whether
/// the server ignores the probe.
async fn start<T: SdkTransport<RoleClient> + 'static>(
    transport: T,
    probes: bool,
) -> Result<(RunningService<RoleClient, ClientService>, bool), StartError> {
    let (started, ignores_probe) = if probes {
        let probed = ProbedTransport::probe(transport).await;
        let transport = probed.map_err(StartError::ClosedDuringProbe)?;
        let (mode, ignores_probe) = (transport.mode(), transport.ignores_probe());
        (serve(transport, mode).await, ignores_probe)
    } else {
        (serve(transport, ClientLifecycleMode::Initialize).await, false)
    };
    let service = started.map_err(|error| StartError::Handshake(Box::new(error)))?;
    Ok((service, ignores_probe))
}
