//! Connects to a server over stdio or HTTP, in the older or the newer protocol.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport as SdkTransport};
use tokio::sync::mpsc;
use toolcrib_server::expand::{Reference, from_system};
use toolcrib_server::private_file::PrivateFolder;

use super::answering_transport::AnsweringTransport;
use super::client_service::ClientService;
use super::connection::{Connection, add_exit_and_stderr};
use super::connection_failure::ConnectionFailure;
use super::connection_handle::ConnectionHandle;
use super::http::TappedHttp;
use super::http_client::HttpClient;
use super::question_router::QuestionRouter;
use super::secrets::Secrets;
use super::server_requests::AcceptedRequests;
use super::stdio::StdioTransport;
use super::tap::Tap;
use super::{Upstream, error_text};
use crate::Secret;
use crate::config::{ConfigError, OAuth, Server, Transport};
use crate::oauth;
use crate::process::{self, GracePeriods, Launch};

/// What the program that embeds the gateway provides for its servers.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    /// The command that calls [`process::warden::run`].
    pub warden_command: Vec<OsString>,
    /// Where logins and the servers' lists are stored. If `None`, neither is stored.
    pub state_folder: Option<PrivateFolder>,
}

/// Connects with the configured transport.
pub(super) async fn connect(
    upstream: &Upstream,
    resource_updates: mpsc::Sender<String>,
) -> Result<Connection, ConnectionFailure> {
    // References are expanded for each attempt, because a variable or a file may have changed since the last attempt.
    let expanded = expand(&upstream.name, &upstream.config());
    let config =
        expanded.map_err(|error| ConnectionFailure::with_hint(error.problem, error.hint))?;
    let secrets = Secrets::of(&config);
    let connected = connect_expanded(upstream, &config, resource_updates, &secrets).await;
    connected.map_err(|failure| failure.masked(&secrets))
}

/// Expands the references in a server's config, and sets the folder that the server starts in.
///
/// If the config has no `cwd`, the server starts in the home folder. It does not start in the working folder, which may
/// belong to anybody: a repository could contain the `server.py` or the `node_modules` that the arguments refer to. But
/// a server whose config refers to the working folder is meant to use it, and starts there.
fn expand(name: &str, server: &Server) -> Result<Server, ConfigError> {
    let uses_working_folder = Cell::new(false);
    let lookup = |source: Reference<'_>| {
        if source == Reference::Folder {
            uses_working_folder.set(true);
        }
        from_system(source)
    };
    let mut server = server.expanded(name, &lookup)?;
    if let Transport::Stdio { command, cwd, .. } = &mut server.transport
        && cwd.is_none()
        && !uses_working_folder.get()
    {
        // A relative command needs a `cwd` from the config. If there is none, `cwd` stays empty, and the launch fails.
        let is_relative = command.contains('/') && !command.starts_with('/');
        *cwd = (!is_relative).then(|| start_folder(std::env::var_os("HOME")));
    }
    Ok(server)
}

/// Returns the home folder, or the root folder if there is no home folder.
fn start_folder(home: Option<OsString>) -> PathBuf {
    let home = home.map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
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
                env: process::environment(std::env::vars_os(), configured),
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
        Transport::Http { url, headers, oauth } => {
            connect_remote(upstream, url, headers, oauth, resource_updates, secrets).await
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

async fn connect_remote(
    upstream: &Upstream,
    url: &str,
    headers: &BTreeMap<String, Secret>,
    oauth: &OAuth,
    resource_updates: mpsc::Sender<String>,
    secrets: &Secrets,
) -> Result<Connection, ConnectionFailure> {
    let limits = &upstream.shared.limits;
    let mut sent = HashMap::new();
    for (name, value) in headers {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value.expose()).ok());
        let (header, mut value) = pair
            .ok_or_else(|| ConnectionFailure::new(format!("the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let has_authorization = sent.contains_key(&reqwest::header::AUTHORIZATION);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent)
        .max_concurrent_requests(limits.server_calls);
    config.channel_buffer_capacity = limits.server_calls;
    let client =
        oauth::http_client().map_err(|error| ConnectionFailure::new(error_text(&error)))?;
    let (calls, log) = (Arc::clone(&upstream.active_calls), Arc::clone(&upstream.log));
    let (tap, accepted) = Tap::new(calls, log, secrets.clone(), limits, resource_updates);
    let tapped = TappedHttp::new(client, Arc::clone(&tap), limits.message_bytes);
    let state = upstream.shared.environment.state_folder.as_ref().filter(|_| !has_authorization);
    let target = oauth::SignInTarget::new(&upstream.name, url, oauth);
    let client = if let (Some(target), Some(state)) = (target, state)
        && oauth::is_signed_in(&target, state)
    {
        let client = oauth::client_for(&target, state, tapped).await;
        HttpClient::SignedIn(client.map_err(|error| match &error {
            oauth::Error::NeedsLogin(login) => ConnectionFailure::login_required(login),
            error => ConnectionFailure::with_hint(error, error.hint()),
        })?)
    } else {
        HttpClient::Plain(tapped)
    };
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let tap_and_requests = (Arc::clone(&tap), accepted);
    match start_service(upstream, transport, tap_and_requests, newer_then_older()).await {
        Ok((service, handle)) => {
            Ok(Connection { handle, service, process: None, secrets: secrets.clone() })
        }
        Err(_) if let Some(reason) = tap.violation() => {
            Err(ConnectionFailure::limit_violation(reason))
        }
        Err(error) => Err(match oauth::needs_login(&upstream.name, &error) {
            Some(_) if has_authorization => ConnectionFailure::with_hint(
                "it rejected the `Authorization` header of the config",
                "correct `headers` of this server",
            ),
            Some(login) => ConnectionFailure::login_required(&login),
            None => ConnectionFailure::new(handshake_error(&error)),
        }),
    }
}

/// Runs the handshake and the SDK's service over a transport.
async fn start_service<T>(
    upstream: &Upstream,
    transport: T,
    (tap, accepted): (Arc<Tap>, AcceptedRequests),
    mode: ClientLifecycleMode,
) -> Result<(RunningService<RoleClient, ClientService>, ConnectionHandle), ClientInitializeError>
where
    T: SdkTransport<RoleClient> + 'static,
{
    let router = QuestionRouter {
        server: Arc::clone(&upstream.name),
        active_calls: Arc::clone(&upstream.active_calls),
        clients: Arc::clone(&upstream.shared.clients),
    };
    let transport = AnsweringTransport::new(transport, Arc::clone(&tap), router, accepted);
    let service = serve_client_with_lifecycle(ClientService, transport, mode).await?;
    let unknown = || {
        Arc::new(ServerPeerInfo::new(
            ProtocolVersion::V_2025_11_25,
            rmcp::model::ServerCapabilities::default(),
        ))
    };
    let server_info = service.peer().peer_info().unwrap_or_else(unknown);
    let handle = ConnectionHandle { peer: service.peer().clone(), tap, server_info };
    Ok((service, handle))
}

fn handshake_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".into()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(fallback),
        error => error_text(error),
    }
}
