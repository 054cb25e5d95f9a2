//! The gateway's sections of `toolcrib.toml`: `[servers]`, `[profiles]` and `[gateway]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toolcrib_core::{DeferPolicy, Settings, SettingsReader};
use toolcrib_server::config::{ConfigFile, InvalidSetting};

use super::tool_override::RawToolOverride;
use super::{
    ConfigError, GatewayConfig, HttpVariant, IdleTimeout, OAuth, Server, ShareSetting, StartPolicy,
    Transport, check,
};
use crate::Secret;

/// The gateway's sections of the file.
pub const SECTIONS: [&str; 3] = ["servers", "profiles", "gateway"];

/// The documentation page that lists the keys of these sections.
const DOCS: &str = "docs/gateway-config.md";

/// A server as it is written in the file, before it is checked.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawServer {
    command: Option<String>,
    args: Option<Vec<Secret>>,
    env: Option<BTreeMap<String, Secret>>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    transport: Option<HttpVariant>,
    headers: Option<BTreeMap<String, Secret>>,
    oauth: Option<OAuth>,
    enabled: Option<bool>,
    prefix: Option<String>,
    allow: Vec<String>,
    deny: Vec<String>,
    defer: Option<DeferPolicy>,
    always_load: Vec<String>,
    start_timeout: Option<f64>,
    call_timeout: Option<f64>,
    timeouts: BTreeMap<Spanned<String>, f64>,
    parallel: Option<bool>,
    start: Option<StartPolicy>,
    idle: Option<IdleTimeout>,
    share: Option<ShareSetting>,
    trust_annotations: Option<bool>,
    tools: BTreeMap<String, RawToolOverride>,
}

impl RawServer {
    /// Returns the transport: a command or a URL. Returns an error if the server has both or neither, or a key that
    /// belongs to the other transport.
    fn transport(&mut self) -> Result<Transport, InvalidSetting> {
        let either = "a server has either `command` or `url`";
        match (self.command.take(), self.url.take()) {
            (Some(_), Some(_)) => {
                Err(InvalidSetting::new(&["url"], "cannot be combined with `command`", either))
            }
            (None, None) => {
                Err(InvalidSetting::new(&[], "has neither `command` nor `url`", either))
            }
            (Some(command), None) => {
                let other = [
                    ("transport", self.transport.is_some()),
                    ("headers", self.headers.is_some()),
                    ("oauth", self.oauth.is_some()),
                ];
                if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
                    return Err(InvalidSetting::new(
                        &[key],
                        "cannot be combined with `command`",
                        "it belongs to servers with `url`",
                    ));
                }
                Ok(Transport::Stdio {
                    command,
                    args: self.args.take().unwrap_or_default(),
                    env: self.env.take().unwrap_or_default(),
                    cwd: self.cwd.take(),
                })
            }
            (None, Some(url)) => {
                let other = [
                    ("args", self.args.is_some()),
                    ("env", self.env.is_some()),
                    ("cwd", self.cwd.is_some()),
                ];
                if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
                    return Err(InvalidSetting::new(
                        &[key],
                        "cannot be combined with `url`",
                        "it belongs to servers with `command`",
                    ));
                }
                Ok(Transport::Http {
                    url,
                    variant: self.transport.take().unwrap_or_default(),
                    headers: self.headers.take().unwrap_or_default(),
                    oauth: self.oauth.take().unwrap_or_default(),
                })
            }
        }
    }

    fn server(mut self) -> Result<Server, InvalidSetting> {
        let defaults = Server::new(self.transport()?);
        // The first pattern that matches a tool sets its timeout. A parsed table is unordered, so the order in the file
        // is restored.
        let mut timeouts: Vec<_> = self.timeouts.into_iter().collect();
        timeouts.sort_by_key(|(pattern, _)| pattern.span().start);
        let mut tools = BTreeMap::new();
        for (name, tool) in self.tools {
            let read = tool.read().map_err(|fault| fault.within(&["tools", &name]))?;
            tools.insert(name, read);
        }
        Ok(Server {
            enabled: self.enabled.unwrap_or(defaults.enabled),
            prefix: self.prefix,
            allow: self.allow,
            deny: self.deny,
            defer: self.defer,
            always_load: self.always_load,
            start_timeout: self.start_timeout.unwrap_or(defaults.start_timeout),
            call_timeout: self.call_timeout.unwrap_or(defaults.call_timeout),
            timeouts: timeouts.into_iter().map(|(key, time)| (key.into_inner(), time)).collect(),
            parallel: self.parallel.unwrap_or(defaults.parallel),
            start: self.start,
            idle: self.idle,
            share: self.share,
            trust_annotations: self.trust_annotations.unwrap_or(defaults.trust_annotations),
            tools,
            ..defaults
        })
    }
}

impl GatewayConfig {
    /// Parses a text that contains only the gateway's sections and the engine's settings.
    ///
    /// ```
    /// use toolcrib_mcp::GatewayConfig;
    /// let config = GatewayConfig::from_toml("[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']")?;
    /// assert!(config.servers["time"].enabled);
    /// let error = GatewayConfig::from_toml("[servers.time]\ncomand = 'uvx'").unwrap_err();
    /// assert!(error.to_string().ends_with("at line 2, column 1"));
    /// # Ok::<(), toolcrib_mcp::config::ConfigError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let file = ConfigFile::parse(text)?;
        let settings = SettingsReader::new()
            .ignoring(&SECTIONS)
            .read(text)
            .map_err(|error| ConfigError::new(error.to_string(), error.hint()))?;
        Self::read(&file, settings)
    }

    /// Reads the gateway's [`SECTIONS`] of a file that may also have other sections.
    pub fn read(file: &ConfigFile<'_>, settings: Settings) -> Result<Self, ConfigError> {
        let written: BTreeMap<String, RawServer> = file.section("servers", DOCS)?;
        let profiles = file.section("profiles", DOCS)?;
        let gateway = file.section("gateway", DOCS)?;
        let mut servers = BTreeMap::new();
        for (name, server) in written {
            let server =
                server.server().map_err(|fault| file.locate(fault.within(&["servers", &name])))?;
            servers.insert(name, server);
        }
        let config = Self { settings, servers, profiles, gateway };
        check::config(&config).map_err(|fault| file.locate(fault))?;
        Ok(config)
    }
}
