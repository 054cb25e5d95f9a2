//! The TLS of every outgoing connection: rustls, with the cryptography of `ring`.
//!
//! rustls comes without cryptography, and a process has to choose a provider before its first connection.
//! This crate is the only place that does. `ring` was chosen over `aws-lc-rs`, the default of reqwest,
//! because it builds in a fraction of the time (benches/README.md). What that gives up is post-quantum key
//! exchange, which `ring` does not offer.

/// Chooses the provider for this process, unless it has one. Call it before anything that opens a TLS
/// connection without [`http_client`].
pub fn choose_provider() {
    // An error means that the process has chosen already, which is the embedding program's right.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// An HTTP client to be configured. All HTTP clients are built from this: without a provider reqwest
/// panics.
pub fn http_client() -> reqwest::ClientBuilder {
    choose_provider();
    reqwest::Client::builder()
}
