//! The task that keeps one server connected.
//!
//! It connects, lists what there is, and waits for the connection to end; then it tries again, less and less
//! often. While the connection holds it looks at the lists when they change, and whether the server is still
//! there when somebody doubts it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use toolcrib_text::shorten;

use super::connect::{self, Connected};
use super::debounce::Debounce;
use super::not_connected::NotConnected;
use super::retry::{self, Retry};
use super::{Era, Failed, Known, Link, Phase, Upstream, listen};
use crate::config::seconds;

/// How long a server that starts counts as starting: as many as the limit allows start at once.
const TURN: Duration = Duration::from_secs(3);
/// How often a server reached over HTTP is asked whether it is still there.
const CHECK: Duration = Duration::from_secs(30);
/// How soon a server that is busy is looked at again.
const RECHECK: Duration = Duration::from_secs(1);
/// How often the lists of a server are looked at that does not tell when they change.
const RELIST: Duration = Duration::from_mins(10);
/// How long it has for that.
const CHECK_WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of a server's reason in the log, in characters.
const REASON_CHARS: usize = 300;
/// How long the last messages to a server may take.
const FAREWELL: Duration = Duration::from_millis(200);

impl Upstream {
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
                status.needs_login = why.login;
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
        let mut connected = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(why)) => return (Duration::ZERO, why),
            Err(_) => return (Duration::ZERO, NotConnected::slow(within)),
        };
        let up = Instant::now();
        let era = if connected.link.is_modern() { Era::Modern } else { Era::Legacy };
        tracing::info!(server = %self.name, tools = self.known().map_or(0, |known| known.tools.len()), ms = began.elapsed().as_millis(), "server is up");
        self.link.store(Some(Arc::new(connected.link.clone())));
        self.set(|status| status.connected(era, began.elapsed(), &connected.link.info));
        let why = self.hold(&mut connected).await;
        let why = connected.masked(why);
        self.link.store(None);
        // Its last words may take a moment; that it is gone is told now.
        self.set(|status| {
            status.phase = Phase::Down;
            status.why = Some(why.why.clone());
        });
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
        let before = self.status().notes;
        for note in known.notes.iter().filter(|note| !before.contains(note)) {
            self.warn(note);
        }
        self.shared.metrics.refreshed(&self.name);
        let same = self.known().is_some_and(|before| *before == known);
        self.set(|status| status.notes.clone_from(&known.notes));
        if !same {
            self.known.store(Some(Arc::new(known)));
            self.saving.changed();
            self.shared.news.notify_one();
        }
        Ok(())
    }

    /// Waits until the connection ends; looks at the lists again when they change.
    async fn hold(&self, connected: &mut Connected) -> NotConnected {
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
                let _ = listen::subscribe(&link, &uri, true, CHECK_WITHIN).await;
            }
        }
        self.say_log_level().await;
        let listen = || listen::listen(&link, self.watched());
        let mut listening = listen();
        loop {
            let due = debounce.due().map(tokio::time::Instant::from_std);
            tokio::select! {
                () = link.tap.closed() => return connected.over(),
                why = connected.wardens_lost() => return why,
                () = link.tap.changed() => debounce.changed(Instant::now()),
                () = sleep_until(due) => {
                    debounce.looked();
                    if let Err(why) = self.list(&link).await {
                        let why = why.to_string();
                        let why = shorten(&why, REASON_CHARS);
                        self.warn(format_args!("its lists cannot be fetched; the last ones are used: {why}"));
                        self.suspect.notify_one();
                    }
                }
                () = self.suspect.notified() => {
                    // A server at work may be too busy to say that it is there. One that somebody waited for
                    // in vain, and that has not said a word since, is asked all the same.
                    let doubted = self.doubted.load(Ordering::Relaxed);
                    let silent = doubted && link.tap.silent_for() > CHECK_WITHIN;
                    if !self.is_idle() && !silent {
                        recheck = Some(tokio::time::Instant::now() + RECHECK);
                        continue;
                    }
                    recheck = None;
                    match listen::check(&link, CHECK_WITHIN).await {
                        Ok(()) => {
                            misses = 0;
                            self.doubted.store(false, Ordering::Relaxed);
                        }
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

/// Waits until a time; without one, for ever.
pub(crate) async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
