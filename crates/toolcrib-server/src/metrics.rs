//! The metrics registry, for `/metrics`.
//!
//! Each service registers its metrics when it is mounted. The registry is not a global variable, because tests run many
//! services in one process.

use prometheus_client::encoding::text;
pub use prometheus_client::registry::Registry;

/// The media type of the text that [`encode`] returns.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Creates an empty registry. It adds the prefix `toolcrib_` to the name of every metric.
pub fn registry() -> Registry {
    Registry::with_prefix("toolcrib")
}

/// Returns all metrics as `OpenMetrics` text.
pub fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    match text::encode(&mut text, registry) {
        Ok(()) => text,
        // Writing to a string never fails.
        Err(std::fmt::Error) => String::new(),
    }
}
