//! Telling clients what changed: their lists, and the resources they watch.
//!
//! A list is told to have changed when its bytes have, and not before: a server that went down and came
//! back with the same tools is no news.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::client::Client;
use super::session_list::SessionList;
use super::watches::{Place, Watches};
use crate::shelf::{Protocol, Stamps};
use crate::upstream::{Present, Said, Upstream};

/// Passes on which resources changed, as long as the gateway is there.
pub(super) async fn tell_updates(gateway: Weak<Gateway>, mut updates: mpsc::Receiver<Place>) {
    while let Some(place) = updates.recv().await {
        let Some(gateway) = gateway.upgrade() else { return };
        gateway.subscribers.tell(place);
    }
}

/// Puts questions of servers that belong to no call to a client of the older era, until it is gone.
pub(super) async fn ask_session(client: Client, mut said: mpsc::Receiver<Said>, _present: Present) {
    loop {
        tokio::select! {
            said = said.recv() => match said {
                Some(Said::Question(request, answer)) => {
                    let client = client.clone();
                    tokio::spawn(async move { client.answer(request, answer).await });
                }
                Some(Said::Log(line, _charge)) => client.log(line).await,
                None => return,
            },
            () = client.gone.cancelled() => return,
        }
    }
}

/// Tells servers of the older era that their client's roots are others now. Each asks for them then.
pub(super) async fn tell_roots(gateway: &Gateway, profile: Option<&str>) {
    let Ok(sight) = gateway.sight(profile) else { return };
    let sessions = gateway.hub().sessions();
    let is_told = |upstream: &Arc<Upstream>| {
        sessions.sole(&upstream.name).is_some() && sight.view.knows(&upstream.name)
    };
    let upstreams: Vec<_> = gateway.hub().all().into_iter().filter(is_told).collect();
    // Concurrently: a server that does not read must not delay the others.
    join_all(upstreams.iter().map(|upstream| upstream.tell_roots())).await;
}

/// Something a client is to be told.
enum News {
    Lists { tools: bool, prompts: bool, resources: bool },
    Resource(String),
}

/// What changed for one client since it last heard.
struct Reader<'a> {
    gateway: &'a Gateway,
    profile: Option<&'a str>,
    watches: &'a Watches,
    protocol: Protocol,
    /// The list of an older client; a newer one has no session.
    list: Option<&'a SessionList>,
    shelf: tokio::sync::watch::Receiver<Arc<crate::shelf::Shelf>>,
    updates: broadcast::Receiver<Place>,
    /// Of the lists that the client may have: those when it connected, then those that it last heard of.
    stamps: Option<Stamps>,
}

impl<'a> Reader<'a> {
    fn new(
        gateway: &'a Gateway,
        profile: Option<&'a str>,
        watches: &'a Watches,
        list: Option<&'a SessionList>,
        stamps: Option<Stamps>,
    ) -> Self {
        let protocol = if list.is_some() { Protocol::Session } else { Protocol::Stateless };
        let mut shelf = gateway.hub().watch();
        if list.is_some() {
            // A session may have been sent lists before this reader was made.
            shelf.mark_changed();
        }
        let updates = gateway.subscribers.updates();
        Self { gateway, profile, watches, protocol, list, shelf, updates, stamps }
    }

    fn look(&self) -> Option<Stamps> {
        self.gateway.stamps(self.profile, self.protocol)
    }

    async fn next(&mut self) -> Option<News> {
        loop {
            tokio::select! {
                changed = self.shelf.changed() => {
                    changed.ok()?;
                    let (before, now) = (self.stamps, self.look());
                    self.stamps = now;
                    let differs = |of: fn(&Stamps) -> u64| before.as_ref().map(of) != now.as_ref().map(of);
                    let (prompts, resources) = (differs(|s| s.prompts), differs(|s| s.resources));
                    let tools = match self.list {
                        Some(list) => {
                            let sight = self.gateway.sight(self.profile).ok();
                            list.should_notify(sight.as_ref().map(|sight| &*sight.view))
                        }
                        None => differs(|s| s.tools),
                    };
                    if tools || prompts || resources {
                        return Some(News::Lists { tools, prompts, resources });
                    }
                }
                updated = self.updates.recv() => match updated {
                    Ok(place) => {
                        // A reload may have taken its server out of sight.
                        let sight = self.gateway.sight(self.profile);
                        let knows = sight.is_ok_and(|sight| sight.view.knows(&place.0));
                        if let Some(known_as) = self.watches.known_as(&place).filter(|_| knows) {
                            return Some(News::Resource(known_as));
                        }
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Tells a client of the older era, until it is gone.
pub(super) async fn tell_session(
    gateway: Arc<Gateway>,
    profile: Option<String>,
    (watches, list, stamps): (Arc<Watches>, Arc<SessionList>, Option<Stamps>),
    peer: Peer<RoleServer>,
    gone: CancellationToken,
) {
    let mut reader = Reader::new(&gateway, profile.as_deref(), &watches, Some(&list), stamps);
    loop {
        let news = tokio::select! {
            news = reader.next() => news,
            () = gone.cancelled() => None,
        };
        let sent = match news {
            None => return,
            Some(News::Resource(uri)) => {
                let told =
                    ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
                peer.send_notification(ServerNotification::ResourceUpdatedNotification(told)).await
            }
            Some(News::Lists { tools, prompts, resources }) => {
                let mut sent = Ok(());
                if tools {
                    sent = sent.and(peer.notify_tool_list_changed().await);
                }
                if prompts {
                    sent = sent.and(peer.notify_prompt_list_changed().await);
                }
                if resources {
                    sent = sent.and(peer.notify_resource_list_changed().await);
                }
                sent
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Tells a client of the newer era what it subscribed to, until it ends that.
pub(super) async fn tell_subscription(
    gateway: &Arc<Gateway>,
    profile: Option<&str>,
    context: &SubscriptionContext,
) {
    let wanted: SubscriptionFilter = context.accepted().clone();
    let watches = Watches::new(Arc::clone(gateway));
    let stamps = gateway.stamps(profile, Protocol::Stateless);
    let mut reader = Reader::new(gateway, profile, &watches, None, stamps);
    let begin = async {
        for uri in wanted.resource_subscriptions.iter().flatten() {
            let Ok(sight) = gateway.sight(profile) else { return };
            if let Ok(located) = gateway.locate(&sight, uri) {
                // Dropped with everything else once the client has gone.
                let gone = std::future::pending();
                let _ = watches.add(&located.upstream, &located.uri, uri, gone).await;
            }
        }
    };
    tokio::select! {
        () = begin => {}
        () = context.cancelled() => return,
    }
    let sink = context.sink();
    loop {
        let news = tokio::select! {
            news = reader.next() => news,
            () = context.cancelled() => None,
        };
        // What was not asked for the sink does not send.
        let sent = match news {
            None => return,
            Some(News::Resource(uri)) => sink.notify_resource_updated(uri).await,
            Some(News::Lists { tools, prompts, resources }) => {
                let mut sent = Ok(());
                if tools && wanted.tools_list_changed == Some(true) {
                    sent = sink.notify_tool_list_changed().await;
                }
                if prompts && wanted.prompts_list_changed == Some(true) {
                    sent = sent.and(sink.notify_prompt_list_changed().await);
                }
                if resources && wanted.resources_list_changed == Some(true) {
                    sent = sent.and(sink.notify_resource_list_changed().await);
                }
                sent
            }
        };
        if sent.is_err() {
            return;
        }
    }
}
