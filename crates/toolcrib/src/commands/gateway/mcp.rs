//! `toolcrib mcp`: the gateway for one client, on standard input and output.

use std::io::IsTerminal as _;

use toolcrib_mcp::serve;

use super::{
    END, block_on, loaded, located_in_log, log, not_served, start, stop_on_signals, watch,
};
use crate::args::McpArgs;
use crate::output::{Failure, Output, remark};

pub(crate) fn run(args: &McpArgs, _output: &mut Output) -> Result<bool, Failure> {
    log::start();
    let named = args.vectors.embedding_model.as_deref();
    let location = located_in_log(args.config.as_deref())?;
    let found = loaded(location.as_ref(), &args.overrides)?.with_vectors(named, None)?;
    let file = found.location.clone().map(watch::WatchedFile::new);
    block_on(async {
        let stop = stop_on_signals()?;
        if std::io::stdin().is_terminal() {
            remark(
                "note: waiting for an MCP client on standard input; it is the client that starts this",
            );
        }
        let gateway = start(found.sections.gateway);
        if file.is_some() {
            let stated = (args.overrides.clone(), args.vectors.embedding_model.clone());
            let watched = watch::Watched { http: found.sections.http, file, stated };
            tokio::spawn(watch::watch(gateway.clone(), watched, None, |_| Ok(())));
        }
        let served = serve::stdio(&gateway, args.profile.clone(), stop).await;
        gateway.stop(END).await;
        served.map(|()| true).map_err(|error| not_served(&error, error.hint()))
    })
}
