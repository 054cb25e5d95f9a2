//! What a client is told: the upstream's own words wherever there are any.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use toolcrib_dialect::Api;
use toolcrib_dialect::turn::Summary;

use crate::exchange::Exchange;
use crate::head::{self, Said};
use crate::proxy::Proxy;
use crate::route::Upstream;
use crate::totals::{Entry, shown};
use crate::upstream::{Answer, Failed, Lost};

impl Exchange {
    pub(crate) fn passed(&self, answer: Answer) -> Response {
        self.done(&Summary { rounds: 1, ..Summary::default() }, answer.status);
        untouched(answer, Some(&self.said))
    }

    /// The answer to a request that got none.
    pub(crate) fn failed(&self, failed: &Failed) -> Response {
        match failed {
            Failed::Lost(lost) => {
                unreachable(&self.proxy, Some(self.api), &self.line.upstream, lost)
            }
            Failed::Untranslatable(why) => {
                error(self.api, StatusCode::BAD_REQUEST, &why.to_string())
            }
        }
    }

    pub(crate) fn respond(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Body,
        whole: bool,
        summary: Option<&Summary>,
    ) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = head::down(headers, whole);
        self.said.write(response.headers_mut());
        if let Some(summary) = summary {
            head::taken(summary, response.headers_mut());
        }
        response
    }

    /// Says what became of a request: one line, and the numbers.
    pub(crate) fn done(&self, summary: &Summary, status: StatusCode) {
        let Said { mode, why, tools, deferred, tokens } = &self.said;
        self.proxy.metrics.request(self.api, mode, *tokens, summary);
        // To ask how many tokens a request has takes none.
        if *tools > 0 && !self.counts {
            self.proxy.running.add(&Entry {
                model: &self.model,
                client: &self.client,
                deferred: *deferred > 0,
                tokens: *tokens,
                summary: *summary,
            });
        }
        tracing::info!(
            api = %self.api,
            model = shown(&self.model),
            host = %self.host,
            client = self.client,
            mode,
            why,
            tools,
            deferred,
            tokens_before = tokens.0,
            tokens_after = tokens.1,
            rounds = summary.rounds,
            searches = summary.searches,
            status = status.as_u16(),
            "answered"
        );
    }

    pub(crate) fn broken(&self, lost: &Lost) -> Response {
        self.proxy.metrics.failure();
        tracing::warn!(host = %self.host, %lost, "the upstream broke off");
        error(self.api, StatusCode::BAD_GATEWAY, &format!("the upstream broke off: {lost}"))
    }
}

/// An answer as it came.
pub(crate) fn untouched(answer: Answer, said: Option<&Said>) -> Response {
    let mut headers = head::down(&answer.headers, true);
    if let Some(said) = said {
        said.write(&mut headers);
    }
    let mut response = Response::new(Body::from_stream(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    response
}

pub(crate) fn unreachable(
    proxy: &Proxy,
    api: Option<Api>,
    upstream: &Upstream,
    lost: &Lost,
) -> Response {
    proxy.metrics.failure();
    let host = upstream.host();
    tracing::warn!(%host, %lost, "the upstream cannot be reached");
    let text = format!("the upstream {host} cannot be reached: {lost}");
    error(api.unwrap_or(Api::Chat), StatusCode::BAD_GATEWAY, &text)
}

/// The answer for whoever has no key.
pub(crate) fn no_key() -> Response {
    let text = "a key is needed: send it as `x-toolcrib-key`";
    let mut response = error(Api::Chat, StatusCode::UNAUTHORIZED, text);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// The answer for whoever wants to speak through a socket, where nothing could be deferred. Passed on
/// without its upgrade the request would be another, and the client would try it again and again;
/// from this one Codex goes over to HTTP at once.
pub(crate) fn no_socket(api: Api) -> Response {
    let text = "there are no sockets here: POST the request";
    let mut response = error(api, StatusCode::UPGRADE_REQUIRED, text);
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response
}

/// An error of ours, in the shape of the API.
pub(crate) fn error(api: Api, status: StatusCode, text: &str) -> Response {
    let text = serde_json::Value::from(format!("toolcrib: {text}"));
    let code = status.as_u16();
    let body = match api {
        Api::Messages => {
            format!(r#"{{"type":"error","error":{{"type":"api_error","message":{text}}}}}"#)
        }
        Api::Gemini => {
            format!(r#"{{"error":{{"code":{code},"message":{text},"status":"UNAVAILABLE"}}}}"#)
        }
        Api::Chat | Api::Responses => {
            format!(
                r#"{{"error":{{"message":{text},"type":"api_error","param":null,"code":null}}}}"#
            )
        }
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
