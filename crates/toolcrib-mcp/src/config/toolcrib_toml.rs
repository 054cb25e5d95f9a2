//! The gateway's sections of `toolcrib.toml`: `[servers]`, `[profiles]` and `[gateway]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toolcrib_core::{DeferPolicy, Settings, SettingsReader};
use toolcrib_server::config::duration::Seconds;
use toolcrib_server::config::{ConfigFile, InvalidSetting};

use super::tool_override::RawToolOverride;
use super::{
    ConfigError, GatewayConfig, HttpVariant, IdleTimeout, OAuth, Server, ShareSetting, StartPolicy,
    Transport, check,
};
use crate::Secret;

/// The gateway's sections of the file.
pub const SECTIONS: [&str; 3] = ["servers", "profiles", "gateway"];

/// The topic of `toolcrib docs` that describes these sections.
const DOCS: &str = "gateway-config";

/// A server as it is written in the file, before it is checked.
#[derive(Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(
    feature = "schema",
    schemars(
        rename = "Server",
        description = "An MCP server.",
        extend("oneOf" = [{ "required": ["command"] }, { "required": ["url"] }])
    )
)]
struct RawServer {
    /// The program that runs the server: a path, or a name that is looked up in `PATH`.
    command: Option<String>,
    /// The program's arguments, passed without a shell.
    args: Option<Vec<Secret>>,
    /// The program's environment variables, in addition to the few that every server inherits.
    env: Option<BTreeMap<String, Secret>>,
    /// The program's working folder.
    cwd: Option<PathBuf>,
    /// The URL of the server's MCP endpoint.
    url: Option<String>,
    /// Which HTTP transport the server uses.
    transport: Option<HttpVariant>,
    /// Headers that are sent with every request.
    headers: Option<BTreeMap<String, Secret>>,
    /// OAuth settings that discovery does not provide.
    oauth: Option<OAuth>,
    /// Whether the gateway uses the server. Default: true.
    enabled: Option<bool>,
    /// The prefix of the server's tool names. Default: the server's name. If empty, there is no prefix.
    prefix: Option<String>,
    /// Patterns for the tools that may be used. If empty, all tools may be used.
    allow: Vec<String>,
    /// Patterns for the tools that may not be used. Takes precedence over `allow`.
    deny: Vec<String>,
    /// When the server's tools are deferred. Default: each tool keeps its own policy.
    defer: Option<DeferPolicy>,
    /// Patterns for the tools that are never deferred.
    always_load: Vec<String>,
    /// Timeout for connecting to the server and fetching its lists, in seconds or with a unit. Default: 30 seconds.
    start_timeout: Option<Seconds>,
    /// Timeout of a call, in seconds or with a unit. Default: 120 seconds.
    call_timeout: Option<Seconds>,
    /// Timeouts of individual tools, by pattern, in seconds or with a unit. The first matching pattern applies.
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Seconds>"))]
    timeouts: BTreeMap<Spanned<String>, Seconds>,
    /// Whether the server may receive several calls at the same time. Default: true.
    parallel: Option<bool>,
    /// When the server is started. Default: `lazy` for a server with a command, `eager` for a server with a URL.
    start: Option<StartPolicy>,
    /// How long the server stays unused before it is stopped, in seconds or with a unit, or `never`. Default: 15 minutes.
    idle: Option<IdleTimeout>,
    /// Which clients share a process of the server. Default: `all`, except for servers that are known to keep state.
    share: Option<ShareSetting>,
    /// Whether the server's annotations decide which of its tools only read. Default: true.
    trust_annotations: Option<bool>,
    /// Changes to individual tools, by the tools' own names.
    tools: BTreeMap<String, RawToolOverride>,
}

/// Returns the schema of one server in the file.
#[cfg(feature = "schema")]
pub fn server_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<RawServer>()
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
            start_timeout: self.start_timeout.map_or(defaults.start_timeout, |time| time.0),
            call_timeout: self.call_timeout.map_or(defaults.call_timeout, |time| time.0),
            timeouts: timeouts.into_iter().map(|(key, time)| (key.into_inner(), time.0)).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_may_have_units() {
        let text = "[servers.a]\ncommand = 'x'\nstart_timeout = '1m30s'\ncall_timeout = '500ms'\n\
                    timeouts = { 'slow_*' = '1h', 'fast_*' = 2 }\nidle = '2m'\n\
                    [gateway]\nwait = '1500ms'\nfirst_list_wait = '3s'\nbackground_wait = '4s'\n\
                    background_idle = '1h'\nbackground_check = '1m'\n\
                    limits = { session_idle = '2h', server_stall = '20s' }";
        let numbers = "[servers.a]\ncommand = 'x'\nstart_timeout = 90\ncall_timeout = 0.5\n\
                       timeouts = { 'slow_*' = 3600, 'fast_*' = 2 }\nidle = 120\n\
                       [gateway]\nwait = 1.5\nfirst_list_wait = 3\nbackground_wait = 4\n\
                       background_idle = 3600\nbackground_check = 60\n\
                       limits = { session_idle = 7200, server_stall = 20 }";
        let config = GatewayConfig::from_toml(text).unwrap();
        assert_eq!(config, GatewayConfig::from_toml(numbers).unwrap());
        let server = &config.servers["a"];
        assert_eq!(server.idle, Some(IdleTimeout::After(120.0)));
        assert_eq!(config.gateway.limits.session_idle, 7_200);
        let written = crate::config::server_toml("a", server);
        assert!(written.contains("start_timeout = 90\n"), "{written}");
        assert_eq!(GatewayConfig::from_toml(&written).unwrap().servers["a"], *server);
    }

    #[test]
    fn a_misspelled_key_gets_a_suggestion_in_every_table() {
        for (text, expected) in [
            ("[servers.a]\ncomand = 'x'", "command"),
            ("[servers.a]\nurl = 'https://a'\noauth = { cilent_id = 'x' }", "client_id"),
            ("[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\nreadOnly = true", "read_only"),
            ("[servers.a]\ncommand = 'x'\nstart = 'eagr'", "eager"),
            ("[profiles.a]\nservrs = []", "servers"),
            ("[gateway]\nfirst_list_wiat = 1", "first_list_wait"),
            ("[gateway.limits]\nsesions = 1", "sessions"),
            ("[activation]\ntool = 1", "tools"),
            ("[server.a]\ncommand = 'x'", "servers"),
        ] {
            let error = GatewayConfig::from_toml(text).unwrap_err();
            let expected = format!("did you mean `{expected}`? `toolcrib docs ");
            assert!(error.hint.starts_with(&expected), "{text}: {}", error.hint);
            assert!(error.to_string().contains(" at line "), "{error}");
        }
    }
}
