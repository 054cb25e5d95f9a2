//! A fake MCP server with an authorization server. Tests can change its responses.
//!
//! It runs on its own thread and runtime, so that the log of a test's thread contains only messages of the client.
//! Every secret that the fake server issues starts with `CANARY`.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::{Form, Json, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Router, body::Body};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use url::Url;

/// How the fake server behaves, and what it received.
#[derive(Default)]
pub(crate) struct FakeSettings {
    /// Overrides fields of the authorization server's metadata.
    pub(crate) metadata: Map<String, Value>,
    /// Whether the authorization server publishes no metadata.
    pub(crate) no_metadata: bool,
    /// The `iss` of the callback. If it is `None`, the issuer is sent; if it is empty, no `iss` is sent.
    pub(crate) iss: Option<String>,
    /// The status and body that token requests receive instead of a token.
    pub(crate) token_response: Option<(StatusCode, Value)>,
    /// Redirects token requests to this URL.
    pub(crate) token_redirect: Option<String>,
    /// The client secret that is issued at registration.
    pub(crate) client_secret: Option<String>,
    /// The number of token requests received.
    pub(crate) token_requests: u32,
    /// If set, token requests are answered only once the value of this receiver is true.
    pub(crate) token_gate: Option<watch::Receiver<bool>>,
    pub(crate) expires_in: u64,
    /// The access token that the MCP server accepts.
    pub(crate) valid_token: Option<String>,
    pub(crate) refresh_token: Option<String>,
    pub(crate) refreshes: u32,
    /// The number of requests that followed the redirect of `token_redirect`.
    pub(crate) redirected: u32,
    pub(crate) registrations: u32,
    /// The `Authorization` headers of token requests.
    pub(crate) token_authorization: Vec<Option<String>>,
    /// The `Authorization` headers of the requests that the MCP server accepted.
    pub(crate) accepted: Vec<String>,
    codes: BTreeMap<String, String>,
    issued: u32,
}

#[derive(Clone)]
pub(crate) struct FakeOAuthServer {
    pub(crate) base: Url,
    settings: Arc<Mutex<FakeSettings>>,
}

struct EmptyServer;
impl ServerHandler for EmptyServer {}

impl FakeOAuthServer {
    pub(crate) fn start() -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
                let settings = FakeSettings { expires_in: 3600, ..FakeSettings::default() };
                let fake = FakeOAuthServer { base, settings: Arc::new(Mutex::new(settings)) };
                sender.send(fake.clone()).unwrap();
                axum::serve(listener, fake.routes()).await.unwrap();
            });
        });
        receiver.recv().unwrap()
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, FakeSettings> {
        self.settings.lock()
    }

    pub(crate) fn at(&self, path: &str) -> String {
        self.base.join(path).unwrap().to_string()
    }

    pub(crate) fn issuer(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    fn accepts(&self, given: Option<&str>) -> bool {
        let mut settings = self.settings();
        let valid = settings.valid_token.as_ref().map(|token| format!("Bearer {token}"));
        let is_valid = given.is_some() && given == valid.as_deref();
        settings.accepted.extend(given.filter(|_| is_valid).map(str::to_owned));
        is_valid
    }

    fn routes(&self) -> Router {
        let config = StreamableHttpServerConfig::default();
        let server = StreamableHttpService::new(
            || Ok(EmptyServer),
            Arc::<LocalSessionManager>::default(),
            config,
        );
        let inside = Router::new()
            .nest_service("/mcp", server.clone())
            .nest_service("/other", server)
            .layer(from_fn_with_state(self.clone(), check_token));
        Router::new()
            .route("/.well-known/oauth-protected-resource/{*path}", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/elsewhere", post(redirect_target))
            .with_state(self.clone())
            .merge(inside)
    }
}

async fn check_token(
    State(fake): State<FakeOAuthServer>,
    request: Request,
    next: Next,
) -> Response {
    let authorization =
        request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if fake.accepts(authorization) {
        return next.run(request).await;
    }
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let url = fake.at(&format!(".well-known/oauth-protected-resource/{path}"));
    let challenge = format!("Bearer resource_metadata=\"{url}\", scope=\"tools\"");
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
}

async fn resource(State(fake): State<FakeOAuthServer>, request: Request<Body>) -> Response {
    if fake.settings().no_metadata {
        return StatusCode::NOT_FOUND.into_response();
    }
    let path = request.uri().path().replace("/.well-known/oauth-protected-resource/", "");
    Json(json!({ "resource": fake.at(&path), "authorization_servers": [fake.issuer()] }))
        .into_response()
}

async fn metadata(State(fake): State<FakeOAuthServer>) -> Response {
    if fake.settings().no_metadata {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut document = json!({
        "issuer": fake.issuer(),
        "authorization_endpoint": fake.at("authorize"),
        "token_endpoint": fake.at("token"),
        "registration_endpoint": fake.at("register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    for (name, value) in &fake.settings().metadata {
        document[name] = value.clone();
    }
    Json(document).into_response()
}

async fn register(State(fake): State<FakeOAuthServer>, Json(params): Json<Value>) -> Json<Value> {
    let mut settings = fake.settings();
    settings.registrations += 1;
    let mut answer = json!({
        "client_id": format!("client-{}", settings.registrations),
        "redirect_uris": params["redirect_uris"],
    });
    if let Some(secret) = &settings.client_secret {
        answer["client_secret"] = secret.clone().into();
    }
    Json(answer)
}

async fn authorize(
    State(fake): State<FakeOAuthServer>,
    Query(params): Query<HashMap<String, String>>,
) -> Response {
    let mut settings = fake.settings();
    assert_eq!(params["response_type"], "code");
    assert_eq!(params["code_challenge_method"], "S256");
    assert!(params["resource"].starts_with(fake.base.as_str()), "{params:?}");
    settings.issued += 1;
    let code = format!("CANARY-code-{}", settings.issued);
    settings.codes.insert(code.clone(), params["code_challenge"].clone());
    let mut back: Url = params["redirect_uri"].parse().unwrap();
    back.query_pairs_mut().append_pair("code", &code).append_pair("state", &params["state"]);
    let iss = settings.iss.clone().unwrap_or_else(|| fake.issuer());
    if !iss.is_empty() {
        back.query_pairs_mut().append_pair("iss", &iss);
    }
    Redirect::to(back.as_str()).into_response()
}

async fn token(
    State(fake): State<FakeOAuthServer>,
    headers: HeaderMap,
    Form(params): Form<HashMap<String, String>>,
) -> Response {
    fake.settings().token_requests += 1;
    let gate = fake.settings().token_gate.clone();
    if let Some(mut gate) = gate {
        gate.wait_for(|open| *open).await.unwrap();
    }
    let mut settings = fake.settings();
    let authorization =
        headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    settings.token_authorization.push(authorization);
    if let Some((status, answer)) = &settings.token_response {
        return (*status, Json(answer.clone())).into_response();
    }
    if let Some(target) = &settings.token_redirect {
        return Redirect::temporary(target).into_response();
    }
    assert!(params["resource"].starts_with(fake.base.as_str()), "{params:?}");
    let granted = if params["grant_type"] == "refresh_token" {
        settings.refreshes += 1;
        settings.refresh_token.as_ref() == Some(&params["refresh_token"])
    } else {
        let challenge = settings.codes.remove(&params["code"]);
        challenge == Some(base64url(&Sha256::digest(&params["code_verifier"])))
    };
    if !granted {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })))
            .into_response();
    }
    settings.issued += 1;
    let (access, refresh) = (
        format!("CANARY-access-{}", settings.issued),
        format!("CANARY-refresh-{}", settings.issued),
    );
    settings.valid_token = Some(access.clone());
    settings.refresh_token = Some(refresh.clone());
    Json(json!({
        "access_token": access,
        "refresh_token": refresh,
        "token_type": "Bearer",
        "expires_in": settings.expires_in,
        "id_token": "CANARY-id",
        "scope": "tools",
    }))
    .into_response()
}

async fn redirect_target(State(fake): State<FakeOAuthServer>) -> StatusCode {
    fake.settings().redirected += 1;
    StatusCode::OK
}

fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * index) & 63) as usize]));
        }
    }
    text
}
