//! The config file: parsed once, read by section. Its errors never show a value.

mod error;
mod file;
mod http;

pub use error::{ConfigError, InvalidSetting};
pub use file::{ConfigFile, MAX_CONFIG_BYTES};
pub use http::{HttpSettings, TlsFiles};
