//! The config file, which is parsed once and read by section. Errors never contain a value from it.

mod error;
mod file;
mod http;

pub use error::{ConfigError, InvalidSetting};
pub use file::{ConfigFile, MAX_CONFIG_BYTES};
pub use http::{HttpSettings, TlsFiles};
