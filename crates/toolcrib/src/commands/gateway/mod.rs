//! The commands that run the gateway, and what they share: a runtime, a log, a config that is looked at
//! again when it changes, and an orderly end.

pub(crate) mod doctor;
mod listener;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod serve;
mod watch;

use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolcrib_core::TokenCounter;
use toolcrib_mcp::{Config, Environment, Gateway};
use toolcrib_tokens::Estimate;
use tracing_subscriber::EnvFilter;

use crate::args::Overrides;
use crate::config::gateway::{Loaded, load};
use crate::output::{Failure, remark};

/// How long servers have to end when we do; their wardens end them whether we wait or not.
const END: Duration = Duration::from_secs(4);

/// Runs what is asynchronous.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::input("runtime", &error, "see `ulimit -a`"))?;
    let done = runtime.block_on(work);
    // Reading standard input cannot be interrupted; nobody waits for it.
    runtime.shutdown_background();
    done
}

/// Logs go to standard error. `TOOLCRIB_LOG` says how much; the SDK's own are kept down, since they
/// repeat what passes.
fn log() {
    let level = std::env::var("TOOLCRIB_LOG").unwrap_or_else(|_| "info".into());
    let level = ["error", "warn", "info", "debug", "trace", "off"]
        .into_iter()
        .find(|known| level.eq_ignore_ascii_case(known))
        .unwrap_or("info");
    let filter = EnvFilter::new(format!(
        "warn,rmcp=off,toolcrib={level},toolcrib_mcp={level},toolcrib_proxy={level},toolcrib_server={level},toolcrib_store={level}"
    ));
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    // Nobody may be reading any more. To say so would be one more line to the same place, and a panic.
    let lines = lines.log_internal_errors(false);
    let _ = lines.with_target(false).with_writer(std::io::stderr).try_init();
}

/// The config of a command, with what is odd about it said.
fn loaded(named: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Failure> {
    let loaded = load_quietly(named, overrides)?;
    if loaded.sections.gateway.servers.is_empty() {
        let what = match &loaded.path {
            Some(path) => format!("`{}` names no server", path.display()),
            None => "there is no config".into(),
        };
        remark(&format!(
            "warning: {what}; `toolcrib import` finds the servers of your other clients"
        ));
    }
    Ok(loaded)
}

/// The same for a command that has work to do without any server.
fn load_quietly(named: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Failure> {
    let loaded = load(named, overrides)?;
    for warning in &loaded.warnings {
        remark(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// The gateway. What it counts decides how much it shows, to whatever model; for that an estimate will
/// do, which takes none of the memory and time of a vocabulary.
fn start(config: Config) -> Arc<Gateway> {
    start_counting(config, Arc::new(Estimate))
}

fn start_counting(config: Config, counter: Arc<dyn TokenCounter>) -> Arc<Gateway> {
    Gateway::start(config, environment(), counter)
}

fn environment() -> Environment {
    // After an update the file that we were started from may be gone; the link still leads to it.
    let ourselves = if cfg!(target_os = "linux") {
        OsString::from("/proc/self/exe")
    } else {
        std::env::current_exe().map_or_else(|_| "toolcrib".into(), PathBuf::into_os_string)
    };
    Environment { warden: vec![ourselves, "warden".into(), "--".into()], state: state() }
}

/// Where tokens, logins and what was learnt are kept.
fn state() -> PathBuf {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local").join("state")))
        .unwrap_or_else(std::env::temp_dir)
        .join("toolcrib")
}

/// Cancelled when we are told to end.
fn stop_on_signals() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let mut signals = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ];
    let told = stop.clone();
    tokio::spawn(async move {
        let [terminate, interrupt, hangup] = &mut signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        tracing::info!("ending");
        told.cancel();
    });
    Ok(stop)
}

/// Why the gateway is not served.
fn not_served(error: &impl std::fmt::Display, hint: impl Into<String>) -> Failure {
    Failure::input("gateway", error, hint)
}
