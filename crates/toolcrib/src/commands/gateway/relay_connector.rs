//! Connects the relay of `toolcrib mcp` to gateways: to the background gateway, and to a gateway in this process if the
//! background gateway cannot be used any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolcrib_mcp::background::{GatewayConnector, GatewayStream};
use toolcrib_mcp::{Gateway, serve};

use super::SHUTDOWN_TIMEOUT;
use super::background::BackgroundGateway;
use super::mcp::{log_why_own_gateway, start_own_gateway};
use crate::args::McpArgs;
use crate::config::location::Location;
use crate::config::network::load;

/// After this many connections in a row that each ended within [`QUICK_END`], the relay does not join the background
/// gateway again.
const MAX_QUICK_ENDS: u32 = 3;
/// A connection that lasts less than this counts as a quick end, unless the gateway announced its end.
const QUICK_END: Duration = Duration::from_secs(5);
/// Size of the buffer between the relay and a gateway in the same process, in bytes.
const DUPLEX_BYTES: usize = 64 << 10;

/// The gateways of a relay.
pub(super) struct RelayConnector<'a> {
    args: &'a McpArgs,
    location: Option<&'a Location>,
    background: &'a BackgroundGateway,
    /// The connection that was made before the relay was started.
    first: Option<GatewayStream>,
    joined: Instant,
    quick_ends: u32,
    /// The gateway in this process, and the task that serves the client.
    private: Option<(Arc<Gateway>, JoinHandle<()>)>,
    stop: CancellationToken,
}

impl<'a> RelayConnector<'a> {
    /// `first` is a connection to the background gateway.
    pub(super) fn new(
        args: &'a McpArgs,
        location: Option<&'a Location>,
        background: &'a BackgroundGateway,
        first: GatewayStream,
        stop: CancellationToken,
    ) -> Self {
        Self {
            args,
            location,
            background,
            first: Some(first),
            joined: Instant::now(),
            quick_ends: 0,
            private: None,
            stop,
        }
    }

    /// Stops the gateway in this process, if there is one.
    pub(super) async fn end(self) {
        if let Some((gateway, task)) = self.private {
            task.abort();
            gateway.stop(SHUTDOWN_TIMEOUT).await;
        }
    }

    /// Starts a gateway in this process, with the config as it is now. Errors are only logged, because the client is
    /// already being served.
    fn start_own_gateway(&mut self) -> Option<GatewayStream> {
        let loaded = load(self.location, &self.args.overrides);
        let started = loaded.and_then(|config| start_own_gateway(self.args, config));
        let gateway = started
            .inspect_err(|failure| tracing::error!(hint = failure.hint(), "{failure}"))
            .ok()?;
        let (profile, stop) = (self.args.profile.clone(), self.stop.clone());
        let (stream, task) = serve_in_process(&gateway, profile, stop);
        self.private = Some((gateway, task));
        Some(stream)
    }
}

impl GatewayConnector for &mut RelayConnector<'_> {
    async fn connect(&mut self, is_expected: bool) -> Option<GatewayStream> {
        if let Some(stream) = self.first.take() {
            return Some(stream);
        }
        if self.private.is_some() {
            return None;
        }
        let is_quick = self.joined.elapsed() < QUICK_END;
        self.quick_ends = if is_quick && !is_expected { self.quick_ends + 1 } else { 0 };
        if self.quick_ends < MAX_QUICK_ENDS {
            match self.background.join().await {
                Ok(stream) => {
                    self.joined = Instant::now();
                    tracing::info!("joined the background gateway again");
                    return Some(stream);
                }
                Err(error) => log_why_own_gateway(&error),
            }
        } else {
            tracing::warn!(
                "this client gets servers of its own, because the last {} connections to the background gateway ended within 5 s",
                self.quick_ends
            );
        }
        self.start_own_gateway()
    }

    /// A gateway in this process always responds.
    async fn responds(&self) -> bool {
        self.private.is_some() || self.background.responds().await
    }
}

/// Serves a client with a gateway in this process, on a stream in memory.
pub(super) fn serve_in_process(
    gateway: &Arc<Gateway>,
    profile: Option<String>,
    stop: CancellationToken,
) -> (GatewayStream, tokio::task::JoinHandle<()>) {
    let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
    let (input, output) = tokio::io::split(ours);
    let gateway = Arc::clone(gateway);
    let task = tokio::spawn(async move {
        let streams = tokio::io::split(theirs);
        if let Err(error) = serve::stream(&gateway, profile, streams, stop, Arc::default()).await {
            tracing::error!(hint = error.hint(), "{error}");
        }
    });
    ((Box::new(input), Box::new(output)), task)
}
