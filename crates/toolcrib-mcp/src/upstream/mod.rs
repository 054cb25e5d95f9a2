//! One server: kept connected, listed, and asked.
//!
//! Each server has a task of its own that connects, lists what there is, and waits for the connection to
//! end; then it tries again, less and less often. Nobody waits for that task: what is known of the
//! server, and what became of it, are there to be read at any time.

mod callers;
mod client;
mod connect;
mod debounce;
mod definitions;
mod failed;
mod http;
mod known;
mod link;
mod log_level;
mod reason;
mod retry;
mod secrets;
mod sessions;
mod status;
mod stdio;
mod tap;

pub(crate) use callers::{Asked, Caller, Listed, QUESTIONS, Said};
pub(crate) use client::ourselves;
pub use connect::Environment;
#[cfg(test)]
pub(crate) use definitions::Definitions;
pub(crate) use failed::Failed;
pub(crate) use known::Known;
pub(crate) use link::{Link, Pending, Step};
pub(crate) use log_level::rank;
use reason::reason;
pub(crate) use sessions::{Present, Sessions};
pub use status::{Era, Phase, Status};
#[cfg(feature = "fuzzing")]
pub use stdio::messages_in;
pub(crate) use tap::request_id;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use rmcp::model::{ClientRequest, LoggingLevel, SetLevelRequest, SetLevelRequestParams};
use rmcp::service::ClientLifecycleMode;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::config::{Limits, Server, seconds};
use crate::metrics::Metrics;
use callers::Callers;
use connect::{Connected, NotConnected};
use debounce::Debounce;
use retry::Retry;

/// How long a server that starts counts as starting: as many as the limit allows start at once.
const TURN: Duration = Duration::from_secs(3);
/// How long a call waits for a server that is starting.
const STARTING: Duration = Duration::from_secs(10);
/// How often a server reached over HTTP is asked whether it is still there.
const CHECK: Duration = Duration::from_secs(30);
/// How soon a server that is busy is looked at again.
const RECHECK: Duration = Duration::from_secs(1);
/// How often the lists of a server are looked at that does not tell when they change.
const RELIST: Duration = Duration::from_mins(10);
/// How long it has for that.
const CHECK_WITHIN: Duration = Duration::from_secs(10);

/// How long the last messages to a server may take.
const FAREWELL: Duration = Duration::from_millis(200);

/// What all servers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    /// Servers that may start at the same time.
    pub(crate) starting: Semaphore,
    /// Calls that may be under way, of all servers together.
    pub(crate) calls: Arc<Semaphore>,
    /// Something that clients can see changed.
    pub(crate) news: Notify,
    pub(crate) environment: Environment,
    pub(crate) sessions: Arc<Sessions>,
    /// What clients of the older era want to see of logs: the most that any of them asked for.
    pub(crate) log_level: Mutex<Option<LoggingLevel>>,
    pub(crate) metrics: Arc<Metrics>,
    /// Resources that changed: the server and the uri.
    pub(crate) updated: mpsc::Sender<(Arc<str>, String)>,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    config: ArcSwap<Server>,
    pub(crate) callers: Arc<Callers>,
    status: watch::Sender<Status>,
    known: ArcSwapOption<Known>,
    /// Whether `known` is newer than what is kept for the next run.
    fresh: AtomicBool,
    /// Resources that clients want to hear about, by their own addresses.
    watched: Mutex<BTreeSet<String>>,
    /// One change of those at a time.
    watching: tokio::sync::Mutex<()>,
    /// Those changed.
    rewatch: Notify,
    link: ArcSwapOption<Link>,
    /// Calls that may be under way.
    calls: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// How many that is.
    at_once: usize,
    /// Whether the next connection begins with the newer era.
    probe: AtomicBool,
    /// Somebody found the connection broken.
    suspect: Notify,
    stop: CancellationToken,
    shared: Arc<Shared>,
}

/// Leave to send one call.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) link: Arc<Link>,
    _own: OwnedSemaphorePermit,
    all: Option<OwnedSemaphorePermit>,
}

impl Leave {
    /// Gives back the place among all calls; the one at the server stays taken.
    pub(crate) fn rest(&mut self) {
        self.all = None;
    }
}

/// Why a call is not sent.
#[derive(Debug)]
pub(crate) enum Unavailable {
    /// The server is not connected.
    Down(String),
    /// Too many calls wait for it.
    Busy(String),
}

impl Upstream {
    /// A server with what was known of it before.
    pub(crate) fn new(
        name: Arc<str>,
        config: Server,
        remembered: Option<Known>,
        shared: Arc<Shared>,
    ) -> Arc<Self> {
        let at_once = if config.parallel { shared.limits.server_calls } else { 1 };
        let phase = if config.enabled { Phase::Connecting } else { Phase::Off };
        Arc::new(Self {
            callers: Arc::default(),
            status: watch::Sender::new(Status::new(phase)),
            known: ArcSwapOption::from(remembered.map(Arc::new)),
            fresh: AtomicBool::new(false),
            watched: Mutex::default(),
            watching: tokio::sync::Mutex::default(),
            rewatch: Notify::new(),
            link: ArcSwapOption::empty(),
            calls: Arc::new(Semaphore::new(at_once)),
            at_once,
            probe: AtomicBool::new(true),
            waiting: AtomicUsize::new(0),
            suspect: Notify::new(),
            stop: CancellationToken::new(),
            config: ArcSwap::from_pointee(config),
            name,
            shared,
        })
    }

    /// What its config says now.
    pub(crate) fn config(&self) -> Arc<Server> {
        self.config.load_full()
    }

    /// Takes another config, if that needs no new connection.
    pub(crate) fn adopt(&self, config: &Server) -> bool {
        let now = self.config();
        let same = now.transport == config.transport
            && now.enabled == config.enabled
            && now.parallel == config.parallel;
        if same && *now != *config {
            self.config.store(Arc::new(config.clone()));
        }
        same
    }

    /// What became of it.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// News of what became of it.
    pub(crate) fn watch(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// What is known of it, from now or from before.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.load_full()
    }

    /// What is known of it, if that is news.
    pub(crate) fn unsaved(&self) -> Option<Arc<Known>> {
        self.fresh.swap(false, Ordering::Relaxed).then(|| self.known()).flatten()
    }

    /// Hears about a resource from now on, or no more: as it is `wanted` when its turn comes, since who
    /// comes and who goes may meet here.
    pub(crate) async fn watch_resource(
        &self,
        uri: &str,
        wanted: impl Fn() -> bool,
    ) -> Result<(), Failed> {
        let _turn = self.watching.lock().await;
        let watch = wanted();
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = if watch { watched.insert(uri.to_owned()) } else { watched.remove(uri) };
            if !changed {
                return Ok(());
            }
        }
        let Some(link) = self.link() else { return Ok(()) };
        if link.is_modern() {
            self.rewatch.notify_one();
            return Ok(());
        }
        let within = seconds(self.config().start_timeout);
        let told = connect::subscribe(&link, uri, watch, within).await;
        if watch && told.is_err() {
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        }
        told
    }

    fn watched(&self) -> Vec<String> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Tells a server of the older era how much of its log is wanted; in the newer one each request does.
    pub(crate) async fn say_log_level(&self) {
        let level = *self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(level), Some(link)) = (level, self.link()) else { return };
        if !link.is_modern() && link.info.capabilities.logging.is_some() {
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            let _ = link.ask(ClientRequest::SetLevelRequest(request), CHECK_WITHIN).await;
        }
    }

    /// The connection, if there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.link.load_full()
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// How the next connection begins.
    fn lifecycle(&self) -> ClientLifecycleMode {
        if self.probe.load(Ordering::Relaxed) {
            connect::probing()
        } else {
            ClientLifecycleMode::Initialize
        }
    }

    fn probe_next(&self, probe: bool) {
        self.probe.store(probe, Ordering::Relaxed);
    }

    /// Whether no call is under way.
    fn is_idle(&self) -> bool {
        self.calls.available_permits() == self.at_once
    }

    /// Ends it for good.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Somebody found the connection broken.
    pub(crate) fn suspect(&self) {
        self.suspect.notify_one();
    }

    /// Waits for a call's turn.
    pub(crate) async fn leave(&self) -> Result<Leave, Unavailable> {
        let down = || Unavailable::Down(self.status().why_not());
        // Its tools are known from an earlier run, and it is starting: no reason to send the model away.
        let mut news = self.watch();
        let tried = news.wait_for(|status| !status.is_first_try());
        let _ = tokio::time::timeout(STARTING, tried).await;
        if self.link().is_none() {
            return Err(down());
        }
        let queue = self.shared.limits.server_queue;
        let busy = || Unavailable::Busy(format!("{queue} calls wait for `{}` already", self.name));
        let own = if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            permit
        } else {
            let _place = Place::take(&self.waiting, queue).ok_or_else(busy)?;
            Arc::clone(&self.calls).acquire_owned().await.map_err(|_| down())?
        };
        let all = Arc::clone(&self.shared.calls).acquire_owned().await.map_err(|_| down())?;
        // It may have gone while we waited.
        let link = self.link().ok_or_else(down)?;
        Ok(Leave { link, _own: own, all: Some(all) })
    }

    fn set(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
        self.shared.metrics.set_state(&self.name, self.status().phase.into());
        self.shared.news.notify_one();
    }

    /// Keeps it connected until it is stopped.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.config().enabled {
            return;
        }
        let mut retry = Retry::default();
        let mut restarts = 0;
        loop {
            let (held, why) = tokio::select! {
                ended = self.once() => ended,
                () = self.stopped() => break,
            };
            self.link.store(None);
            let wait = retry.failed(held, retry::luck(&self.name, restarts));
            restarts += 1;
            tracing::warn!(server = %self.name, why = why.why, retry_in_ms = wait.as_millis(), "server is down");
            self.set(|status| {
                status.phase = if why.login { Phase::NeedsLogin } else { Phase::Down };
                status.why = Some(why.why);
                status.hint = why.hint;
                status.hopeless = retry.is_hopeless();
                status.retry_at = Some(Instant::now() + wait);
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stop.cancelled() => break,
            }
            self.shared.metrics.restarted(&self.name);
            self.set(|status| status.phase = Phase::Connecting);
        }
        self.link.store(None);
        self.set(|status| status.phase = Phase::Off);
    }

    /// Waits until it is to end, and a moment longer where its server has yet to be told of calls that
    /// nobody waits for any more.
    async fn stopped(&self) {
        self.stop.cancelled().await;
        if let Some(link) = self.link() {
            link.tap.farewells.close();
            let _ = tokio::time::timeout(FAREWELL, link.tap.farewells.wait()).await;
        }
    }

    /// One connection, from its beginning to its end: how long it held, and why it ended.
    async fn once(&self) -> (Duration, NotConnected) {
        let Ok(turn) = self.shared.starting.acquire().await else {
            return (Duration::ZERO, NotConnected::ended("stopping"));
        };
        let began = Instant::now();
        let within = seconds(self.config().start_timeout);
        let connected = async {
            let mut connecting = std::pin::pin!(tokio::time::timeout(within, self.connect()));
            let soon = tokio::time::timeout(TURN, &mut connecting).await;
            // A server that takes its time does not keep the next ones from starting.
            drop(turn);
            match soon {
                Ok(connected) => connected,
                Err(_) => connecting.await,
            }
        };
        let connected = connected.await;
        let connected = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(why)) => return (Duration::ZERO, why),
            Err(_) => return (Duration::ZERO, NotConnected::slow(within)),
        };
        let up = Instant::now();
        let era = if connected.link.is_modern() { Era::Modern } else { Era::Legacy };
        tracing::info!(server = %self.name, tools = self.known().map_or(0, |known| known.tools.len()), ms = began.elapsed().as_millis(), "server is up");
        self.link.store(Some(Arc::new(connected.link.clone())));
        self.set(|status| status.connected(era, began.elapsed(), &connected.link.info));
        let why = self.hold(&connected).await;
        self.link.store(None);
        let why = connected.end(why).await;
        (up.elapsed(), why)
    }

    async fn connect(&self) -> Result<Connected, NotConnected> {
        let (updates, mut updated) = mpsc::channel(64);
        let connected = connect::connect(self, updates).await?;
        let (name, all) = (Arc::clone(&self.name), self.shared.updated.clone());
        tokio::spawn(async move {
            while let Some(uri) = updated.recv().await {
                let _ = all.send((Arc::clone(&name), uri)).await;
            }
        });
        match self.list(&connected.link).await {
            Ok(()) => Ok(connected),
            Err(why) => Err(connected.end(NotConnected::ended(why)).await),
        }
    }

    /// Asks for its lists, and keeps them.
    async fn list(&self, link: &Link) -> Result<(), Failed> {
        let known =
            Known::ask(link, &self.shared.limits, seconds(self.config().call_timeout)).await?;
        for note in &known.notes {
            tracing::warn!(server = %self.name, "{note}");
        }
        self.shared.metrics.refreshed(&self.name);
        let same = self.known().is_some_and(|before| *before == known);
        self.set(|status| status.notes.clone_from(&known.notes));
        if !same {
            self.known.store(Some(Arc::new(known)));
            self.fresh.store(true, Ordering::Relaxed);
            self.shared.news.notify_one();
        }
        Ok(())
    }

    /// Waits until the connection ends; looks at the lists again when they change.
    async fn hold(&self, connected: &Connected) -> NotConnected {
        let link = connected.link.clone();
        let mut debounce = Debounce::default();
        let mut check = tokio::time::interval(CHECK);
        check.reset();
        let over_http = connected.is_remote();
        let (mut misses, mut recheck) = (0, None);
        let told = link.info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        let mut relist = tokio::time::interval(RELIST);
        relist.reset();
        if !link.is_modern() {
            for uri in self.watched() {
                let _ = connect::subscribe(&link, &uri, true, CHECK_WITHIN).await;
            }
        }
        self.say_log_level().await;
        let listen = || connect::listen(&link, self.watched(), connected.updated.clone());
        let mut listening = listen();
        loop {
            let due = debounce.due().map(tokio::time::Instant::from_std);
            tokio::select! {
                () = link.tap.closed() => return NotConnected::ended(link.tap.why().unwrap_or_else(|| "it closed the connection".into())),
                () = link.tap.changed() => debounce.changed(Instant::now()),
                () = sleep_until(due) => {
                    debounce.looked();
                    if let Err(why) = self.list(&link).await {
                        tracing::warn!(server = %self.name, %why, "its lists cannot be had; the last ones stay");
                        self.suspect.notify_one();
                    }
                }
                () = self.suspect.notified() => {
                    // A server at work may be too busy to say that it is there.
                    if !self.is_idle() {
                        recheck = Some(tokio::time::Instant::now() + RECHECK);
                        continue;
                    }
                    recheck = None;
                    match connect::check(&link, CHECK_WITHIN).await {
                        Ok(()) => misses = 0,
                        Err(_) if misses == 0 => {
                            misses = 1;
                            self.suspect.notify_one();
                        }
                        Err(why) => return NotConnected::ended(why),
                    }
                }
                () = sleep_until(recheck) => self.suspect.notify_one(),
                _ = check.tick(), if over_http => self.suspect.notify_one(),
                // A server that does not tell of changes is asked now and then.
                _ = relist.tick(), if told != Some(true) => debounce.changed(Instant::now()),
                () = listening.ended() => {
                    listening = listen();
                    debounce.changed(Instant::now());
                }
                () = self.rewatch.notified() => {
                    listening = listen();
                    debounce.changed(Instant::now());
                }
            }
        }
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// A place in a queue.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(queue: &'a AtomicUsize, most: usize) -> Option<Self> {
        let before = queue.fetch_add(1, Ordering::Relaxed);
        let place = Self(queue);
        (before < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
