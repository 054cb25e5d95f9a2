//! The metrics registry: one for the process, so that `/metrics` is one text.
//!
//! Each service registers its metrics when it is mounted. There is no global registry: tests run many
//! services in one process.

use prometheus_client::encoding::text;
pub use prometheus_client::registry::Registry;

/// The media type of [`encode`]'s text.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An empty registry. Every metric's name begins with `toolcrib_`.
pub fn registry() -> Registry {
    Registry::with_prefix("toolcrib")
}

/// All metrics as `OpenMetrics` text.
pub fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    match text::encode(&mut text, registry) {
        Ok(()) => text,
        // Writing to a string does not fail.
        Err(std::fmt::Error) => String::new(),
    }
}
