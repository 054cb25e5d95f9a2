//! The `[http]` section: where to listen, and who may send requests.

use std::net::SocketAddr;

use serde::Deserialize;

use super::file::DOCS;
use super::{ConfigError, ConfigFile, Fault};
use crate::Secret;

/// The `[http]` section.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The token that callers must send. If none is set, one is generated unless the address is a
    /// loopback address.
    pub token: Option<Secret>,
    /// The token of the admin, who sees the statistics and metrics of all callers.
    pub admin_token: Option<Secret>,
    /// Host names, in addition to loopback ones, that requests may name.
    pub allowed_hosts: Vec<String>,
    /// Origins, in addition to loopback ones, that browsers may send.
    pub allowed_origins: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4180)),
            token: None,
            admin_token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl HttpSettings {
    /// The name of the section.
    pub const SECTION: &str = "http";

    /// Reads the section and checks it.
    pub fn read(file: &ConfigFile<'_>) -> Result<Self, ConfigError> {
        let settings: Self = file.section(Self::SECTION, DOCS)?;
        settings.check().map_err(|fault| file.locate(fault.within(&[Self::SECTION])))?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Fault> {
        for (key, token) in [("token", &self.token), ("admin_token", &self.admin_token)] {
            let token = token.as_ref();
            Fault::unless(token.is_none_or(|token| !token.expose().trim().is_empty()), || {
                Fault::new(&[key], "is empty", "leave it out, or set at least one character")
            })?;
        }
        for (key, list) in
            [("allowed_hosts", &self.allowed_hosts), ("allowed_origins", &self.allowed_origins)]
        {
            Fault::unless(list.iter().all(|one| !one.trim().is_empty()), || {
                Fault::new(&[key], "has an empty entry", "leave it out")
            })?;
        }
        Ok(())
    }
}
