//! TLS for the listener, from a certificate and a private key in PEM.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The reason why a certificate or a private key cannot be used. The error contains no part of the key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The text contains no certificate.
    #[error("the file contains no certificate")]
    NoCertificate,
    /// A certificate cannot be parsed.
    #[error("the certificate cannot be parsed: {0}")]
    Certificate(rustls::pki_types::pem::Error),
    /// The text contains no private key that can be parsed.
    #[error("the file contains no readable private key")]
    NoKey,
    /// The key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// rustls rejects the certificate or the key.
    #[error("the certificate cannot be used: {0}")]
    Rejected(rustls::Error),
}

impl CertificateError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoCertificate | Self::Certificate(_) | Self::Rejected(_) => {
                "`certificate` is a PEM file with the server's certificate first, then those of intermediate authorities"
            }
            Self::NoKey => "`key` is a PEM file with the private key, without a passphrase",
            Self::Mismatch => {
                "`key` must be the private key of the first certificate in `certificate`"
            }
        }
    }
}

/// Returns the config of a listener for HTTP/1.1 over TLS 1.2 and 1.3.
pub fn server_config(
    certificate: &[u8],
    key: &[u8],
) -> Result<Arc<ServerConfig>, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(CertificateError::Certificate)?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| CertificateError::NoKey)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(CertificateError::Rejected)?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut config = config.map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch,
        error => CertificateError::Rejected(error),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
