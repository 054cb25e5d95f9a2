//! `toolcrib mcp`: the gateway for one client, on standard input and output.

use toolcrib_mcp::serve;

use super::{END, block_on, closed, loaded, log, start, stop_on_signals, watch};
use crate::args::McpArgs;
use crate::output::{Failure, Output};

pub(crate) fn run(args: &McpArgs, _output: &mut Output) -> Result<bool, Failure> {
    log();
    let found = loaded(args.config.as_deref())?;
    block_on(async {
        let stop = stop_on_signals()?;
        if found.config.servers.is_empty() {
            tracing::warn!(
                "the config names no server; `toolcrib import` finds those of your other clients"
            );
        }
        let gateway = start(found.config);
        if let Some(path) = found.path {
            tokio::spawn(watch::watch(gateway.clone(), path));
        }
        let served = serve::stdio(&gateway, args.profile.clone(), stop).await;
        gateway.stop(END).await;
        served.map(|()| true).map_err(|error| closed(&error))
    })
}
