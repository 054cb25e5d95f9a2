//! Connecting to a server, by either transport and in either era, and what a failure to is called.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport as Wire};
use tokio::sync::mpsc;
use toolcrib_server::expand::{Reference, from_system};
use toolcrib_server::private_file::PrivateFolder;

use super::answering::Answering;
use super::client::{Asker, OurSide};
use super::http::TappedHttp;
use super::http_client::HttpClient;
use super::link::Link;
use super::not_connected::NotConnected;
use super::secrets::Secrets;
use super::server_requests::Accepted;
use super::stdio::StdioWire;
use super::tap::Tap;
use super::{Upstream, reason};
use crate::Secret;
use crate::config::{ConfigError, OAuth, Server, Transport};
use crate::oauth;
use crate::process::{self, Exit, GracePeriods, Launch, Process};

/// How long a failed server has to say how it ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long its last lines may take to arrive.
const LAST_LINES_WITHIN: Duration = Duration::from_millis(100);
/// Lines of its standard error that are told.
const LAST_LINES: usize = 3;

/// What servers are started with, beside their own config.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The command that ends in [`process::warden::run`].
    pub warden: Vec<OsString>,
    /// Where logins and what was learnt are kept; without it nothing is.
    pub state: Option<PrivateFolder>,
}

/// A connection with what keeps it alive.
pub(super) struct Connected {
    pub(super) link: Link,
    running: RunningService<RoleClient, OurSide>,
    process: Option<Process>,
    /// What may not be repeated of what it says about its end.
    secrets: Secrets,
}

impl Connected {
    /// Whether it is not a child of ours.
    pub(super) fn is_remote(&self) -> bool {
        self.process.is_none()
    }

    /// Completes if the wardens of its process were killed. Everything else that ends a server also ends its output,
    /// which is read to its end first.
    pub(super) async fn wardens_lost(&mut self) -> NotConnected {
        if let Some(process) = &mut self.process
            && process.wait().await == Exit::WardenLost
        {
            return NotConnected::ended("the processes that watch over it were killed");
        }
        std::future::pending().await
    }

    /// Why it is closed.
    pub(super) fn over(&self) -> NotConnected {
        let tap = &self.link.tap;
        if let Some(why) = tap.violation() {
            return NotConnected::violation(why);
        }
        NotConnected::ended(tap.why().unwrap_or_else(|| "it closed the connection".into()))
    }

    /// A reason with secrets masked.
    pub(super) fn masked(&self, why: NotConnected) -> NotConnected {
        why.masked(&self.secrets)
    }

    /// Closes it; the reason comes back with the server's last words.
    pub(super) async fn end(mut self, why: NotConnected) -> NotConnected {
        let why = self.link.tap.violation().map_or(why, NotConnected::violation);
        self.link.tap.close(Some(why.why.clone()));
        drop(self.running);
        let why = match self.process.take() {
            Some(process) => last_words(process, why).await,
            None => why,
        };
        why.masked(&self.secrets)
    }
}

/// Connects, whichever way the config says.
pub(super) async fn connect(
    upstream: &Upstream,
    updated: mpsc::Sender<String>,
) -> Result<Connected, NotConnected> {
    // Only now: what a variable or a file says may have changed since the last try.
    let resolved = resolved(&upstream.name, &upstream.config());
    let config = resolved.map_err(|error| NotConnected::hinted(error.problem, error.hint))?;
    let secrets = Secrets::of(&config);
    let connected = transported(upstream, &config, updated, &secrets).await;
    connected.map_err(|why| why.masked(&secrets))
}

/// The server with its references replaced, and with the folder that it starts in.
///
/// That is the home folder if the config names none. In the working folder, which may be anybody's, a repository could
/// bring the `server.py` or the `node_modules` that the arguments refer to. A server that refers to the working folder
/// is meant to use it, and starts there.
fn resolved(name: &str, server: &Server) -> Result<Server, ConfigError> {
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
        // A relative command needs a folder from the config: the launch refuses it without one.
        let is_relative = command.contains('/') && !command.starts_with('/');
        *cwd = (!is_relative).then(|| start_folder(std::env::var_os("HOME")));
    }
    Ok(server)
}

/// The home folder, or the root folder if there is no such folder.
fn start_folder(home: Option<OsString>) -> PathBuf {
    let home = home.map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}

async fn transported(
    upstream: &Upstream,
    config: &Server,
    updated: mpsc::Sender<String>,
    secrets: &Secrets,
) -> Result<Connected, NotConnected> {
    match &config.transport {
        Transport::Stdio { command, args, env, cwd } => {
            let named = env.iter().map(|(name, value)| (name.into(), value.expose().into()));
            let launch = Launch {
                program: command.into(),
                args: args.iter().map(|arg| arg.expose().into()).collect(),
                env: process::environment(std::env::vars_os(), named),
                cwd: cwd.clone(),
                warden: upstream.shared.environment.warden.clone(),
                grace: GracePeriods::default(),
            };
            let mode = upstream.lifecycle();
            let probes = mode != ClientLifecycleMode::Initialize;
            let connected = child(upstream, launch, updated, mode, secrets).await;
            // Some servers of the older era end when they are asked what they do not know: the next try
            // does not ask. One that failed for another reason is asked again the time after.
            upstream.probe_next(connected.is_ok() == probes);
            connected
        }
        Transport::Http { url, headers, oauth } => {
            remote(upstream, url, headers, oauth, updated, secrets).await
        }
    }
}

/// The newer era is tried first, and the older one where the server does not know it.
pub(super) fn probing() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

async fn child(
    upstream: &Upstream,
    launch: Launch,
    updated: mpsc::Sender<String>,
    mode: ClientLifecycleMode,
    secrets: &Secrets,
) -> Result<Connected, NotConnected> {
    let spawned = launch.spawn().await;
    let mut process = spawned.map_err(|error| NotConnected::hinted(&error, error.hint()))?;
    let (Some(input), Some(output)) = (process.stdout.take(), process.stdin.take()) else {
        return Err(NotConnected::ended("its pipes are gone"));
    };
    let limits = &upstream.shared.limits;
    let (callers, log) = (Arc::clone(&upstream.callers), Arc::clone(&upstream.log));
    let (tap, accepted) = Tap::new(callers, log, secrets.clone(), limits, updated);
    let wire = StdioWire::new(input, output, Arc::clone(&tap), limits.message_bytes);
    match serve(upstream, wire, (Arc::clone(&tap), accepted), mode).await {
        Ok((running, link)) => {
            Ok(Connected { link, running, process: Some(process), secrets: secrets.clone() })
        }
        Err(error) => {
            let refused = || NotConnected::ended(refusal(&error));
            let why = tap.violation().map_or_else(refused, NotConnected::violation);
            Err(last_words(process, why).await)
        }
    }
}

async fn remote(
    upstream: &Upstream,
    url: &str,
    headers: &BTreeMap<String, Secret>,
    oauth: &OAuth,
    updated: mpsc::Sender<String>,
    secrets: &Secrets,
) -> Result<Connected, NotConnected> {
    let limits = &upstream.shared.limits;
    let mut sent = HashMap::new();
    for (name, value) in headers {
        let pair = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value.expose()).ok());
        let (header, mut value) =
            pair.ok_or_else(|| NotConnected::ended(format!("the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let signs_in_itself = sent.contains_key(&reqwest::header::AUTHORIZATION);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent)
        .max_concurrent_requests(limits.server_calls);
    config.channel_buffer_capacity = limits.server_calls;
    let client = oauth::http_client().map_err(|error| NotConnected::ended(reason(&error)))?;
    let (callers, log) = (Arc::clone(&upstream.callers), Arc::clone(&upstream.log));
    let (tap, accepted) = Tap::new(callers, log, secrets.clone(), limits, updated);
    let tapped = TappedHttp::new(client, Arc::clone(&tap), limits.message_bytes);
    let state = upstream.shared.environment.state.as_ref().filter(|_| !signs_in_itself);
    let account = oauth::Upstream::new(&upstream.name, url, oauth);
    let client = if let (Some(account), Some(state)) = (account, state)
        && oauth::is_signed_in(&account, state)
    {
        let client = oauth::client_for(&account, state, tapped).await;
        HttpClient::SignedIn(client.map_err(|error| match &error {
            oauth::Error::NeedsLogin(login) => NotConnected::login(login),
            error => NotConnected::hinted(error, error.hint()),
        })?)
    } else {
        HttpClient::Plain(tapped)
    };
    let wire = StreamableHttpClientTransport::with_client(client, config);
    match serve(upstream, wire, (Arc::clone(&tap), accepted), probing()).await {
        Ok((running, link)) => {
            Ok(Connected { link, running, process: None, secrets: secrets.clone() })
        }
        Err(_) if let Some(why) = tap.violation() => Err(NotConnected::violation(why)),
        Err(error) => Err(match oauth::needs_login(&upstream.name, &error) {
            Some(_) if signs_in_itself => NotConnected::hinted(
                "it refuses the `Authorization` of the config",
                "correct `headers` of this server",
            ),
            Some(login) => NotConnected::login(&login),
            None => NotConnected::ended(refusal(&error)),
        }),
    }
}

async fn serve<T>(
    upstream: &Upstream,
    wire: T,
    (tap, accepted): (Arc<Tap>, Accepted),
    mode: ClientLifecycleMode,
) -> Result<(RunningService<RoleClient, OurSide>, Link), ClientInitializeError>
where
    T: Wire<RoleClient> + 'static,
{
    let asker = Asker {
        server: Arc::clone(&upstream.name),
        callers: Arc::clone(&upstream.callers),
        sessions: Arc::clone(&upstream.shared.sessions),
    };
    let wire = Answering::new(wire, Arc::clone(&tap), asker, accepted);
    let running = serve_client_with_lifecycle(OurSide, wire, mode).await?;
    let unknown = || {
        Arc::new(ServerPeerInfo::new(
            ProtocolVersion::V_2025_11_25,
            rmcp::model::ServerCapabilities::default(),
        ))
    };
    let info = running.peer().peer_info().unwrap_or_else(unknown);
    let link = Link { peer: running.peer().clone(), tap, info };
    Ok((running, link))
}

fn refusal(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".into()
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refusal(fallback),
        // Without the names of the SDK's types around it.
        error => reason(error),
    }
}

/// The reason, with how the process ended and what it wrote to standard error.
async fn last_words(mut process: Process, why: NotConnected) -> NotConnected {
    let exit = tokio::time::timeout(LAST_WORDS, process.wait()).await.ok();
    // What it wrote last may still be in the pipe.
    let read = async {
        while process.stderr().tail(1).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(LAST_LINES_WITHIN, read).await;
    let said = toolcrib_text::clean::one_line(&process.stderr().tail(LAST_LINES));
    // What it started ends after it; nobody waits for that.
    tokio::spawn(process.end());
    let told = match exit {
        Some(exit @ (Exit::Code(_) | Exit::Signal(_))) if !why.by_us => {
            format!("it {}", ended(exit))
        }
        _ => why.why,
    };
    let told = if said.is_empty() { told } else { format!("{told}; it said: {said}") };
    NotConnected { why: told, ..why }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(_) => exit.to_string(),
        _ => format!("was {exit}"),
    }
}
