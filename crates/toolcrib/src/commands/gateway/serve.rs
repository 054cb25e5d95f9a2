//! `toolcrib serve`: the gateway for many clients, over HTTP.

use toolcrib_mcp::config::expand::{expand, surroundings};
use toolcrib_mcp::http::token::{Access, FILE};
use toolcrib_mcp::serve::{Closed, Door};

use super::{END, block_on, closed, loaded, log, start, state, stop_on_signals, watch};
use crate::args::ServeArgs;
use crate::output::{Failure, Output, remark};

pub(crate) fn run(args: &ServeArgs, _output: &mut Output) -> Result<bool, Failure> {
    log();
    let found = loaded(args.config.as_deref())?;
    block_on(async {
        let stop = stop_on_signals()?;
        let http = &found.config.http;
        let listen = args.listen.unwrap_or(http.listen);
        let token = http.token.as_ref().map(|token| expand(token, &surroundings)).transpose();
        let token = token.map_err(|error| Failure::input("`http.token`", &error, error.hint()))?;
        let (made, unnamed) = (token.is_none(), http.allowed_hosts.is_empty());
        let access = Access::decide(listen.ip(), token, &state())
            .map_err(|error| closed(&Closed::Token(error)))?;
        let asks = matches!(access, Access::Bearer(_));
        let gateway = start(found.config);
        let door = Door { listen, access }.open(&gateway, stop.clone()).await;
        let door = door.map_err(|error| closed(&error))?;
        remark(&format!("listening on http://{}/mcp", door.address));
        if !listen.ip().is_loopback() && unnamed {
            remark(
                "warning: only requests for `localhost` are answered; name this machine in `http.allowed_hosts`",
            );
        }
        if asks && made {
            let file = state().join(FILE);
            remark(&format!(
                "clients must send the token in `{}` as `Authorization: Bearer …`",
                file.display()
            ));
        }
        if let Some(path) = found.path {
            tokio::spawn(watch::watch(gateway.clone(), path));
        }
        let served = door.serve().await;
        gateway.stop(END).await;
        served.map(|()| true).map_err(|error| closed(&error))
    })
}
