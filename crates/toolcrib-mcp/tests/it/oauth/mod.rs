//! Tests of signing in to a server with OAuth, of using the stored tokens, and of the possible failures.

mod login;
mod refresh;
mod secrets;
mod stored_credentials;

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{StatusCode, header};
use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use toolcrib_mcp::oauth::{
    self, ClientIdentity, Error, Login, NeedsLogin, SignInTarget, client_for, needs_login,
};
use toolcrib_server::private_file::PrivateFolder;
use url::Url;

use crate::fake_oauth_server::FakeOAuthServer;

type Client = AuthClient<reqwest::Client>;

/// A fake server and an empty state folder.
struct Setup {
    fake: FakeOAuthServer,
    upstream: SignInTarget,
    state: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let fake = FakeOAuthServer::start();
        let upstream = SignInTarget {
            name: "mail".to_owned(),
            url: fake.at("mcp").parse().unwrap(),
            client: ClientIdentity::Register,
            scopes: Vec::new(),
            trusted_hosts: Vec::new(),
        };
        Self { fake, upstream, state: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PrivateFolder {
        PrivateFolder::new(self.state.path(), Some(self.state.path().to_owned()))
    }

    async fn start(&self) -> Result<Login, Error> {
        Login::start(&self.upstream, &self.folder()).await
    }

    async fn login(&self) -> Result<(), Error> {
        let login = self.start().await?;
        let url = login.url().clone();
        let (done, page) = tokio::join!(login.finish(), browse(url));
        assert_eq!(page.status(), StatusCode::OK);
        done
    }

    async fn client(&self) -> Result<Client, Error> {
        client_for(&self.upstream, &self.folder(), browser()).await
    }

    /// Returns the path of the file with credentials; `None` if there is none.
    fn file(&self) -> Option<PathBuf> {
        let folder = std::fs::read_dir(self.state.path().join("oauth")).ok()?;
        let mut files = folder.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|end| end == "json"))
    }

    fn stored(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.file().unwrap()).unwrap()).unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut stored = self.stored();
        change(&mut stored);
        std::fs::write(self.file().unwrap(), stored.to_string()).unwrap();
    }

    /// Makes the access token look expired.
    fn expire_token(&self) {
        self.change(|stored| stored["credentials"]["token_received_at"] = json!(1));
    }

    fn needs_login(&self) -> NeedsLogin {
        NeedsLogin { server: self.upstream.name.clone() }
    }
}

fn browser() -> reqwest::Client {
    toolcrib_tls::client_builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Signs in, and returns the URL that the browser is redirected to.
async fn sign_in(url: Url) -> Url {
    let answer = browser().get(url).send().await.unwrap();
    answer.headers()[header::LOCATION].to_str().unwrap().parse().unwrap()
}

async fn browse(url: Url) -> reqwest::Response {
    browser().get(sign_in(url).await).send().await.unwrap()
}

async fn connect(
    client: Client,
    url: &Url,
) -> Result<
    rmcp::service::RunningService<rmcp::RoleClient, ()>,
    Box<rmcp::service::ClientInitializeError>,
> {
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    ().serve(StreamableHttpClientTransport::with_client(client, config)).await.map_err(Box::new)
}

fn assert_needs_login(result: Result<Client, Error>, setup: &Setup) {
    match result {
        Err(Error::NeedsLogin(error)) => assert_eq!(error, setup.needs_login()),
        other => panic!("{other:?}"),
    }
}
