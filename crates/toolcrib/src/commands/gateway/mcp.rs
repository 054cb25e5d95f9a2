//! `toolcrib mcp`: serves one client over stdio, through the background gateway or with a gateway of its own.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolcrib_mcp::background::{GatewayStream, RelaySettings, relay_stdio};
use toolcrib_mcp::{Gateway, PoolClients, serve};

use super::background::{BackgroundGateway, JoinError};
use super::relay_connector::RelayConnector;
use super::{
    SHUTDOWN_TIMEOUT, block_on, find_config_and_log, gateway_failure, load_config_with_servers,
    log, start_gateway, state_folder, stop_on_signals, watch,
};
use crate::args::McpArgs;
use crate::config::network::LoadedConfig;
use crate::deep::Embedding;
use crate::output::{Failure, Output, print_stderr};

/// Bytes by which a line of the client may exceed the maximum size of a request. The gateway then still sees that the
/// request is too large, and answers it with an error.
const LINE_MARGIN: usize = 64 << 10;

pub(crate) fn run(args: &McpArgs, _output: &mut Output) -> Result<bool, Failure> {
    log::start();
    let location = find_config_and_log(args.config.as_deref())?;
    let config = load_config_with_servers(location.as_ref(), &args.overrides)?;
    block_on(async {
        let stop = stop_on_signals()?;
        if std::io::stdin().is_terminal() {
            print_stderr(
                "note: waiting for an MCP client on standard input; clients start this command themselves",
            );
        }
        if let Some(background) = background_gateway(args, &config) {
            match background.join().await {
                Ok(stream) => {
                    let log = background.log_path();
                    tracing::info!(log = %log.display(), "joined the background gateway");
                    return relay(args, &config, &background, stream, stop).await;
                }
                Err(error) => log_why_own_gateway(&error),
            }
        }
        serve_privately(args, config, stop).await
    })
}

/// Returns the background gateway that serves this client, or `None` if the client must have its own gateway.
pub(super) fn background_gateway(
    args: &McpArgs,
    config: &LoadedConfig,
) -> Option<BackgroundGateway> {
    if args.own {
        return None;
    }
    let gateway = &config.sections.gateway;
    // Without a config there are no servers to share.
    let location = config.location.as_ref()?;
    let Some(state) = state_folder() else {
        tracing::warn!(
            hint = "set HOME or XDG_STATE_HOME",
            "this client gets servers of its own, because there is no state folder"
        );
        return None;
    };
    let wait = Duration::from_secs_f64(gateway.gateway.background_wait);
    Some(BackgroundGateway::new(&state, location, args, wait))
}

pub(super) fn log_why_own_gateway(error: &JoinError) {
    tracing::warn!(
        hint = error.hint(),
        "this client gets servers of its own, because the background gateway cannot be used: {error}"
    );
}

/// Starts a gateway in this process that reloads its config.
pub(super) fn start_own_gateway(
    args: &McpArgs,
    config: LoadedConfig,
) -> Result<Arc<Gateway>, Failure> {
    let config = config.with_vectors(&args.vectors, None, Embedding::InBackground)?;
    let file = config.location.clone().map(watch::WatchedFile::new);
    let gateway = start_gateway(config.sections.gateway, PoolClients::One);
    if file.is_some() {
        let command_line = (args.overrides.clone(), args.vectors.clone());
        let folder = std::env::current_dir().unwrap_or_default();
        let watch = watch::ConfigWatch { http: config.sections.http, file, command_line, folder };
        tokio::spawn(watch::watch_config(gateway.clone(), watch, None, |_| Ok(())));
    }
    Ok(gateway)
}

/// Serves the client with a gateway in this process.
async fn serve_privately(
    args: &McpArgs,
    config: LoadedConfig,
    stop: CancellationToken,
) -> Result<bool, Failure> {
    let gateway = start_own_gateway(args, config)?;
    let served = serve::stdio(&gateway, args.profile.clone(), stop).await;
    gateway.stop(SHUTDOWN_TIMEOUT).await;
    served.map(|()| true).map_err(|error| gateway_failure(&error, error.hint()))
}

/// Passes messages on between the client and the background gateway. If that ends, joins or starts another one. If none
/// can be used any more, continues with a gateway in this process.
async fn relay(
    args: &McpArgs,
    config: &LoadedConfig,
    background: &BackgroundGateway,
    first: GatewayStream,
    stop: CancellationToken,
) -> Result<bool, Failure> {
    let gateway = &config.sections.gateway.gateway;
    let settings = RelaySettings {
        line_bytes: gateway.limits.request_bytes + LINE_MARGIN,
        check_interval: Duration::from_secs_f64(gateway.background_check),
    };
    let location = config.location.as_ref();
    let mut connector = RelayConnector::new(args, location, background, first, stop.clone());
    let relayed = tokio::select! {
        relayed = relay_stdio(settings, &mut connector) => relayed,
        () = stop.cancelled() => Ok(()),
    };
    connector.end().await;
    relayed.map(|()| true).map_err(|error| {
        gateway_failure(
            &error,
            "`toolcrib mcp` is meant to be started by an MCP client; `toolcrib docs clients` shows how",
        )
    })
}
