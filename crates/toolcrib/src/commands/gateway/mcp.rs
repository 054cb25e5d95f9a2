//! `toolcrib mcp`: runs the gateway over stdio, for one client.

use std::io::IsTerminal as _;

use toolcrib_mcp::{PoolClients, serve};

use super::{
    SHUTDOWN_TIMEOUT, block_on, find_config_and_log, gateway_failure, load_config_with_servers,
    log, start_gateway, stop_on_signals, watch,
};
use crate::args::McpArgs;
use crate::output::{Failure, Output, print_stderr};

pub(crate) fn run(args: &McpArgs, _output: &mut Output) -> Result<bool, Failure> {
    log::start();
    let named = args.vectors.embedding_model.as_deref();
    let location = find_config_and_log(args.config.as_deref())?;
    let config =
        load_config_with_servers(location.as_ref(), &args.overrides)?.with_vectors(named, None)?;
    let file = config.location.clone().map(watch::WatchedFile::new);
    block_on(async {
        let stop = stop_on_signals()?;
        if std::io::stdin().is_terminal() {
            print_stderr(
                "note: waiting for an MCP client on standard input; clients start this command themselves",
            );
        }
        let gateway = start_gateway(config.sections.gateway, PoolClients::One);
        if file.is_some() {
            let command_line = (args.overrides.clone(), args.vectors.embedding_model.clone());
            let watch = watch::ConfigWatch { http: config.sections.http, file, command_line };
            tokio::spawn(watch::watch_config(gateway.clone(), watch, None, |_| Ok(())));
        }
        let served = serve::stdio(&gateway, args.profile.clone(), stop).await;
        gateway.stop(SHUTDOWN_TIMEOUT).await;
        served.map(|()| true).map_err(|error| gateway_failure(&error, error.hint()))
    })
}
