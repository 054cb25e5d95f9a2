//! Connects `toolcrib mcp` to the background gateway, and starts one if there is none.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout_at};
use toolcrib_mcp::ClientEnvironment;
use toolcrib_mcp::background::{
    self, BackgroundSocket, ClientHello, GatewayStream, Hello, HelloReply, SocketError, Startup,
};
use toolcrib_server::private_file::PrivateFolder;

use super::log_file::MAX_LOG_BYTES;
use super::{ClientOptions, own_executable};
use crate::args::McpArgs;
use crate::config::location::Location;

/// How often to try again to connect while the background gateway starts.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// How long a client waits for an earlier background gateway to end. That takes at most 11 s: 3 s for the last messages to
/// its clients, and twice 4 s for its servers.
const ENDING_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of times that a client starts the background gateway if that ends each time.
const MAX_FAILED_STARTS: u32 = 3;

/// The background gateway that a client uses.
pub(in super::super) struct BackgroundGateway {
    socket: BackgroundSocket,
    hello: ClientHello,
    /// How long connecting may take.
    wait: Duration,
}

/// Why a client cannot be served by the background gateway.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum JoinError {
    /// The socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// No answer arrived in time.
    #[error("the background gateway did not answer within {} s; its log is `{}`", wait.as_secs_f64(), log.display())]
    TimedOut {
        /// How long the client waited.
        wait: Duration,
        /// Its log.
        log: PathBuf,
    },
    /// It ended before it answered.
    #[error("the background gateway ended before it answered")]
    Disconnected,
    /// It does not serve this client.
    #[error("the background gateway cannot serve this client: {0}")]
    Rejected(String),
    /// It could not be started.
    #[error("the background gateway cannot be started: {0}")]
    Start(io::Error),
}

impl JoinError {
    /// Returns what the user can do, if anything.
    pub(in super::super) fn hint(&self) -> Option<String> {
        match self {
            Self::Socket(SocketError::Folder(error)) => Some(error.hint()),
            _ => None,
        }
    }
}

/// The outcome of one attempt to connect.
enum Attempt {
    Serving(GatewayStream),
    /// Nobody listens on the socket.
    NotRunning,
    /// The background gateway ended before it answered.
    Ended,
}

/// The outcome of one attempt to start the background gateway.
enum StartAttempt {
    Serving(GatewayStream),
    /// Another process was faster, or an earlier one has not ended yet.
    NotFirst,
    /// The new process ended, for this reason if it reported one.
    Ended(Option<String>),
}

impl BackgroundGateway {
    /// Describes the background gateway for a client with these arguments.
    pub(in super::super) fn new(
        state: &PrivateFolder,
        location: &Location,
        args: &McpArgs,
        wait: Duration,
    ) -> Self {
        let path = location.path();
        let config = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let build = background::build_id(own_executable().as_ref());
        Self {
            socket: BackgroundSocket::new(state, &config, &build),
            hello: ClientHello {
                pid: std::process::id(),
                config,
                is_config_named: matches!(location, Location::Named(_)),
                profile: args.profile.clone(),
                options: ClientOptions::new(args).to_value(),
                environment: ClientEnvironment::of_this_process(),
            },
            wait,
        }
    }

    /// Returns the path of the log of the background gateway.
    pub(in super::super) fn log_path(&self) -> PathBuf {
        self.socket.log_path()
    }

    /// Whether the background gateway answers. Waits for as long as it takes.
    pub(in super::super) async fn responds(&self) -> bool {
        match self.socket.connect().await {
            Ok(stream) => exchange(stream, &Hello::Ping).await.is_ok(),
            // If the socket was removed, this says nothing about the gateway.
            Err(error) => error.is_unused(),
        }
    }

    /// Connects to the background gateway, and starts it if it is not running. If an earlier one is still ending its
    /// servers, waits for that.
    pub(in super::super) async fn join(&self) -> Result<GatewayStream, JoinError> {
        let began = Instant::now();
        let mut deadline = began + self.wait;
        let mut failed_starts = 0;
        loop {
            let Ok(tried) = timeout_at(deadline, self.try_to_join()).await else {
                return Err(JoinError::TimedOut { wait: self.wait, log: self.socket.log_path() });
            };
            match tried? {
                StartAttempt::Serving(stream) => return Ok(stream),
                StartAttempt::NotFirst if began.elapsed() < ENDING_TIMEOUT => {
                    deadline = Instant::now() + self.wait;
                }
                StartAttempt::NotFirst => {}
                StartAttempt::Ended(_) if failed_starts + 1 < MAX_FAILED_STARTS => {
                    failed_starts += 1;
                }
                StartAttempt::Ended(reason) => {
                    let reason = reason.unwrap_or_else(|| {
                        let log = self.socket.log_path();
                        format!("it ended while it started; its log is `{}`", log.display())
                    });
                    return Err(JoinError::Start(io::Error::other(reason)));
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    async fn try_to_join(&self) -> Result<StartAttempt, JoinError> {
        match self.attempt().await? {
            Attempt::Serving(stream) => Ok(StartAttempt::Serving(stream)),
            Attempt::Ended => Ok(StartAttempt::NotFirst),
            Attempt::NotRunning => self.start().await,
        }
    }

    /// Starts the background gateway, unless another client is faster, and connects to it. The lock is held until the
    /// process listens, so that no other client starts one as well.
    async fn start(&self) -> Result<StartAttempt, JoinError> {
        let socket = self.socket.clone();
        let locked = tokio::task::spawn_blocking(move || socket.lock_start()).await;
        let _lock = locked.map_err(|error| JoinError::Start(error.into()))??;
        if let Attempt::Serving(stream) = self.attempt().await? {
            return Ok(StartAttempt::Serving(stream));
        }
        let log = self.socket.open_log(MAX_LOG_BYTES)?;
        let command =
            [own_executable(), "background".into(), "--detach".into(), self.socket.name().into()];
        let starter = move || background::run_starter(&command, log);
        let started = tokio::task::spawn_blocking(starter).await;
        let started = started.map_err(|error| JoinError::Start(error.into()))?;
        match started.map_err(JoinError::Start)? {
            Startup::Listening => {}
            Startup::NotFirst => return Ok(StartAttempt::NotFirst),
            Startup::Ended(reason) => return Ok(StartAttempt::Ended(reason)),
        }
        Ok(match self.attempt().await? {
            Attempt::Serving(stream) => StartAttempt::Serving(stream),
            Attempt::Ended | Attempt::NotRunning => StartAttempt::Ended(None),
        })
    }

    async fn attempt(&self) -> Result<Attempt, JoinError> {
        let stream = match self.socket.connect().await {
            Ok(stream) => stream,
            Err(error) if error.is_unused() => return Ok(Attempt::NotRunning),
            Err(error) => return Err(error.into()),
        };
        let hello = Hello::Serve(Box::new(self.hello.clone()));
        match exchange(stream, &hello).await {
            Ok((HelloReply::Serving, stream)) => Ok(Attempt::Serving(stream)),
            Ok((HelloReply::Rejected(reason), _)) => Err(JoinError::Rejected(reason)),
            Ok(_) => Err(JoinError::Rejected("it sent an unexpected answer".into())),
            Err(_) => Ok(Attempt::Ended),
        }
    }
}

/// Sends a request to a background gateway, and returns its answer.
pub(in super::super) async fn ask(
    socket: &BackgroundSocket,
    hello: &Hello,
    wait: Duration,
) -> Result<HelloReply, JoinError> {
    Ok(ask_on_stream(socket, hello, wait).await?.0)
}

/// Like [`ask`]. Also returns the connection, which may stay open.
pub(in super::super) async fn ask_on_stream(
    socket: &BackgroundSocket,
    hello: &Hello,
    wait: Duration,
) -> Result<(HelloReply, GatewayStream), JoinError> {
    let asked = async {
        let stream = socket.connect().await?;
        exchange(stream, hello).await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                JoinError::Rejected("it sent an unexpected answer".into())
            }
            _ => JoinError::Disconnected,
        })
    };
    tokio::time::timeout(wait, asked)
        .await
        .unwrap_or_else(|_| Err(JoinError::TimedOut { wait, log: socket.log_path() }))
}

/// Sends the first line, and reads the answer to it.
async fn exchange(stream: UnixStream, hello: &Hello) -> io::Result<(HelloReply, GatewayStream)> {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    background::write_line(&mut output, hello).await?;
    let reply = background::read_line(&mut input).await?;
    Ok((reply, (Box::new(input), Box::new(output))))
}
