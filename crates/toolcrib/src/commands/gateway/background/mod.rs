//! The background gateway: one process for all clients of a user with the same config. `toolcrib mcp` starts it.
//!
//! It listens on a Unix socket, serves each client on a connection of its own, and ends when it has had no clients for
//! some time.

mod client_options;
mod join;
mod log_file;
mod shared_gateways;

use client_options::ClientOptions;
pub(super) use join::{BackgroundGateway, JoinError, ask, ask_on_stream};

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_mcp::background::{
    self, BackgroundSocket, BackgroundStatus, ClientHello, ClientStatus, Hello, HelloReply,
    ListeningSocket, SharedOutput, SocketError, Startup,
};
use toolcrib_mcp::serve::{self, StreamClient};

use super::{block_on, gateway_failure, log, own_executable, state_folder, stop_on_signals};
use crate::args::BackgroundArgs;
use crate::output::Failure;
use log_file::LogFile;
use shared_gateways::{Membership, SharedGateways, has_waited_for_first_client};

/// How long a connection may take to send its first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look whether the background gateway is still needed.
const IDLE_CHECK: Duration = Duration::from_millis(250);
/// How long clients may take to receive their last messages when the background gateway stops.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of attempts to get the lock of the socket before the last one.
const LOCK_ATTEMPTS: u32 = 20;
/// How long to wait for the lock of the socket before the next attempt.
const LOCK_RETRY: Duration = Duration::from_millis(20);
/// How long to wait before the next connection is accepted, if accepting one failed.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &BackgroundArgs) -> Result<bool, Failure> {
    if args.detach {
        let command = [own_executable(), "background".into(), args.socket.clone().into()];
        return background::start_detached(&command)
            .map(|()| true)
            .map_err(|error| gateway_failure(&error, "see the log of the background gateway"));
    }
    background::become_daemon();
    let started = start(args);
    if let Err(failure) = &started {
        let reason = format!("{failure} (hint: {})", failure.hint());
        // An error means that the client no longer waits for the report.
        let _ = background::report_startup(&Startup::Ended(Some(reason)));
    }
    started
}

fn start(args: &BackgroundArgs) -> Result<bool, Failure> {
    let state = state_folder().ok_or_else(|| {
        gateway_failure(&"there is no state folder", "set HOME or XDG_STATE_HOME")
    })?;
    let socket = BackgroundSocket::named(&state, &args.socket);
    let failed = |error: &SocketError| gateway_failure(error, "check the state folder");
    let log = LogFile::open(&socket).map_err(|error| failed(&error))?;
    // The logger accepts only this kind of mutex.
    log::start_with(std::sync::Mutex::new(log), false);
    block_on(async {
        let listening = match listen(&socket).await {
            Ok(listening) => listening,
            Err(error @ SocketError::InUse(_)) => {
                tracing::info!("this process ends: {error}, or has not ended yet");
                let _ = background::report_startup(&Startup::NotFirst);
                return Ok(true);
            }
            Err(error) => return Err(failed(&error)),
        };
        let _ = background::report_startup(&Startup::Listening);
        let stop = stop_on_signals()?;
        tracing::info!(pid = std::process::id(), "the background gateway is running");
        if let Ok(others) = BackgroundSocket::all(&state) {
            tokio::spawn(retire_other_builds(socket.clone(), others));
        }
        Arc::new(Background::new(socket, stop)).run(listening).await;
        tracing::info!("the background gateway has ended");
        Ok(true)
    })
}

/// Listens on the socket. A process that was killed may hold its lock for a moment longer than its socket, so this tries
/// several times.
async fn listen(socket: &BackgroundSocket) -> Result<ListeningSocket, SocketError> {
    for _ in 0..LOCK_ATTEMPTS {
        match socket.listen() {
            Err(SocketError::InUse(_)) => tokio::time::sleep(LOCK_RETRY).await,
            result => return result,
        }
    }
    socket.listen()
}

/// Tells the background gateways of other builds for the same config to end with their last client.
async fn retire_other_builds(own: BackgroundSocket, others: Vec<BackgroundSocket>) {
    for other in others {
        if other.name() != own.name() && other.has_same_clients(&own) {
            // An error means that none is running.
            let _ = join::ask(&other, &Hello::Retire, HELLO_TIMEOUT).await;
        }
    }
}

/// The state of the background gateway.
struct Background {
    socket: BackgroundSocket,
    started: Instant,
    gateways: SharedGateways,
    clients: Mutex<BTreeMap<u64, ServedClient>>,
    next_client: AtomicU64,
    /// Whether to end as soon as no client is connected.
    is_retired: AtomicBool,
    stop: CancellationToken,
    connections: TaskTracker,
    /// The connections of `toolcrib stop`, which wait until the servers have ended.
    stop_requests: Mutex<Vec<OwnedWriteHalf>>,
}

/// A client that is being served.
struct ServedClient {
    hello: ClientHello,
    connected: Instant,
    stream: Arc<StreamClient>,
}

impl Background {
    fn new(socket: BackgroundSocket, stop: CancellationToken) -> Self {
        Self {
            socket,
            started: Instant::now(),
            gateways: SharedGateways::default(),
            clients: Mutex::default(),
            next_client: AtomicU64::new(1),
            is_retired: AtomicBool::new(false),
            stop,
            connections: TaskTracker::new(),
            stop_requests: Mutex::default(),
        }
    }

    /// Accepts connections until the background gateway is stopped or no longer needed. Then stops all servers.
    async fn run(self: Arc<Self>, listening: ListeningSocket) {
        tokio::select! {
            () = self.accept(&listening) => {}
            () = self.until_unneeded() => tracing::info!("the background gateway is no longer needed and stops"),
            () = self.stop.cancelled() => {}
        }
        // From now on, clients start another background gateway. It begins when the servers of this one have ended,
        // because two processes of a server might use the same files.
        let _lock = listening.close();
        self.stop.cancel();
        self.connections.close();
        let _ = tokio::time::timeout(LAST_MESSAGES_TIMEOUT, self.connections.wait()).await;
        self.gateways.stop().await;
        self.stop_requests.lock().clear();
    }

    async fn accept(self: &Arc<Self>, listening: &ListeningSocket) {
        loop {
            match listening.accept().await {
                Ok(stream) => {
                    let background = Arc::clone(self);
                    self.connections.spawn(async move {
                        // An error means that the other side has disconnected.
                        let _ = background.answer(stream).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    /// Stops gateways without clients, and returns when the background gateway is no longer needed.
    async fn until_unneeded(&self) {
        let mut checks = tokio::time::interval(IDLE_CHECK);
        loop {
            checks.tick().await;
            let is_retired = self.is_retired.load(Ordering::Relaxed);
            // If the socket is gone, no client can connect any more.
            let at_once = is_retired || !self.socket.path().exists();
            let (unused, is_any_left) = self.gateways.take_unused(at_once);
            let is_first = self.next_client.load(Ordering::Relaxed) == 1;
            let was_any_stopped = !unused.is_empty();
            for shared in unused {
                self.connections.spawn(async move { shared.stop().await });
            }
            let is_waiting = is_first && !at_once && !has_waited_for_first_client(self.started);
            if !is_any_left && !is_waiting && self.clients.lock().is_empty() {
                if was_any_stopped {
                    tracing::info!("no client was connected for `background_idle`");
                }
                return;
            }
        }
    }

    /// Reads the first line of a connection, and does what it asks for.
    async fn answer(self: Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let (input, mut output) = stream.into_split();
        let mut input = BufReader::new(input);
        let hello = tokio::select! {
            hello = tokio::time::timeout(HELLO_TIMEOUT, background::read_line(&mut input)) => hello?,
            () = self.stop.cancelled() => return Ok(()),
        };
        let reply = match hello {
            Ok(Hello::Serve(hello)) => return self.serve(*hello, input, output).await,
            Ok(Hello::Ping) => HelloReply::Done("running".into()),
            Ok(Hello::Status) => HelloReply::Status(serde_json::to_value(self.status())?),
            Ok(Hello::Stop) => {
                tracing::info!("stopping, as the user requested");
                background::write_line(&mut output, &HelloReply::Done("stopping".into())).await?;
                self.stop_requests.lock().push(output);
                self.stop.cancel();
                return Ok(());
            }
            Ok(Hello::Retire) => {
                tracing::info!("another build was started; ending with the last client");
                self.is_retired.store(true, Ordering::Relaxed);
                HelloReply::Done("retired".into())
            }
            Ok(Hello::Restart(name)) => self.restart(&name),
            Err(error) => HelloReply::Rejected(format!("not a valid first line: {error}")),
        };
        background::write_line(&mut output, &reply).await
    }

    /// Serves a client until it disconnects.
    async fn serve(
        &self,
        hello: ClientHello,
        input: BufReader<OwnedReadHalf>,
        mut output: OwnedWriteHalf,
    ) -> io::Result<()> {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::<StreamClient>::default();
        let _registered = self.register(id, hello.clone(), Arc::clone(&stream));
        let joined = tokio::task::block_in_place(|| self.gateways.join(id, &hello));
        let Membership { shared, must_leave, .. } = &match joined {
            Ok(membership) => membership,
            Err(failure) => {
                let reason = format!("{failure} (hint: {})", failure.hint());
                return background::write_line(&mut output, &HelloReply::Rejected(reason)).await;
            }
        };
        background::write_line(&mut output, &HelloReply::Serving).await?;
        let mut last = SharedOutput::new(output);
        let ended = self.stop.child_token();
        let streams = (input, last.clone());
        let serving = serve::stream(&shared.gateway, hello.profile, streams, ended.clone(), stream);
        let mut serving = std::pin::pin!(serving);
        let mut is_leaving = false;
        let served = tokio::select! {
            served = &mut serving => served,
            () = must_leave.cancelled() => {
                is_leaving = true;
                tracing::info!(pid = hello.pid, "with the changed config, this client needs different servers; disconnecting it, so that it reconnects");
                ended.cancel();
                serving.await
            }
        };
        match served {
            Err(error) => last.send_ended(&error.to_string()).await,
            Ok(()) if self.stop.is_cancelled() => last.send_stopping().await,
            Ok(()) if is_leaving => last.send_leaving().await,
            Ok(()) => {}
        }
        Ok(())
    }

    fn register(&self, id: u64, hello: ClientHello, stream: Arc<StreamClient>) -> Registered<'_> {
        let client = ServedClient { hello, connected: Instant::now(), stream };
        self.clients.lock().insert(id, client);
        Registered { background: self, id }
    }

    fn restart(&self, name: &str) -> HelloReply {
        match background::restart_server(&self.gateways.all(), name) {
            None => HelloReply::Rejected(format!("no server `{name}`")),
            Some(0) => HelloReply::Done(format!(
                "`{name}` is not running; the next request that needs it starts it"
            )),
            Some(1) => HelloReply::Done(format!("`{name}` is restarting")),
            Some(count) => {
                HelloReply::Done(format!("{count} processes of `{name}` are restarting"))
            }
        }
    }

    fn status(&self) -> BackgroundStatus {
        let gateways = self.gateways.all();
        let statuses = || background::server_statuses(&gateways);
        let (mut servers, memory) = tokio::task::block_in_place(statuses);
        let clients = self.clients.lock();
        let client_of = |session: u64| {
            let is_owner = |client: &ServedClient| client.stream.session.get() == Some(&session);
            clients.iter().find(|(_, client)| is_owner(client)).map(|(id, _)| *id)
        };
        for server in &mut servers {
            server.client = server.client.and_then(client_of);
        }
        let config = clients.values().next().map(|client| client.hello.config.clone());
        let client = |(id, client): (&u64, &ServedClient)| ClientStatus {
            id: *id,
            name: client.stream.name.get().cloned(),
            pid: client.hello.pid,
            folder: client.hello.environment.folder().cloned(),
            profile: client.hello.profile.clone(),
            connected_seconds: client.connected.elapsed().as_secs(),
        };
        BackgroundStatus {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: config.or_else(|| self.gateways.config_path()).unwrap_or_default(),
            log: self.socket.log_path(),
            uptime_seconds: self.started.elapsed().as_secs(),
            memory,
            clients: clients.iter().map(client).collect(),
            totals: gateways.first().map(|gateway| gateway.totals()).unwrap_or_default(),
            servers,
        }
    }
}

/// Removes a client from the list of clients when it is dropped.
struct Registered<'a> {
    background: &'a Background,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.background.clients.lock().remove(&self.id);
    }
}
