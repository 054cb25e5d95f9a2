//! The TLS of every connection, outgoing and of our own listener: rustls, with the cryptography of `ring`.
//!
//! reqwest and rustls are built without a default crypto provider, so a process must install one before its
//! first connection. This crate is the only place that does. `ring` was chosen over `aws-lc-rs`, the default of reqwest,
//! because it builds in a fraction of the time (benches/README.md). What that gives up is post-quantum key
//! exchange, which `ring` does not offer.

mod server;

pub use rustls::ServerConfig;
pub use server::{CertificateError, server_config};

/// Installs the provider for this process, unless it has one. Call it before anything that opens a TLS
/// connection without [`client_builder`].
pub fn install_crypto_provider() {
    // An error means that the program has already installed a provider. Its choice stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds an HTTP client. All of ours are built with it: without a provider reqwest panics.
pub fn client_builder() -> reqwest::ClientBuilder {
    install_crypto_provider();
    reqwest::Client::builder()
}
