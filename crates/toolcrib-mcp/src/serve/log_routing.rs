//! The SDK's sessions, changed so that the log messages of a request are sent on the stream of that request.
//!
//! The SDK sends log messages on the session's GET stream, but the answer on the stream of the request. A client may
//! then read the answer before the log messages, and a client that opens no GET stream gets no log messages at all. So
//! each request has a channel for its log messages, which its stream reads in addition to the SDK's own messages.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use rmcp::model::ServerNotification;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;

use crate::gateway::RequestStream;

/// Maximum number of log messages that wait for a client. If the client does not read them, further log messages are
/// dropped.
const MAX_QUEUED_LOGS: usize = 16;

/// The HTTP sessions of one profile.
pub(super) struct LogRoutingSessions(pub(super) Arc<LocalSessionManager>);

impl SessionManager for LogRoutingSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.0.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.0.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.0.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let (sender, logs) = mpsc::channel(MAX_QUEUED_LOGS);
        if let JsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(RequestStream(sender));
        }
        let messages = self.0.create_stream(id, message).await?;
        Ok(StreamWithLogs { messages: Box::pin(messages), logs })
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.0.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.resume(id, last_event_id).await
    }
}

/// The stream of a request. Log messages that were sent before the answer are also yielded before the answer.
struct StreamWithLogs<S> {
    messages: Pin<Box<S>>,
    logs: mpsc::Receiver<ServerNotification>,
}

impl<S: Stream<Item = ServerSseMessage>> Stream for StreamWithLogs<S> {
    type Item = ServerSseMessage;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        if let Poll::Ready(Some(log)) = self.logs.poll_recv(context) {
            let message = ServerJsonRpcMessage::notification(log);
            return Poll::Ready(Some(ServerSseMessage::from_message(message)));
        }
        self.messages.as_mut().poll_next(context)
    }
}
