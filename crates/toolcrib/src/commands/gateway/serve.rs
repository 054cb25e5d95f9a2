//! `toolcrib serve`: runs the gateway and the LLM proxy over HTTP, for many clients.

use std::sync::Arc;

use toolcrib_core::Settings;
use toolcrib_mcp::PoolClients;
use toolcrib_mcp::serve::routes;
use toolcrib_proxy::Proxy;
use toolcrib_server::access::{AccessControl, TOKEN_FILE};
use toolcrib_server::admin::{AdminAccess, AdminToken};
use toolcrib_server::expand::{expand_secret, from_system};
use toolcrib_server::http::Authentication;
use toolcrib_server::{HttpServer, Secret, metrics};

use super::listener::Listener;
use super::serve_address::PublishedAddress;
use super::{
    SHUTDOWN_TIMEOUT, block_on, find_config_and_log, gateway_failure, load_config, log,
    start_gateway, state_folder, stop_on_signals, watch,
};
use crate::args::ServeArgs;
use crate::config::network::{LoadedConfig, Sections};
use crate::deep::Embedding;
use crate::output::{Failure, Output, print_stderr};

pub(crate) fn run(args: &ServeArgs, _output: &mut Output) -> Result<bool, Failure> {
    log::start();
    let location = find_config_and_log(args.config.as_deref())?;
    let config = load_config(location.as_ref(), &args.overrides)?;
    let config = config.with_vectors(&args.vectors, None, Embedding::InBackground)?;
    let file = config.location.clone().map(watch::WatchedFile::new);
    block_on(async {
        let stop = stop_on_signals()?;
        let http = &config.sections.http;
        let listen = args.listen.unwrap_or(http.listen);
        let is_generated = http.token.is_none();
        let listener = Listener::new(listen.ip(), http)?;
        let access = listener.access();
        let needs_token = access.key().is_some();
        let proxy_config = resolve_proxy_config(config.proxy()?, args)?;
        let Sections { gateway, http, .. } = config.sections;
        let admin = Arc::new(AdminAccess::default());
        admin.set_token(admin_token(http.admin_token.as_ref())?);
        let proxy =
            proxy(proxy_config, gateway.settings.clone(), access.clone(), Arc::clone(&admin))?;
        let gateway = start_gateway(gateway, PoolClients::Many);
        let mut registry = metrics::registry();
        gateway.register_metrics(&mut registry);
        proxy.register_metrics(&mut registry);
        let with_totals = Arc::clone(&gateway);
        proxy.include_gateway(move || with_totals.totals());
        let server = HttpServer::bind(listen, &http, access).await;
        let server = server.map_err(|error| gateway_failure(&error, error.hint()))?;
        let (address, shutdown) = (server.address(), server.graceful_shutdown());
        let (server, scheme) = match listener.tls() {
            Some(tls) => (server.with_tls(tls), "https"),
            None => (server, "http"),
        };
        let server = server
            .with_admin(Arc::clone(&admin))
            .mount(routes(&gateway, &shutdown), Authentication::BearerToken)
            .mount(shutdown.track(proxy.router()), Authentication::OwnKeys);
        let published = PublishedAddress::new(state_folder(), scheme, address);
        print_stderr(&format!("listening on {scheme}://{address}/mcp"));
        print_stderr(&format!("the LLM proxy is at {scheme}://{address}"));
        if !listen.ip().is_loopback() && http.allowed_hosts.is_empty() {
            print_stderr(
                "warning: only requests to `localhost` are accepted; add this machine's host name to `http.allowed_hosts`",
            );
        }
        if let (true, true, Some(state)) = (needs_token, is_generated, state_folder()) {
            let file = state.file(TOKEN_FILE);
            print_stderr(&format!(
                "clients must send the token in `{}`: as `Authorization: Bearer …` to /mcp, as `x-toolcrib-key` to the proxy",
                file.display()
            ));
        }
        let command_line = (args.overrides.clone(), args.vectors.clone());
        let folder = std::env::current_dir().unwrap_or_default();
        let watch = watch::ConfigWatch { http, file, command_line, folder };
        let args = args.clone();
        let reload = move |new: &LoadedConfig| reload(&proxy, &admin, new, &args);
        tokio::spawn(watch::watch_config(gateway.clone(), watch, Some(listener), reload));
        server.serve(registry, stop).await;
        drop(published);
        gateway.stop(SHUTDOWN_TIMEOUT).await;
        Ok(true)
    })
}

/// Returns the proxy's config with the references in its secrets expanded. Upstreams that are named on the command line
/// override those in the config.
fn resolve_proxy_config(
    mut proxy: toolcrib_proxy::ProxyConfig,
    args: &ServeArgs,
) -> Result<toolcrib_proxy::ProxyConfig, Failure> {
    for (argument, key) in [
        (&args.openai, &mut proxy.openai),
        (&args.anthropic, &mut proxy.anthropic),
        (&args.gemini, &mut proxy.gemini),
    ] {
        if let Some(url) = argument {
            key.clone_from(url);
        }
    }
    for secret in proxy.secrets() {
        let text = expand_secret(secret, &from_system);
        *secret = text.map_err(|error| Failure::input("a key in `proxy`", &error, error.hint()))?;
    }
    Ok(proxy)
}

/// Applies the callers, the paths and the admin token of a reloaded config.
fn reload(
    proxy: &Proxy,
    admin: &AdminAccess,
    new: &LoadedConfig,
    args: &ServeArgs,
) -> Result<(), Failure> {
    let config = resolve_proxy_config(new.proxy()?, args)?;
    let token = admin_token(new.sections.http.admin_token.as_ref())?;
    let changed = proxy.reload(&config);
    let changed = changed.map_err(|error| Failure::input("proxy", &error, error.hint()))?;
    // The admin token is set last, when nothing can fail any more, because a config with an error must not change
    // anything.
    admin.set_token(token);
    if !changed.is_empty() {
        tracing::warn!(
            "`{}` of `[proxy]` changed; restart to apply the change: only `callers` and `paths` of this section are applied without a restart",
            changed.join("`, `")
        );
    }
    Ok(())
}

/// Returns the admin token of a config, if it has one.
fn admin_token(token: Option<&Secret>) -> Result<Option<AdminToken>, Failure> {
    let token = token.map(|token| expand_secret(token, &from_system)).transpose();
    let token =
        token.map_err(|error| Failure::input("`http.admin_token`", &error, error.hint()))?;
    let token = token.map(AdminToken::new).transpose();
    token.map_err(|error| Failure::input("http", &error, error.hint()))
}

fn proxy(
    config: toolcrib_proxy::ProxyConfig,
    settings: Settings,
    key: AccessControl,
    admin: Arc<AdminAccess>,
) -> Result<Arc<Proxy>, Failure> {
    let proxy = Proxy::new(config, settings, key, admin);
    proxy.map(Arc::new).map_err(|error| Failure::input("proxy", &error, error.hint()))
}
