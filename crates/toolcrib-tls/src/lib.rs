//! The TLS of every outgoing connection: rustls, with the cryptography of `ring`.
//!
//! rustls comes without cryptography, and a process has to choose a provider before its first connection.
//! This crate is the only place that does. `ring` was chosen over `aws-lc-rs`, the default of reqwest,
//! because it builds in a fraction of the time (benches/README.md). What that gives up is post-quantum key
//! exchange, which `ring` does not offer.

/// Chooses the provider for this process, unless it has one. Call it before anything that opens a TLS
/// connection without [`client_builder`].
pub fn choose_provider() {
    // An error means that the program has already installed a provider. Its choice stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Builds an HTTP client. All of ours are built with it: without a provider reqwest panics.
pub fn client_builder() -> reqwest::ClientBuilder {
    choose_provider();
    reqwest::Client::builder()
}
