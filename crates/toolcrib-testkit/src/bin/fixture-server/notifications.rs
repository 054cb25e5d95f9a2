//! Tools that do something before they return the result: report progress, log messages, or close the stream.
#![expect(deprecated, reason = "log messages belong to the older protocol")]

use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolResult, ContentBlock, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::definition::Definition;
use crate::input_rounds::uses_newer_protocol;
use crate::server::Fixture;

/// Pause between two messages, so that each is sent in its own chunk.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of stream ids to try when looking for an open stream of a session.
const MAX_STREAMS: u64 = 256;

pub(crate) const TOOLS: &[Definition] = &[
    Definition::plain("test_tool_with_progress", "Reports progress three times."),
    Definition::plain("test_tool_with_logging", "Writes three log messages."),
    Definition::plain("test_logging_tool", "Writes a log message, if the client wants any."),
    Definition::plain("test_reconnection", "Cuts its stream, and answers on the next one."),
];

type Context = RequestContext<RoleServer>;

/// Runs one of the tools in [`TOOLS`]. Returns `None` for any other name.
pub(crate) async fn call(
    fixture: &Fixture,
    name: &str,
    context: &Context,
) -> Option<Result<CallToolResult, ErrorData>> {
    let result = match name {
        "test_tool_with_progress" => progress(context).await,
        "test_tool_with_logging" => {
            log(fixture, context, &["Started.", "Half way.", "Finished."]).await
        }
        "test_logging_tool" => log(fixture, context, &["Here I am."]).await,
        "test_reconnection" => {
            close_stream(fixture, context).await;
            tokio::time::sleep(2 * PAUSE).await;
            Ok(())
        }
        _ => return None,
    };
    Some(result.map(|()| CallToolResult::success(vec![ContentBlock::text("It is done.")])))
}

fn send_failed(error: &ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

async fn progress(context: &Context) -> Result<(), ErrorData> {
    let token = context.meta.get_progress_token();
    for result in [0.0, 50.0, 100.0] {
        if let Some(token) = &token {
            let report = ProgressNotificationParam::new(token.clone(), result).with_total(100.0);
            context.peer.notify_progress(report).await.map_err(|error| send_failed(&error))?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn log(fixture: &Fixture, context: &Context, lines: &[&str]) -> Result<(), ErrorData> {
    let wanted = if uses_newer_protocol(context) {
        // In the newer protocol, a client that sets no log level gets no log messages.
        context.meta.log_level().is_some_and(passes)
    } else {
        fixture.level().is_none_or(passes)
    };
    for line in lines {
        if wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
            context
                .peer
                .notify_logging_message(message)
                .await
                .map_err(|error| send_failed(&error))?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Whether a client with this minimum level gets info messages.
fn passes(least: LoggingLevel) -> bool {
    matches!(least, LoggingLevel::Debug | LoggingLevel::Info)
}

/// Closes the stream on which this call's response would be sent.
///
/// rmcp does not tell a tool which stream its response uses, so the first open stream of the session is closed. This is
/// the right stream, because the conformance suite makes one call at a time.
async fn close_stream(fixture: &Fixture, context: &Context) {
    let Some(sessions) = &fixture.shared.sessions else { return };
    let id = context
        .extensions
        .get::<Parts>()
        .and_then(|parts| parts.headers.get("mcp-session-id"))
        .and_then(|id| id.to_str().ok());
    let Some(id) = id else { return };
    let Some(session) = sessions.sessions.read().await.get(id).cloned() else { return };
    for stream in 0..MAX_STREAMS {
        if session.close_sse_stream(stream, Some(2 * PAUSE)).await.is_ok() {
            return;
        }
    }
}
