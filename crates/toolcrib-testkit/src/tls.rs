//! TLS in front of a plain server, with a certificate from a CA that only the test trusts.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A listener that terminates TLS and forwards the bytes to a plain server. It stops when dropped.
#[derive(Debug)]
pub struct TlsTerminator {
    port: u16,
    folder: TempDir,
    _runtime: Runtime,
}

impl TlsTerminator {
    /// Listens on a free port and forwards to the server at `address`, such as `127.0.0.1:4000`.
    pub fn start(address: &str) -> Self {
        let (config, authority) = certificates();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("authority.pem"), authority).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), address.to_owned()));
        Self { port, folder, _runtime: runtime }
    }

    /// Returns the address for clients: the host name in the certificate, and the port.
    pub fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Returns the path of the file with the certificate of the CA, for `SSL_CERT_FILE`.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, address: String) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, address) = (acceptor.clone(), address.clone());
        tokio::spawn(async move {
            // The handshake fails if the client does not trust the certificate.
            let Ok(mut outside) = acceptor.accept(socket).await else { return };
            let mut inside = TcpStream::connect(address).await.unwrap();
            // Errors are ignored, because either side may close the connection at any time.
            let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}

/// Returns a server configuration with a certificate for `localhost`, and the certificate of the CA that signed it.
fn certificates() -> (ServerConfig, String) {
    let Issued { certificate, key, authority } = Issued::new();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (config, authority)
}

/// A new certificate for `localhost`, its key, and the certificate of the CA that signed it.
struct Issued {
    certificate: Certificate,
    key: KeyPair,
    /// The certificate of the CA, as PEM.
    authority: String,
}

impl Issued {
    fn new() -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap());
        let (authority, key) = (authority.unwrap(), KeyPair::generate().unwrap());
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority);
        Self { certificate: certificate.unwrap(), key, authority: authority.pem() }
    }
}

/// Creates a certificate for `localhost`. Writes it to `certificate.pem`, its key to `key.pem` and the certificate of
/// the CA to `authority.pem` in `folder`. The key is readable only by its owner.
pub fn write_certificate(folder: &Path) {
    let Issued { certificate, key, authority } = Issued::new();
    std::fs::write(folder.join("certificate.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.join("authority.pem"), authority).unwrap();
    let path = folder.join("key.pem");
    std::fs::write(&path, key.serialize_pem()).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}
