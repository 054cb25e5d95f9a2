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
mod retry;
mod status;
mod stdio;
mod tap;

pub(crate) use callers::{Caller, Listed, QUESTIONS, Said};
pub(crate) use client::ourselves;
pub use connect::Environment;
pub(crate) use failed::Failed;
pub(crate) use known::Known;
pub(crate) use link::{Link, Pending, Step};
pub use status::{Era, Phase, Status};

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::config::{Limits, Server, seconds};
use crate::metrics::Metrics;
use callers::Callers;
use connect::{Connected, NotConnected};
use debounce::Debounce;
use retry::Retry;

/// How often a server reached over HTTP is asked whether it is still there.
const CHECK: Duration = Duration::from_secs(30);
/// How long it has for that.
const CHECK_WITHIN: Duration = Duration::from_secs(10);

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
    pub(crate) metrics: Arc<Metrics>,
    /// Resources that changed: the server and the uri.
    pub(crate) updated: mpsc::Sender<(Arc<str>, String)>,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) config: Server,
    pub(crate) callers: Arc<Callers>,
    status: watch::Sender<Status>,
    known: ArcSwapOption<Known>,
    /// Whether `known` is newer than what is kept for the next run.
    fresh: AtomicBool,
    /// Resources that clients want to hear about, by their own addresses.
    watched: Mutex<BTreeSet<String>>,
    /// Those changed.
    rewatch: Notify,
    link: ArcSwapOption<Link>,
    /// Calls that may be under way.
    calls: Arc<Semaphore>,
    waiting: AtomicUsize,
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
    _all: OwnedSemaphorePermit,
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
            rewatch: Notify::new(),
            link: ArcSwapOption::empty(),
            calls: Arc::new(Semaphore::new(at_once)),
            waiting: AtomicUsize::new(0),
            suspect: Notify::new(),
            stop: CancellationToken::new(),
            name,
            config,
            shared,
        })
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

    /// Hears about a resource from now on, or no more.
    pub(crate) async fn watch_resource(&self, uri: &str, watch: bool) -> Result<(), Failed> {
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
        connect::subscribe(&link, uri, watch, seconds(self.config.call_timeout)).await
    }

    fn watched(&self) -> Vec<String> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The connection, if there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.link.load_full()
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
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
        Ok(Leave { link, _own: own, _all: all })
    }

    fn set(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
        self.shared.metrics.set_state(&self.name, self.status().phase.into());
        self.shared.news.notify_one();
    }

    /// Keeps it connected until it is stopped.
    pub(crate) async fn run(self: Arc<Self>) {
        if !self.config.enabled {
            return;
        }
        let mut retry = Retry::default();
        let mut restarts = 0;
        loop {
            let (held, why) = tokio::select! {
                ended = self.once() => ended,
                () = self.stop.cancelled() => break,
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

    /// One connection, from its beginning to its end: how long it held, and why it ended.
    async fn once(&self) -> (Duration, NotConnected) {
        let Ok(turn) = self.shared.starting.acquire().await else {
            return (Duration::ZERO, NotConnected::ended("stopping"));
        };
        let began = Instant::now();
        let within = seconds(self.config.start_timeout);
        let connected = tokio::time::timeout(within, self.connect()).await;
        let connected = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(why)) => return (Duration::ZERO, why),
            Err(_) => return (Duration::ZERO, NotConnected::slow(within)),
        };
        drop(turn);
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
            Known::ask(link, &self.shared.limits, seconds(self.config.call_timeout)).await?;
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
        if !link.is_modern() {
            for uri in self.watched() {
                let _ = connect::subscribe(&link, &uri, true, CHECK_WITHIN).await;
            }
        }
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
                () = self.suspect.notified(), if over_http => {
                    if let Err(why) = connect::check(&link, CHECK_WITHIN).await {
                        return NotConnected::ended(why);
                    }
                }
                _ = check.tick(), if over_http => self.suspect.notify_one(),
                () = listening.ended() => listening = listen(),
                () = self.rewatch.notified() => listening = listen(),
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

/// What an error says, with what is behind it, on one line.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        behind = error.source();
    }
    toolcrib_core::clean::one_line(&text)
}
