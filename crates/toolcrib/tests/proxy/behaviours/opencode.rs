//! docs/presets through the proxy.
