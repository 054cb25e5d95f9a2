//! The commands that run the gateway, and the code they share: the runtime, the log, the reloaded config and the
//! shutdown.

pub(super) mod ask_servers;
pub(crate) mod background;
mod checkup;
pub(crate) mod doctor;
mod listener;
mod log;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod ps;
mod relay_connector;
pub(crate) mod serve;
pub(super) mod serve_address;
pub(super) mod tool_call;
mod watch;

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolcrib_mcp::{Gateway, GatewayConfig, HostEnvironment, PoolClients};
use toolcrib_tokens::EstimateCounter;

use crate::args::Overrides;
use crate::config::location::{Location, describe_location, note_unused_config};
use crate::config::network::{LoadedConfig, load};
use crate::output::{Failure, print_stderr};
use crate::user_folders::state_folder;

/// How long the gateway waits at shutdown for its servers to exit. After that, their wardens end them.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// Runs a future on a new runtime.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::input("runtime", &error, "see `ulimit -a`"))?;
    let done = runtime.block_on(work);
    // The runtime is shut down in the background, because a thread that reads standard input cannot be interrupted.
    runtime.shutdown_background();
    done
}

/// Finds the config file of a command, and reports with `say` which one it is.
fn find_config(named: Option<&Path>, say: impl FnOnce(&str)) -> Result<Option<Location>, Failure> {
    let location = Location::find(named)?;
    say(&describe_location(location.as_ref()));
    note_unused_config(location.as_ref());
    Ok(location)
}

/// Finds the config file of a command that has a log, and logs which one it is.
fn find_config_and_log(named: Option<&Path>) -> Result<Option<Location>, Failure> {
    find_config(named, |line| tracing::info!("{line}"))
}

/// Loads the config of a command and prints its warnings. Also warns if the config has no servers.
fn load_config_with_servers(
    location: Option<&Location>,
    overrides: &Overrides,
) -> Result<LoadedConfig, Failure> {
    let loaded = load_config(location, overrides)?;
    if loaded.sections.gateway.servers.is_empty() {
        let problem = match &loaded.location {
            Some(location) => format!("`{}` has no servers", location.path().display()),
            None => "there is no config".into(),
        };
        print_stderr(&format!(
            "warning: {problem}; `toolcrib connect` adds the servers of your clients"
        ));
    }
    Ok(loaded)
}

/// Loads the config of a command and prints its warnings.
fn load_config(
    location: Option<&Location>,
    overrides: &Overrides,
) -> Result<LoadedConfig, Failure> {
    let loaded = load(location, overrides)?;
    for warning in &loaded.warnings {
        print_stderr(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// Starts the gateway with estimated token counts. The gateway uses the counts only to decide how much to show, and its
/// clients may use any model. So an estimate is good enough, and avoids the memory and the load time of a tokenizer's
/// vocabulary.
fn start_gateway(config: GatewayConfig, clients: PoolClients) -> Arc<Gateway> {
    Gateway::start(config, environment(), clients, Arc::new(EstimateCounter))
}

/// Returns the path with which this program is started again. If an update has removed the file that this process was
/// started from, the link `/proc/self/exe` still works.
fn own_executable() -> OsString {
    if cfg!(target_os = "linux") {
        OsString::from("/proc/self/exe")
    } else {
        std::env::current_exe().map_or_else(|_| "toolcrib".into(), PathBuf::into_os_string)
    }
}

pub(super) fn environment() -> HostEnvironment {
    let state = state_folder();
    if state.is_none() {
        print_stderr(
            "warning: tool lists, logins and tokens are not saved, because there is no state folder; set HOME or XDG_STATE_HOME",
        );
    }
    HostEnvironment {
        warden_command: vec![own_executable(), "warden".into(), "--".into()],
        state_folder: state,
    }
}

/// Returns a token that SIGTERM, SIGINT and SIGHUP cancel.
fn stop_on_signals() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let mut signals = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ];
    let stopped = stop.clone();
    tokio::spawn(async move {
        let [terminate, interrupt, hangup] = &mut signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        tracing::info!("shutting down");
        stopped.cancel();
    });
    Ok(stop)
}

/// Returns the failure of a command whose gateway cannot serve its clients.
fn gateway_failure(error: &impl std::fmt::Display, hint: impl Into<String>) -> Failure {
    Failure::input("gateway", error, hint)
}
