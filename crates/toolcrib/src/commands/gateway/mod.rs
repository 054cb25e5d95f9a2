//! The commands that run the gateway, and what they share: a runtime, a log, a config that is looked at
//! again when it changes, and an orderly end.

pub(crate) mod doctor;
mod listener;
mod log;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod serve;
mod watch;

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolcrib_core::TokenCounter;
use toolcrib_mcp::{Config, Environment, Gateway};
use toolcrib_server::private_file::PrivateFolder;
use toolcrib_tokens::Estimate;

use crate::args::Overrides;
use crate::config::gateway::{Loaded, load};
use crate::config::location::{Location, in_use, note_unused};
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

/// The config file of a command. Which one it is goes first into what the command says.
fn located(named: Option<&Path>, say: impl FnOnce(&str)) -> Result<Option<Location>, Failure> {
    let location = Location::find(named)?;
    say(&in_use(location.as_ref()));
    note_unused(location.as_ref());
    Ok(location)
}

/// The same for a command that has a log.
fn located_in_log(named: Option<&Path>) -> Result<Option<Location>, Failure> {
    located(named, |line| tracing::info!("{line}"))
}

/// The config of a command, with what is odd about it said.
fn loaded(location: Option<&Location>, overrides: &Overrides) -> Result<Loaded, Failure> {
    let loaded = load_quietly(location, overrides)?;
    if loaded.sections.gateway.servers.is_empty() {
        let what = match &loaded.location {
            Some(location) => format!("`{}` names no server", location.path().display()),
            None => "there is no config".into(),
        };
        remark(&format!(
            "warning: {what}; `toolcrib import` finds the servers of your other clients"
        ));
    }
    Ok(loaded)
}

/// The same for a command that has work to do without any server.
fn load_quietly(location: Option<&Location>, overrides: &Overrides) -> Result<Loaded, Failure> {
    let loaded = load(location, overrides)?;
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
    let state = state();
    if state.is_none() {
        remark(
            "warning: there is no state folder, because HOME is not set: lists, logins and tokens are not saved",
        );
    }
    Environment { warden: vec![ourselves, "warden".into(), "--".into()], state }
}

/// Where tokens, logins and what was learnt are kept. Without a home there is no such place: in a folder for
/// temporary files, others could prepare what we find there.
fn state() -> Option<PrivateFolder> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = folder("HOME");
    let state = folder("XDG_STATE_HOME")
        .or_else(|| home.as_ref().map(|home| home.join(".local").join("state")))?;
    Some(PrivateFolder::new(state.join("toolcrib"), home))
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
