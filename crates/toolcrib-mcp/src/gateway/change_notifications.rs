//! Notifications about changes. Clients are notified about their lists and about the resources that they subscribed to.
//! Servers are notified about their client's roots.
//!
//! A list counts as changed only if its bytes have changed. A server that disconnects and returns with the same tools
//! causes no notification.

use std::sync::Arc;

use futures::future::join_all;
use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use toolcrib_core::Ledger;

use super::client::Client;
use super::session_tool_list::SessionToolList;
use super::subscriptions::ClientSubscriptions;
use super::{Gateway, Viewer};
use crate::snapshot::{ListHashes, SessionKind};
use crate::upstream::{ConnectedClient, ResourceKey, ServerMessage, Upstream};

/// Forwards servers' messages that belong to no call to a client of the older protocol, until its session is closed.
/// These messages are questions and log messages.
pub(super) async fn forward_server_messages(
    client: Client,
    mut messages: mpsc::Receiver<ServerMessage>,
    _registration: ConnectedClient,
) {
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some(ServerMessage::Question(request, answer)) => {
                    let client = client.clone();
                    tokio::spawn(async move { client.forward_question(request, answer).await });
                }
                Some(ServerMessage::Log(line, _charge)) => client.log(line).await,
                None => return,
            },
            () = client.abandoned.cancelled() => return,
        }
    }
}

/// Tells servers of the older protocol that the roots of their client changed, so that they request the roots again. A
/// server that several clients use is not told, and neither is one that is known to be used only by clients without
/// roots.
pub(super) async fn notify_roots_changed(gateway: &Gateway, client: u64, profile: Option<&str>) {
    let Ok(visible) = gateway.visible_in_session(profile) else { return };
    let hub = gateway.hub();
    let is_notified = |upstream: &Arc<Upstream>| {
        hub.connected_clients().only_client_of(upstream.id, &upstream.name).is_some()
            && !upstream.client_needs_own_process(true)
            && visible.view.can_see_server(&upstream.name)
    };
    let mut upstreams: Vec<_> = hub.upstreams().into_iter().filter(is_notified).collect();
    upstreams.extend(hub.unshared_servers().of_client(client));
    // The servers are notified concurrently, so that a server that does not read cannot delay the others.
    join_all(upstreams.iter().map(|upstream| upstream.notify_roots_changed())).await;
}

/// A change that a client is notified of.
enum NotifiedChange {
    Lists { tools: bool, prompts: bool, resources: bool },
    Resource(String),
}

/// Detects what has changed for one client since its last notification.
struct ChangeWatcher<'a> {
    gateway: &'a Gateway,
    viewer: Viewer<'a>,
    subscriptions: &'a ClientSubscriptions,
    session_kind: SessionKind,
    /// The tool list of the client's session, or `None` for a client of the newer protocol, which has no session.
    list: Option<&'a SessionToolList>,
    snapshot: tokio::sync::watch::Receiver<Arc<crate::snapshot::Snapshot>>,
    updates: broadcast::Receiver<ResourceKey>,
    /// The hashes of the lists that the client may have. Initially these are the lists at the time when it connected,
    /// and later the lists at the time of its last notification.
    list_hashes: Option<ListHashes>,
    /// Whether a client of the newer protocol shows user interfaces of tools, so that its list has more tools.
    shows_apps: bool,
}

impl<'a> ChangeWatcher<'a> {
    fn new(
        gateway: &'a Gateway,
        viewer: Viewer<'a>,
        subscriptions: &'a ClientSubscriptions,
        list: Option<&'a SessionToolList>,
        list_hashes: Option<ListHashes>,
    ) -> Self {
        let session_kind =
            if list.is_some() { SessionKind::Stateful } else { SessionKind::Stateless };
        let mut snapshot = gateway.hub().subscribe();
        if list.is_some() {
            // The lists may have changed after they were sent to the session and before this watcher was created, so
            // they are compared once at the start.
            snapshot.mark_changed();
        }
        let updates = gateway.hub().subscriptions().updates();
        Self {
            gateway,
            viewer,
            subscriptions,
            session_kind,
            list,
            snapshot,
            updates,
            list_hashes,
            shows_apps: false,
        }
    }

    fn current_hashes(&self) -> Option<ListHashes> {
        let visible = self.gateway.visible_to(self.viewer, self.session_kind).ok()?;
        let tools = visible.view.list_hash_with(&Ledger::new(0), self.shows_apps);
        Some(ListHashes { tools, ..visible.view.list_hashes })
    }

    async fn next(&mut self) -> Option<NotifiedChange> {
        loop {
            tokio::select! {
                changed = self.snapshot.changed() => {
                    changed.ok()?;
                    let (before, now) = (self.list_hashes, self.current_hashes());
                    self.list_hashes = now;
                    let differs = |of: fn(&ListHashes) -> u64| before.as_ref().map(of) != now.as_ref().map(of);
                    let (prompts, resources) = (differs(|s| s.prompts), differs(|s| s.resources));
                    let tools = match self.list {
                        Some(list) => {
                            let visible = self.gateway.visible_in_session(self.viewer).ok();
                            list.should_notify(visible.as_ref().map(|visible| &*visible.view))
                        }
                        None => differs(|s| s.tools),
                    };
                    if tools || prompts || resources {
                        return Some(NotifiedChange::Lists { tools, prompts, resources });
                    }
                }
                updated = self.updates.recv() => match updated {
                    Ok(resource) => {
                        // A config reload may have hidden the resource's server from this client, so this is checked
                        // again.
                        let visible = self.gateway.visible_in_session(self.viewer);
                        let can_see = visible.is_ok_and(|visible| visible.view.can_see_server(&resource.server));
                        if let Some(client_uri) = self.subscriptions.client_uri(&resource).filter(|_| can_see) {
                            return Some(NotifiedChange::Resource(client_uri));
                        }
                    }
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            }
        }
    }
}

/// Notifies a client of the older protocol of changes, until its session is closed.
pub(super) async fn notify_session(
    gateway: Arc<Gateway>,
    (profile, client): (Option<String>, u64),
    (subscriptions, list, list_hashes): (
        Arc<ClientSubscriptions>,
        Arc<SessionToolList>,
        Option<ListHashes>,
    ),
    peer: Peer<RoleServer>,
    closed: CancellationToken,
) {
    let viewer = Viewer { profile: profile.as_deref(), client: Some(client) };
    let mut watcher =
        ChangeWatcher::new(&gateway, viewer, &subscriptions, Some(&list), list_hashes);
    loop {
        let change = tokio::select! {
            change = watcher.next() => change,
            () = closed.cancelled() => None,
        };
        let sent = match change {
            None => return,
            Some(NotifiedChange::Resource(uri)) => {
                let notification =
                    ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
                peer.send_notification(ServerNotification::ResourceUpdatedNotification(
                    notification,
                ))
                .await
            }
            Some(NotifiedChange::Lists { tools, prompts, resources }) => {
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

/// Notifies a client of the newer protocol of the changes that it subscribed to, until it ends the subscription.
pub(super) async fn notify_subscription(
    gateway: &Arc<Gateway>,
    profile: Option<&str>,
    client: &Client,
    context: &SubscriptionContext,
) {
    let filter: SubscriptionFilter = context.accepted().clone();
    let subscriptions = ClientSubscriptions::new(Arc::clone(gateway));
    let mut watcher =
        ChangeWatcher::new(gateway, client.viewer(profile), &subscriptions, None, None);
    watcher.shows_apps = client.shows_apps();
    watcher.list_hashes = watcher.current_hashes();
    let subscribe = async {
        for uri in filter.resource_subscriptions.iter().flatten() {
            let Ok(visible) = gateway.visible_in_session(client.viewer(profile)) else { return };
            if let Ok(located) = gateway.locate_resource(&visible, uri, client.identified()) {
                // This future is dropped if the client disconnects, so `add` needs no signal that the request was
                // abandoned.
                let closed = std::future::pending();
                let _ = subscriptions.add(&located.upstream, &located.uri, uri, closed).await;
            }
        }
    };
    tokio::select! {
        () = subscribe => {}
        () = context.cancelled() => return,
    }
    let sink = context.sink();
    loop {
        let change = tokio::select! {
            change = watcher.next() => change,
            () = context.cancelled() => None,
        };
        // The sink drops notifications that the client has not requested.
        let sent = match change {
            None => return,
            Some(NotifiedChange::Resource(uri)) => sink.notify_resource_updated(uri).await,
            Some(NotifiedChange::Lists { tools, prompts, resources }) => {
                let mut sent = Ok(());
                if tools && filter.tools_list_changed == Some(true) {
                    sent = sink.notify_tool_list_changed().await;
                }
                if prompts && filter.prompts_list_changed == Some(true) {
                    sent = sent.and(sink.notify_prompt_list_changed().await);
                }
                if resources && filter.resources_list_changed == Some(true) {
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
