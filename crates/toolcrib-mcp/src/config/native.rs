//! Our own file: `[servers]`, `[profiles]`, `[gateway]`, `[http]` and `[proxy]` beside the engine's
//! settings.
//!
//! One text, two readers: the engine is told to skip these five tables, and here it is the other way
//! round. Each sees the whole text, so that the lines in errors are those of the file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toolcrib_core::{Defer, Preset, Settings};

use super::check::{self, Fault};
use super::error::place_of;
use super::{
    Config, ConfigError, GatewaySettings, HttpSettings, MAX_BYTES, OAuth, Profile, Server,
    Transport,
};
use crate::Secret;

const KEYS: &str = "the keys and their defaults are in docs/gateway-config.md";

/// The top-level tables of `toolcrib.toml` that the engine does not read.
pub const TABLES: [&str; 5] = ["servers", "profiles", "gateway", "http", "proxy"];

/// The five tables, as people write them. All other keys are the engine's, which knows them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    servers: BTreeMap<String, WrittenServer>,
    profiles: BTreeMap<String, Profile>,
    gateway: GatewaySettings,
    http: HttpSettings,
    proxy: toml::Table,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WrittenServer {
    command: Option<String>,
    args: Option<Vec<Secret>>,
    env: Option<BTreeMap<String, Secret>>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: Option<BTreeMap<String, Secret>>,
    oauth: Option<OAuth>,
    enabled: Option<bool>,
    prefix: Option<String>,
    allow: Vec<String>,
    deny: Vec<String>,
    defer: Option<Defer>,
    always_load: Vec<String>,
    start_timeout: Option<f64>,
    call_timeout: Option<f64>,
    timeouts: BTreeMap<Spanned<String>, f64>,
    parallel: Option<bool>,
}

impl WrittenServer {
    /// Program or address, and nothing that belongs to the other.
    fn transport(&mut self) -> Result<Transport, Fault> {
        let fault = |key: &str, problem: &str, hint: &str| Fault {
            path: if key.is_empty() { Vec::new() } else { vec![key.to_owned()] },
            problem: problem.to_owned(),
            hint: hint.to_owned(),
        };
        let either = "a server has `command`, or `url`";
        match (self.command.take(), self.url.take()) {
            (Some(_), Some(_)) => Err(fault("url", "stands beside `command`", either)),
            (None, None) => Err(fault("", "has neither `command` nor `url`", either)),
            (Some(command), None) => {
                let other = [("headers", self.headers.is_some()), ("oauth", self.oauth.is_some())];
                if let Some((key, _)) = other.into_iter().find(|(_, is_there)| *is_there) {
                    return Err(fault(key, "stands beside `command`", "it goes with `url`"));
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
                if let Some((key, _)) = other.into_iter().find(|(_, is_there)| *is_there) {
                    return Err(fault(key, "stands beside `url`", "it goes with `command`"));
                }
                Ok(Transport::Http {
                    url,
                    headers: self.headers.take().unwrap_or_default(),
                    oauth: self.oauth.take().unwrap_or_default(),
                })
            }
        }
    }

    fn server(mut self) -> Result<Server, Fault> {
        let plain = Server::new(self.transport()?);
        // A table has no order of its own, and the first pattern that fits counts: the order is
        // that of the text.
        let mut timeouts: Vec<_> = self.timeouts.into_iter().collect();
        timeouts.sort_by_key(|(pattern, _)| pattern.span().start);
        Ok(Server {
            enabled: self.enabled.unwrap_or(plain.enabled),
            prefix: self.prefix,
            allow: self.allow,
            deny: self.deny,
            defer: self.defer,
            always_load: self.always_load,
            start_timeout: self.start_timeout.unwrap_or(plain.start_timeout),
            call_timeout: self.call_timeout.unwrap_or(plain.call_timeout),
            timeouts: timeouts.into_iter().map(|(key, time)| (key.into_inner(), time)).collect(),
            parallel: self.parallel.unwrap_or(plain.parallel),
            ..plain
        })
    }
}

impl Config {
    /// Reads `toolcrib.toml`.
    ///
    /// ```
    /// use toolcrib_mcp::Config;
    /// let config = Config::from_toml("[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']")?;
    /// assert!(config.servers["time"].enabled);
    /// let error = Config::from_toml("[servers.time]\ncomand = 'uvx'").unwrap_err();
    /// assert!(error.to_string().ends_with("at line 2, column 1"));
    /// # Ok::<(), toolcrib_mcp::config::ConfigError>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::from_toml_over(None, text)
    }

    /// The `[proxy]` table, as whoever knows its keys reads it.
    pub fn proxy<T: serde::de::DeserializeOwned>(&self) -> Result<T, ConfigError> {
        self.proxy.clone().try_into().map_err(|error: toml::de::Error| {
            let problem = format!("`proxy`: {}", without_values(error.message()));
            ConfigError::new(problem, "the keys and their defaults are in docs/proxy.md")
        })
    }

    /// The same with the engine's settings over this preset, whichever the text names.
    pub fn from_toml_over(preset: Option<Preset>, text: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError::new("more than 4 MiB", "a config is a few pages of text"));
        }
        let written: Written = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
        let settings = match preset {
            Some(preset) => preset.with_shared_toml(text, &TABLES),
            None => Settings::from_shared_toml(text, &TABLES),
        };
        let settings =
            settings.map_err(|error| ConfigError::new(error.to_string(), error.hint()))?;
        let told = |fault| told(text, fault);
        let mut servers = BTreeMap::new();
        for (name, server) in written.servers {
            let server = server.server().map_err(|fault| {
                let path = ["servers", &*name].map(str::to_owned).into_iter().chain(fault.path);
                told(Fault { path: path.collect(), ..fault })
            })?;
            servers.insert(name, server);
        }
        let Written { profiles, gateway, http, proxy, .. } = written;
        let config = Self { settings, servers, profiles, gateway, http, proxy };
        check::config(&config).map_err(told)?;
        Ok(config)
    }
}

/// A fault, and the line of the key it is about.
fn told(text: &str, fault: Fault) -> ConfigError {
    let problem = format!("`{}` {}", fault.path.join("."), fault.problem);
    ConfigError::new(problem, fault.hint).at(locate(text, &fault.path))
}

/// Where the deepest of these keys stands that is there.
fn locate(text: &str, path: &[String]) -> Option<(usize, usize)> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut found = None;
    for name in path {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        found = Some(key.span().start);
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    found.map(|byte| place_of(text, byte))
}

/// What the parser says, less the picture of the line and the values it quotes.
pub(super) fn unreadable(text: &str, error: &toml::de::Error) -> ConfigError {
    let place = error.span().map(|span| place_of(text, span.start));
    ConfigError::new(without_values(error.message()), KEYS).at(place)
}

/// A message of serde's without the value that was not expected.
fn without_values(message: &str) -> String {
    let lead = ["invalid type: ", "invalid value: ", "unknown variant "];
    let Some(lead) = lead.into_iter().find(|lead| message.starts_with(lead)) else {
        return message.trim_end().to_owned();
    };
    // The value may hold anything; what was expected comes last and is ours.
    let end = message.rfind(", expected ").unwrap_or(message.len());
    let kind = message[lead.len()..end].split(['"', '`']).next().unwrap_or_default();
    format!("{}{}", format!("{lead}{}", kind.trim()).trim_end_matches([' ', ':']), &message[end..])
}

#[cfg(test)]
mod tests {
    use super::without_values;

    #[test]
    fn messages_lose_the_value_and_keep_what_was_expected() {
        for (message, expected) in [
            (
                "invalid type: string \"a, expected b\", expected a map",
                "invalid type: string, expected a map",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "invalid type: integer, expected a string",
            ),
            ("invalid type: map, expected a string", "invalid type: map, expected a string"),
            (
                "unknown variant `s3cret`, expected one of `never`, `always`",
                "unknown variant, expected one of `never`, `always`",
            ),
            (
                "unknown field `comand`, expected `command`",
                "unknown field `comand`, expected `command`",
            ),
        ] {
            assert_eq!(without_values(message), expected);
        }
    }
}
