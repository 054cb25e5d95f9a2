//! Connects to a server with the configured transport, in the older or the newer protocol.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport as SdkTransport;
use tokio::sync::mpsc;
use toolcrib_server::private_file::PrivateFolder;

use super::answering_transport::AnsweringTransport;
use super::client_service::ClientService;
use super::connection::{Connection, add_exit_and_stderr};
use super::connection_failure::ConnectionFailure;
use super::connection_handle::ConnectionHandle;
use super::question_router::QuestionRouter;
use super::remote_server::{RemoteServer, request_headers};
use super::secrets::Secrets;
use super::server_requests::AcceptedRequests;
use super::stdio::StdioTransport;
use super::tap::Tap;
use super::{Upstream, error_text};
use crate::config::{Server, Transport};
use crate::process::{GracePeriods, Launch};

/// What the program that embeds the gateway provides for its servers.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    /// The command that calls [`crate::process::warden::run`].
    pub warden_command: Vec<OsString>,
    /// Where logins and the servers' lists are stored. If `None`, neither is stored.
    pub state_folder: Option<PrivateFolder>,
}

impl Upstream {
    /// Returns the mode that determines which protocol the next connection tries first.
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.tries_newer_protocol.load(Ordering::Relaxed) {
            newer_then_older()
        } else {
            ClientLifecycleMode::Initialize
        }
    }

    fn set_tries_newer_protocol(&self, probe: bool) {
        self.tries_newer_protocol.store(probe, Ordering::Relaxed);
    }
}

/// Connects with the configured transport.
pub(super) async fn connect(
    upstream: &Upstream,
    resource_updates: mpsc::Sender<String>,
) -> Result<Connection, ConnectionFailure> {
    // References are expanded for each attempt, because a variable or a file may have changed since the last attempt.
    let expanded = upstream.client_environment.expand(&upstream.name, &upstream.config());
    let config =
        expanded.map_err(|error| ConnectionFailure::with_hint(error.problem, error.hint))?;
    let secrets = Secrets::of(&config);
    let connected = connect_expanded(upstream, &config, resource_updates, &secrets).await;
    connected.map_err(|failure| failure.masked(&secrets))
}

async fn connect_expanded(
    upstream: &Upstream,
    config: &Server,
    resource_updates: mpsc::Sender<String>,
    secrets: &Secrets,
) -> Result<Connection, ConnectionFailure> {
    match &config.transport {
        Transport::Stdio { command, args, env, cwd } => {
            let configured = env.iter().map(|(name, value)| (name.into(), value.expose().into()));
            let launch = Launch {
                program: command.into(),
                args: args.iter().map(|arg| arg.expose().into()).collect(),
                env: upstream.client_environment.for_process(configured),
                cwd: cwd.clone(),
                warden: upstream.shared.environment.warden_command.clone(),
                grace: GracePeriods::default(),
            };
            let mode = upstream.lifecycle();
            let probes = mode != ClientLifecycleMode::Initialize;
            let connected = connect_child(upstream, launch, resource_updates, mode, secrets).await;
            // Some servers of the older protocol exit on a request they do not know, so the attempt after a failed
            // probe uses the handshake of the older protocol. If that fails as well, the next attempt probes again.
            upstream.set_tries_newer_protocol(connected.is_ok() == probes);
            connected
        }
        Transport::Http { url, variant, headers, oauth } => {
            let headers = request_headers(headers)?;
            let remote = RemoteServer { upstream, url, headers, oauth, resource_updates, secrets };
            remote.connect(*variant).await
        }
    }
}

/// Returns the mode in which the SDK tries the newer protocol first, and the older protocol if the server does not
/// support the newer one.
pub(super) fn newer_then_older() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

async fn connect_child(
    upstream: &Upstream,
    launch: Launch,
    resource_updates: mpsc::Sender<String>,
    mode: ClientLifecycleMode,
    secrets: &Secrets,
) -> Result<Connection, ConnectionFailure> {
    let spawned = launch.spawn().await;
    let mut process =
        spawned.map_err(|error| ConnectionFailure::with_hint(&error, error.hint()))?;
    let (Some(input), Some(output)) = (process.stdout.take(), process.stdin.take()) else {
        return Err(ConnectionFailure::new("its standard input or output is closed"));
    };
    let limits = &upstream.shared.limits;
    let (calls, log) = (Arc::clone(&upstream.active_calls), Arc::clone(&upstream.log));
    let (tap, accepted) = Tap::new(calls, log, secrets.clone(), limits, resource_updates);
    let transport = StdioTransport::new(input, output, Arc::clone(&tap), limits.message_bytes);
    match start_service(upstream, transport, (Arc::clone(&tap), accepted), mode).await {
        Ok((service, handle)) => {
            Ok(Connection { handle, service, process: Some(process), secrets: secrets.clone() })
        }
        Err(error) => {
            let failed = || ConnectionFailure::new(handshake_error(&error));
            let violation = tap.violation();
            let failure = violation.map_or_else(failed, ConnectionFailure::limit_violation);
            Err(add_exit_and_stderr(process, failure).await)
        }
    }
}

/// Runs the handshake and the SDK's service over a transport.
pub(super) async fn start_service<T>(
    upstream: &Upstream,
    transport: T,
    (tap, accepted): (Arc<Tap>, AcceptedRequests),
    mode: ClientLifecycleMode,
) -> Result<(RunningService<RoleClient, ClientService>, ConnectionHandle), ClientInitializeError>
where
    T: SdkTransport<RoleClient> + 'static,
{
    let knows_roots = Arc::default();
    let router = QuestionRouter {
        server: Arc::clone(&upstream.name),
        active_calls: Arc::clone(&upstream.active_calls),
        id: upstream.id,
        owner: upstream.owner,
        questions: Arc::clone(&upstream.questions),
        demand: Arc::clone(&upstream.demand),
        knows_roots: Arc::clone(&knows_roots),
        shared: Arc::clone(&upstream.shared),
    };
    let transport = AnsweringTransport::new(transport, Arc::clone(&tap), router, accepted);
    // Boxed, because the future is large and differs for each transport.
    let service = Box::pin(serve_client_with_lifecycle(ClientService, transport, mode)).await?;
    let unknown = || {
        Arc::new(ServerPeerInfo::new(
            ProtocolVersion::V_2025_11_25,
            rmcp::model::ServerCapabilities::default(),
        ))
    };
    let server_info = service.peer().peer_info().unwrap_or_else(unknown);
    let handle = ConnectionHandle { peer: service.peer().clone(), tap, server_info, knows_roots };
    Ok((service, handle))
}

pub(super) fn handshake_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".into()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(fallback),
        error => error_text(error),
    }
}
