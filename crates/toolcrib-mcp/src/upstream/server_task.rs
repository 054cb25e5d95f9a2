//! A task that a server created for a call, instead of answering the call with its result.
//!
//! A task that is dropped before it is over is no longer needed, so it is cancelled at its server. Until a task is
//! over, its server is not stopped as idle.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientCapabilities, ClientRequest, JsonObject,
    RequestMetaObject, TASKS_EXTENSION_ID,
};

use super::demand::InUse;
use super::{ConnectionHandle, Upstream};
use crate::config::Transport;

/// How long the gateway waits for the answer to a cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A task at a server. Dropping this value cancels the task, unless it is over.
#[derive(Debug)]
pub(crate) struct ServerTask {
    upstream: Arc<Upstream>,
    /// The connection on which the task was created.
    connection: Arc<ConnectionHandle>,
    /// The server's own id of the task.
    id: String,
    /// Keeps the server running. `None` once the task is over.
    in_use: Option<InUse>,
}

impl ServerTask {
    pub(crate) fn new(
        upstream: Arc<Upstream>,
        connection: Arc<ConnectionHandle>,
        id: String,
    ) -> Self {
        let in_use = Some(upstream.demand.enter());
        Self { upstream, connection, id, in_use }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// Whether the process that created the task may still run. Over HTTP a server can outlive its connections. A
    /// server over stdio ends with its connection, and its next process may give the same id to another client's task.
    pub(crate) fn may_exist(&self) -> bool {
        !self.is_of_process() || !self.connection.is_closed()
    }

    /// Whether a request about this task would now reach another task, because the server has given the id again.
    pub(crate) fn is_replaced_by(&self, other: &Self) -> bool {
        self.id == other.id
            && Arc::ptr_eq(&self.upstream, &other.upstream)
            && self.is_reached_by(&other.connection)
    }

    /// Whether a connection leads to the server that created the task.
    pub(crate) fn is_reached_by(&self, connection: &Arc<ConnectionHandle>) -> bool {
        !self.is_of_process() || Arc::ptr_eq(&self.connection, connection)
    }

    fn is_of_process(&self) -> bool {
        matches!(self.upstream.config().transport, Transport::Stdio { .. })
    }

    /// Whether the task has ended, or the server does not know it.
    pub(crate) fn is_over(&self) -> bool {
        self.in_use.is_none()
    }

    /// Records that the task has ended, or that the server does not know it.
    pub(crate) fn set_over(&mut self) {
        self.in_use = None;
    }

    fn live_connection(&self) -> Option<Arc<ConnectionHandle>> {
        self.upstream.connection().filter(|connection| self.is_reached_by(connection))
    }
}

/// Returns the `_meta` fields of a request about a task. In the newer protocol, a server rejects such requests unless they
/// announce the tasks extension.
fn meta_for_tasks() -> RequestMetaObject {
    let mut meta = RequestMetaObject::default();
    let mut capabilities = ClientCapabilities::default();
    capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
    meta.set_client_capabilities(capabilities);
    meta
}

impl Drop for ServerTask {
    fn drop(&mut self) {
        // The server is kept running until it has answered the cancellation.
        let (Some(in_use), Some(connection)) = (self.in_use.take(), self.live_connection()) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let params = CancelTaskParams::new(std::mem::take(&mut self.id));
        let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(params));
        let server = Arc::clone(&self.upstream.name);
        let cancelled = {
            let connection = Arc::clone(&connection);
            async move {
                let meta = Some(meta_for_tasks());
                // Nobody waits for the task any more, so an error is only logged.
                if let Err(error) = connection.request_with(request, meta, CANCEL_TIMEOUT).await {
                    tracing::debug!(%server, "a task could not be cancelled: {error}");
                }
                drop(in_use);
            }
        };
        runtime.spawn(connection.tap.cancellations.track_future(cancelled));
    }
}
