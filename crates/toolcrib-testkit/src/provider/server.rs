//! The provider's HTTP server, with its queue of canned responses and the requests that it has received.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as Incoming, State};
use axum::response::Response;
use axum::serve::ListenerExt;
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

use crate::provider::canned_response::{BodyPart, CannedResponse, ExactResponse, StreamFault};
use crate::provider::options::Options;
use crate::provider::received_request::ReceivedRequest;
use crate::provider::respond::{ScriptedResponse, respond};
use crate::provider::responses::History;
use crate::provider::route::{ResponseFormat, Route};
use crate::provider::stream::{self, OpenResponse, ResponseControl};

/// A running provider. When it is dropped, it stops and closes all connections.
///
/// The provider runs on its own threads, so that tests with and without an async runtime can use it.
pub struct Provider {
    /// The base URL, `http://127.0.0.1:PORT`, without a path.
    pub url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// The state that all connections share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) history: History,
    pub(crate) counter: AtomicU64,
    requests: Mutex<Vec<ReceivedRequest>>,
    canned_responses: Mutex<VecDeque<CannedResponse>>,
    control: ResponseControl,
}

impl Provider {
    /// Starts a provider that listens on `options.listen`.
    pub fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let control =
            ResponseControl { releases: Arc::new(Semaphore::new(0)), open: watch::Sender::new(0) };
        let shared = Arc::new(Shared {
            canned_responses: Mutex::new(options.responses.iter().cloned().collect()),
            options,
            history: History::default(),
            counter: AtomicU64::new(0),
            requests: Mutex::default(),
            control,
        });
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let app = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        runtime.spawn(async move {
            // Each event is sent immediately, because benchmarks measure when the first one arrives.
            let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|connection| {
                let _ = connection.set_nodelay(true);
            });
            axum::serve(listener, app).await
        });
        Ok(Self { url: format!("http://{address}"), address, shared, runtime: Some(runtime) })
    }

    /// Returns the address that the provider listens on. To simulate a restart, drop this provider and start another at
    /// the same address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests that the provider has received since it started or since the last [`clear`](Self::clear).
    /// Empty if the option `keep_requests` is off.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.shared.requests).clone()
    }

    /// Deletes the recorded requests.
    pub fn clear(&self) {
        lock(&self.shared.requests).clear();
    }

    /// Adds a response to the queue. Each request is answered with the next response in the queue; if the queue is
    /// empty, the script is played. Requests that count tokens do not use the queue.
    pub fn queue_response(&self, response: CannedResponse) {
        lock(&self.shared.canned_responses).push_back(response);
    }

    /// Ends one stall. If no response is stalled now, the next stall ends immediately.
    pub fn release(&self) {
        self.shared.control.releases.add_permits(1);
    }

    /// Returns the number of responses that are not complete yet.
    pub fn open_responses(&self) -> usize {
        *self.shared.control.open.borrow()
    }

    /// Waits until at least `count` responses are incomplete.
    pub async fn wait_for_open_responses(&self, count: usize) {
        let mut open = self.shared.control.open.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = open.wait_for(|open| *open >= count).await;
    }

    /// Waits until every response is complete or its client has disconnected.
    pub async fn wait_until_idle(&self) {
        let mut open = self.shared.control.open.subscribe();
        let _ = open.wait_for(|open| *open == 0).await;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

async fn serve(State(shared): State<Arc<Shared>>, incoming: Incoming) -> Response {
    let (head, body) = incoming.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        return plain(400, "text/plain", Bytes::from_static(b"the body broke off"));
    };
    let path =
        head.uri.path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str).to_owned();
    if path == "/_requests" {
        if head.method == "DELETE" {
            lock(&shared.requests).clear();
            return plain(204, "text/plain", Bytes::new());
        }
        let lines: Vec<String> =
            lock(&shared.requests).iter().map(|request| request.line() + "\n").collect();
        return plain(200, "application/x-ndjson", lines.concat().into());
    }
    let request = ReceivedRequest {
        method: head.method.to_string(),
        path,
        headers: head
            .headers
            .iter()
            .map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect(),
        body,
    };
    let open_response = shared.control.track();
    if shared.options.keep_requests {
        lock(&shared.requests).push(request.clone());
    }
    let Some(route) = Route::of(&request) else {
        // Requests to any other path are echoed, so that a test can see what the provider received.
        let kind = request.header("content-type").unwrap_or("application/octet-stream").to_owned();
        return plain(200, &kind, request.body);
    };
    let canned = if route.format == ResponseFormat::Count {
        None
    } else {
        lock(&shared.canned_responses).pop_front()
    };
    match canned.unwrap_or(CannedResponse::Scripted) {
        CannedResponse::Exact(exact) => send_exact(exact, &shared, open_response).await,
        CannedResponse::Scripted => {
            send_scripted(respond(&route, &request, &shared), None, &shared, open_response)
        }
        CannedResponse::Faulty(fault) => {
            if matches!(fault, StreamFault::StallFirst) {
                shared.control.wait_for_release().await;
            }
            send_scripted(respond(&route, &request, &shared), Some(fault), &shared, open_response)
        }
    }
}

fn send_scripted(
    response: ScriptedResponse,
    fault: Option<StreamFault>,
    shared: &Shared,
    open_response: OpenResponse,
) -> Response {
    let (status, kind, events) = match response {
        ScriptedResponse::Json { status, body } => {
            (status, "application/json", vec![Bytes::from(body.to_string())])
        }
        ScriptedResponse::Events(events) => (200, "text/event-stream; charset=utf-8", events),
    };
    let parts = match (fault, shared.options.pace) {
        (Some(fault), _) => stream::apply_fault(&events, fault),
        (None, Some(pace)) if events.len() > 1 => stream::pace(events, pace.pause),
        (None, _) => events.into_iter().map(BodyPart::Bytes).collect(),
    };
    build_response(
        status,
        &[("content-type".to_owned(), kind.to_owned())],
        stream::body(parts, shared.control.clone(), open_response),
    )
}

async fn send_exact(
    exact: ExactResponse,
    shared: &Shared,
    open_response: OpenResponse,
) -> Response {
    let mut parts = exact.parts;
    // If the body starts with a stall, the headers are delayed, too.
    if matches!(parts.first(), Some(BodyPart::Stall)) {
        parts.remove(0);
        shared.control.wait_for_release().await;
    }
    build_response(
        exact.status,
        &exact.headers,
        stream::body(parts, shared.control.clone(), open_response),
    )
}

fn plain(status: u16, kind: &str, body: Bytes) -> Response {
    build_response(status, &[("content-type".to_owned(), kind.to_owned())], Body::from(body))
}

fn build_response(status: u16, headers: &[(String, String)], body: Body) -> Response {
    let mut response = axum::http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    // Building fails only if the test itself has set a malformed header or status.
    response.body(body).unwrap_or_else(|error| Response::new(Body::from(error.to_string())))
}
