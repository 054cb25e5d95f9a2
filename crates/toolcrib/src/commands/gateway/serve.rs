//! `toolcrib serve`: the gateway and the LLM proxy for many clients, over HTTP.

use std::sync::Arc;

use toolcrib_core::{Secret, Settings};
use toolcrib_mcp::config::expand::{expand, surroundings};
use toolcrib_mcp::http::token::{Access, FILE};
use toolcrib_mcp::serve::{Closed, Door, MountedService};
use toolcrib_proxy::Proxy;

use super::{END, block_on, closed, load_quietly, log, start, state, stop_on_signals, watch};
use crate::args::ServeArgs;
use crate::output::{Failure, Output, remark};

pub(crate) fn run(args: &ServeArgs, _output: &mut Output) -> Result<bool, Failure> {
    log();
    let named = args.vectors.embedding_model.as_deref();
    let found = load_quietly(args.config.as_deref())?.with_vectors(named, None)?;
    block_on(async {
        let stop = stop_on_signals()?;
        let http = &found.config.http;
        let listen = args.listen.unwrap_or(http.listen);
        let token = http.token.as_ref().map(|token| expand(token, &surroundings)).transpose();
        let token = token.map_err(|error| Failure::input("`http.token`", &error, error.hint()))?;
        let (made, unnamed) = (token.is_none(), http.allowed_hosts.is_empty());
        let access = Access::decide(listen.ip(), token, &state())
            .map_err(|error| closed(&Closed::Token(error)))?;
        let key = match &access {
            Access::Bearer(token) => Some(token.clone()),
            Access::Open => None,
        };
        let asks = key.is_some();
        let config = proxy_config(args, &found.config)?;
        let proxy = proxy(config, found.config.settings.clone(), key)?;
        let mounted = {
            let proxy = Arc::clone(&proxy);
            MountedService { router: proxy.router(), metrics: Box::new(move || proxy.metrics()) }
        };
        let gateway = start(found.config);
        let door =
            Door { listen, access, mounted: Some(mounted) }.open(&gateway, stop.clone()).await;
        let door = door.map_err(|error| closed(&error))?;
        let address = door.address;
        remark(&format!("listening on http://{address}/mcp"));
        remark(&format!("the LLM proxy is at http://{address}"));
        if !listen.ip().is_loopback() && unnamed {
            remark(
                "warning: only requests for `localhost` are answered; name this machine in `http.allowed_hosts`",
            );
        }
        if asks && made {
            let file = state().join(FILE);
            remark(&format!(
                "clients must send the token in `{}` as `Authorization: Bearer …`, to the proxy as `x-toolcrib-key`",
                file.display()
            ));
        }
        if let Some(path) = found.path {
            tokio::spawn(watch::watch(gateway.clone(), path, args.vectors.embedding_model.clone()));
        }
        let served = door.serve().await;
        gateway.stop(END).await;
        served.map(|()| true).map_err(|error| closed(&error))
    })
}

/// The proxy's config: the file's, with what the command line says instead.
fn proxy_config(
    args: &ServeArgs,
    config: &toolcrib_mcp::Config,
) -> Result<toolcrib_proxy::Config, Failure> {
    let read = config.proxy::<toolcrib_proxy::Config>();
    let mut proxy = read.map_err(|error| Failure::input("config", &error, error.hint.clone()))?;
    for (stated, key) in [
        (&args.openai, &mut proxy.openai),
        (&args.anthropic, &mut proxy.anthropic),
        (&args.gemini, &mut proxy.gemini),
    ] {
        if let Some(url) = stated {
            key.clone_from(url);
        }
    }
    for secret in proxy.secrets() {
        let text = expand(secret, &surroundings);
        *secret = text.map_err(|error| Failure::input("a key in `proxy`", &error, error.hint()))?;
    }
    Ok(proxy)
}

fn proxy(
    config: toolcrib_proxy::Config,
    settings: Settings,
    key: Option<Secret>,
) -> Result<Arc<Proxy>, Failure> {
    let proxy = Proxy::new(config, settings, key);
    proxy.map(Arc::new).map_err(|error| Failure::input("proxy", &error, error.hint()))
}
