//! TLS for outgoing connections and for the listener: rustls with `ring`.
//!
//! reqwest and rustls are built without a default crypto provider, so a process must install one before its first
//! connection. Only this crate does that. Rejected: `aws-lc-rs`, the default of reqwest, because `ring` builds in a
//! fraction of the time (benches/README.md). The disadvantage is that `ring` does not support post-quantum key
//! exchange.

mod server;

pub use rustls::ServerConfig;
pub use server::{CertificateError, server_config};

/// Installs the crypto provider of this process, unless the process already has one. Call this before opening a TLS
/// connection without [`client_builder`].
pub fn install_crypto_provider() {
    // An error means that the process already has a provider, which is kept.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Starts building an HTTP client. Every HTTP client must be built with this function, because reqwest panics if no
/// crypto provider is installed.
pub fn client_builder() -> reqwest::ClientBuilder {
    install_crypto_provider();
    reqwest::Client::builder()
}
