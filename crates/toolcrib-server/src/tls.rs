//! TLS on the listener. The certificate can be replaced while the server runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::{Accept, TlsAcceptor};

/// The certificate and key of a listener. Clones share them.
#[derive(Clone)]
pub struct ServerTls(Arc<ArcSwap<ServerConfig>>);

/// The debug output leaves out the TLS config, which contains the private key.
impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Creates a `ServerTls` from a TLS config that `toolcrib-tls` has built.
    pub fn new(config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(ArcSwap::new(config)))
    }

    /// Uses `config` for all new connections.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        self.0.store(config);
    }

    pub(crate) fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        TlsAcceptor::from(self.0.load_full()).accept(stream)
    }
}
