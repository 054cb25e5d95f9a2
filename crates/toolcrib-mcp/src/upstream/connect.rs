//! Connects to a server with the configured transport, in the older or the newer protocol.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport as SdkTransport;
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolcrib_server::private_file::PrivateFolder;

use super::answering_transport::AnsweringTransport;
use super::child_server::ChildServer;
use super::client_service::ClientService;
use super::connection::Connection;
use super::connection_failure::ConnectionFailure;
use super::connection_handle::ConnectionHandle;
use super::question_router::QuestionRouter;
use super::remote_server::{RemoteServer, request_headers};
use super::secrets::Secrets;
use super::server_requests::AcceptedRequests;
use super::tap::Tap;
use super::{Upstream, error_text};
use crate::config::{Server, Transport};
use crate::process::{GracePeriods, Launch};

/// When a server must have answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartDeadline {
    at: Instant,
    timeout: Duration,
}

impl StartDeadline {
    pub(super) fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    /// Waits for a part of the start until the deadline.
    pub(super) async fn limit<T>(
        self,
        part: impl Future<Output = T>,
    ) -> Result<T, ConnectionFailure> {
        let done = tokio::time::timeout_at(self.at, part).await;
        done.map_err(|_| ConnectionFailure::timed_out(self.timeout))
    }
}

/// What the program that embeds the gateway provides for its servers.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    /// The command that calls [`crate::process::warden::run`].
    pub warden_command: Vec<OsString>,
    /// Where logins and the servers' lists are stored. If `None`, neither is stored.
    pub state_folder: Option<PrivateFolder>,
}

/// Connects with the configured transport.
pub(super) async fn connect(
    upstream: &Upstream,
    resource_updates: mpsc::Sender<String>,
    deadline: StartDeadline,
) -> Result<Connection, ConnectionFailure> {
    // References are expanded for each attempt, because a variable or a file may have changed since the last attempt.
    let expanded = upstream.client_environment.expand(&upstream.name, &upstream.config());
    let config =
        expanded.map_err(|error| ConnectionFailure::with_hint(error.problem, error.hint))?;
    let secrets = Secrets::of(&config);
    let connected =
        connect_expanded(upstream, &config, (resource_updates, deadline), &secrets).await;
    connected.map_err(|failure| failure.masked(&secrets))
}

async fn connect_expanded(
    upstream: &Upstream,
    config: &Server,
    (resource_updates, deadline): (mpsc::Sender<String>, StartDeadline),
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
            let child = ChildServer { upstream, launch, resource_updates, deadline, secrets };
            child.connect().await
        }
        Transport::Http { url, variant, headers, oauth } => {
            let headers = request_headers(headers)?;
            let remote = RemoteServer { upstream, url, headers, oauth, resource_updates, secrets };
            deadline.limit(remote.connect(*variant)).await?
        }
    }
}

/// Returns the mode in which the SDK tries the newer protocol first, and the older protocol if the server does not
/// support the newer one. It is used for remote servers, which run already, so the SDK's timeout of 10 s is enough.
pub(super) fn newer_then_older() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// Runs the handshake and the SDK's service over the transport of a remote server.
pub(super) async fn start_service<T>(
    upstream: &Upstream,
    transport: T,
    (tap, accepted): (Arc<Tap>, AcceptedRequests),
    mode: ClientLifecycleMode,
) -> Result<(RunningService<RoleClient, ClientService>, ConnectionHandle), ClientInitializeError>
where
    T: SdkTransport<RoleClient> + 'static,
{
    let (transport, knows_roots) =
        answering_transport(upstream, transport, Arc::clone(&tap), accepted);
    let service = serve(transport, mode).await?;
    let handle = connection_handle(&service, tap, knows_roots);
    Ok((service, handle))
}

/// Wraps a transport so that the requests of the server are answered. Also returns a flag
/// that is set when the server learns the roots of a client.
pub(super) fn answering_transport<T: SdkTransport<RoleClient>>(
    upstream: &Upstream,
    transport: T,
    tap: Arc<Tap>,
    accepted: AcceptedRequests,
) -> (AnsweringTransport<T>, Arc<AtomicBool>) {
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
    (AnsweringTransport::new(transport, tap, router, accepted), knows_roots)
}

pub(super) async fn serve<T: SdkTransport<RoleClient> + 'static>(
    transport: T,
    mode: ClientLifecycleMode,
) -> Result<RunningService<RoleClient, ClientService>, ClientInitializeError> {
    // Boxed, because the future is large and differs for each transport.
    Box::pin(serve_client_with_lifecycle(ClientService, transport, mode)).await
}

pub(super) fn connection_handle(
    service: &RunningService<RoleClient, ClientService>,
    tap: Arc<Tap>,
    knows_roots: Arc<AtomicBool>,
) -> ConnectionHandle {
    let unknown = || {
        Arc::new(ServerPeerInfo::new(
            ProtocolVersion::V_2025_11_25,
            rmcp::model::ServerCapabilities::default(),
        ))
    };
    let server_info = service.peer().peer_info().unwrap_or_else(unknown);
    ConnectionHandle { peer: service.peer().clone(), tap, server_info, knows_roots }
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
