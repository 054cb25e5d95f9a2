//! The `[http]` section: the address to listen on, who may send requests, and limits.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::duration::whole_seconds;
use super::file::DOCS;
use super::listen_address::listen_address;
use super::{ConfigError, ConfigFile, InvalidSetting};
use crate::Secret;

/// Maximum value of a timeout, in seconds: one day.
const MAX_TIMEOUT: u64 = 86_400;

/// The `[http]` section.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// The address to listen on. A port without a host, such as `:4180`, means 127.0.0.1.
    #[cfg_attr(feature = "schema", schemars(schema_with = "super::listen_address::schema"))]
    #[serde(deserialize_with = "listen_address")]
    pub listen: SocketAddr,
    /// The token that clients must send. If it is not set, no token is required on a loopback address, and one is
    /// generated for any other address.
    pub token: Option<Secret>,
    /// The admin's token, which gives access to the statistics and metrics of all callers.
    pub admin_token: Option<Secret>,
    /// Host names that requests may use, in addition to loopback names.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may send, in addition to loopback origins.
    pub allowed_origins: Vec<String>,
    /// Maximum number of connections. Default: half of the number of files that the process may open, at most 10,000.
    pub connections: Option<usize>,
    /// Maximum number of connections from one remote address. It does not apply to loopback addresses. Default: half of
    /// `connections`.
    pub connections_per_address: Option<usize>,
    /// Maximum time to receive the head of a request, in seconds.
    #[serde(deserialize_with = "whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "super::duration::Seconds"))]
    pub header_timeout: u64,
    /// Maximum idle time between two requests on a connection, in seconds.
    #[serde(deserialize_with = "whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "super::duration::Seconds"))]
    pub idle_timeout: u64,
    /// Maximum time without receiving any byte of a request body, in seconds.
    #[serde(deserialize_with = "whole_seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "super::duration::Seconds"))]
    pub body_timeout: u64,
    /// Maximum total size of all request bodies in memory, in bytes.
    pub body_bytes: usize,
    /// The certificate for HTTPS. If not set, the listener serves HTTP.
    pub tls: Option<TlsFiles>,
}

/// The files with a listener's certificate and private key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// PEM file with the certificate, followed by the certificates of intermediate authorities.
    pub certificate: PathBuf,
    /// PEM file with the private key. Only the owner and the group of the file may have access to it.
    pub key: PathBuf,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 4180)),
            token: None,
            admin_token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            connections: None,
            connections_per_address: None,
            header_timeout: 30,
            idle_timeout: 120,
            body_timeout: 30,
            body_bytes: 512 << 20,
            tls: None,
        }
    }
}

impl HttpSettings {
    /// The name of this section in the config file.
    pub const SECTION: &str = "http";

    /// Reads the section and checks it.
    pub fn read(file: &ConfigFile<'_>) -> Result<Self, ConfigError> {
        let settings: Self = file.section(Self::SECTION, DOCS)?;
        settings.check().map_err(|fault| file.locate(fault.within(&[Self::SECTION])))?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        for (key, token) in [("token", &self.token), ("admin_token", &self.admin_token)] {
            let token = token.as_ref();
            InvalidSetting::unless(
                token.is_none_or(|token| !token.expose().trim().is_empty()),
                || {
                    InvalidSetting::new(
                        &[key],
                        "is empty",
                        "leave it out, or set at least one character",
                    )
                },
            )?;
        }
        for (key, list) in
            [("allowed_hosts", &self.allowed_hosts), ("allowed_origins", &self.allowed_origins)]
        {
            InvalidSetting::unless(list.iter().all(|entry| !entry.trim().is_empty()), || {
                InvalidSetting::new(&[key], "has an empty entry", "leave it out")
            })?;
        }
        if let Some(TlsFiles { certificate, key }) = &self.tls {
            for (name, path) in [("certificate", certificate), ("key", key)] {
                // A relative path would depend on the working folder, which may contain files from anyone.
                InvalidSetting::unless(path.is_absolute(), || {
                    InvalidSetting::new(
                        &["tls", name],
                        "is a relative path",
                        "write an absolute path",
                    )
                })?;
            }
        }
        for (key, connections) in [
            ("connections", self.connections),
            ("connections_per_address", self.connections_per_address),
        ] {
            InvalidSetting::unless(connections != Some(0), || {
                InvalidSetting::new(&[key], "is 0", "set at least 1, or leave it out")
            })?;
        }
        InvalidSetting::unless(self.body_bytes > 0, || {
            InvalidSetting::new(&["body_bytes"], "is 0", "set at least 1, or leave it out")
        })?;
        for (key, seconds) in [
            ("header_timeout", self.header_timeout),
            ("idle_timeout", self.idle_timeout),
            ("body_timeout", self.body_timeout),
        ] {
            InvalidSetting::unless((1..=MAX_TIMEOUT).contains(&seconds), || {
                InvalidSetting::new(&[key], "is out of range", "set 1 to 86400 seconds")
            })?;
        }
        Ok(())
    }
}
