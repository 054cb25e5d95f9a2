//! The config file, which is parsed once and read by section. Errors never contain a value from it.

pub mod duration;
mod error;
mod file;
mod http;
mod listen_address;

pub use error::{ConfigError, InvalidSetting};
pub use file::{ConfigFile, MAX_CONFIG_BYTES};
pub use http::{HttpSettings, TlsFiles};
pub use listen_address::{ListenAddressError, parse_listen_address};
