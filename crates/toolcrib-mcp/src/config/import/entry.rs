//! Reads one server from another client's file. An invalid value causes a warning instead of an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolcrib_server::{HttpSettings, url};

use super::super::{HttpVariant, OAuth, Server, Transport, check};
use crate::Secret;

/// Collects the servers of a file.
#[derive(Default)]
pub(super) struct ImportBuilder {
    pub(super) servers: BTreeMap<String, Server>,
    /// The names of the disabled servers, each with the reason.
    pub(super) disabled: BTreeMap<String, String>,
    /// The names of all entries, including those that were left out.
    pub(super) names: BTreeSet<String>,
    /// The names of the entries that start Toolcrib itself, which are left out.
    pub(super) own_entries: BTreeSet<String>,
    /// The names of the servers that need something that only the client has, each with what is missing.
    pub(super) client_only: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
}

impl ImportBuilder {
    /// Reads the servers in `map`, the object under `key`, if there is one. `convert` rewrites references from the
    /// client's syntax to ours.
    pub(super) fn add_servers(
        &mut self,
        key: &str,
        map: Option<&Value>,
        convert: &dyn Fn(&str) -> String,
        read: impl Fn(&mut ServerEntry<'_>) -> Option<Server>,
    ) {
        let Some(map) = map.filter(|map| !map.is_null()) else { return };
        let Some(map) = map.as_object() else {
            self.warnings.push(format!("`{key}` is not an object; ignored"));
            return;
        };
        for (name, value) in map {
            let mut entry = ServerEntry {
                name,
                keys: Map::new(),
                is_toolcrib: false,
                client_only: None,
                warnings: Vec::new(),
                convert,
            };
            let server = entry.server(value, &read);
            let disabled = server.as_ref().and_then(|_| entry.disabled_reason());
            self.warnings.append(&mut entry.warnings);
            self.names.insert(name.clone());
            if entry.is_toolcrib {
                self.own_entries.insert(name.clone());
            }
            if let Some(missing) = entry.client_only.filter(|_| server.is_some()) {
                self.client_only.insert(name.clone(), missing);
            }
            if let Some(server) = server {
                self.disabled.remove(name);
                self.servers.insert(name.clone(), server);
            }
            if let Some(reason) = disabled {
                self.disable(name, reason);
            }
        }
    }

    /// Disables the server with this name, if there is one.
    pub(super) fn disable(&mut self, name: &str, reason: String) {
        if let Some(server) = self.servers.get_mut(name) {
            server.enabled = false;
            self.disabled.entry(name.to_owned()).or_insert(reason);
        }
    }
}

/// One server of a client's file.
pub(super) struct ServerEntry<'a> {
    name: &'a str,
    keys: Map<String, Value>,
    is_toolcrib: bool,
    client_only: Option<String>,
    warnings: Vec<String>,
    /// Rewrites references from the client's syntax to the syntax of `toolcrib.toml`.
    convert: &'a dyn Fn(&str) -> String,
}

impl ServerEntry<'_> {
    fn server(
        &mut self,
        value: &Value,
        read: impl Fn(&mut Self) -> Option<Server>,
    ) -> Option<Server> {
        if check::check_name("server", self.name).is_err() {
            self.warnings.push(format!("`{}` has an invalid name; it is left out", self.name));
            return None;
        }
        let Some(keys) = value.as_object() else {
            self.warnings.push(format!("`{}` is not an object; ignored", self.name));
            return None;
        };
        self.keys.clone_from(keys);
        let server = read(self)?;
        if is_toolcrib(self.name, &server.transport) {
            self.is_toolcrib = true;
            let problem = "is Toolcrib itself and is left out: it would call itself endlessly";
            self.warnings.push(format!("`{}` {problem}", self.name));
            return None;
        }
        if let Err(fault) = check::server(&server) {
            let key = fault.path.first().map_or("command", String::as_str);
            self.warn(key, &format!("{}; the server is left out", fault.problem));
            return None;
        }
        Some(server)
    }

    /// Adds a warning about a key. The warning must not contain the key's value, which may be a secret.
    pub(super) fn warn(&mut self, key: &str, problem: &str) {
        self.warnings.push(format!("`{}`: `{key}` {problem}", self.name));
    }

    /// Notes that the server needs something that only the client has.
    pub(super) fn set_client_only(&mut self, missing: impl Into<String>) {
        self.client_only.get_or_insert(missing.into());
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|value| !value.is_null())
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.keys.get(key).filter(|value| !value.is_null())
    }

    /// Reads a string without converting references, for keys such as `type`.
    pub(super) fn raw_string(&mut self, key: &str) -> Option<String> {
        let word = self.value(key)?.as_str().map(str::to_owned);
        if word.is_none() {
            self.warn(key, "is not a string; ignored");
        }
        word
    }

    /// Reads a string and converts its references.
    pub(super) fn string(&mut self, key: &str) -> Option<String> {
        self.raw_string(key).map(|text| (self.convert)(&text))
    }

    /// Reads a list of strings without converting references.
    pub(super) fn raw_strings(&mut self, key: &str) -> Option<Vec<String>> {
        let list = self.value(key)?.as_array().cloned();
        let Some(list) = list else {
            self.warn(key, "is not a list; ignored");
            return None;
        };
        let words: Vec<String> = list.iter().filter_map(scalar).collect();
        if words.len() < list.len() {
            self.warn(key, "has entries that are not strings; they are ignored");
        }
        Some(words)
    }

    /// Reads an object of strings and converts their references. Numbers and booleans become strings.
    pub(super) fn map(&mut self, key: &str) -> BTreeMap<String, Secret> {
        let Some(map) = self.value(key).map(|value| value.as_object().cloned()) else {
            return BTreeMap::new();
        };
        let Some(map) = map else {
            self.warn(key, "is not an object; ignored");
            return BTreeMap::new();
        };
        let mut values = BTreeMap::new();
        for (name, value) in map {
            match scalar(&value) {
                Some(text) => {
                    values.insert(name, (self.convert)(&text).into());
                }
                None if value.is_null() => {}
                None => self.warn(key, &format!("has no string for `{name}`; ignored")),
            }
        }
        values
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let flag = self.value(key)?.as_bool();
        if flag.is_none() {
            self.warn(key, "is neither true nor false; ignored");
        }
        flag
    }

    /// Returns the reason why the entry disables its server, or `None` if it does not. Each of the keys `disabled` and
    /// `enabled` has the same meaning in all clients. A value that is neither true nor false also disables the server.
    fn disabled_reason(&mut self) -> Option<String> {
        for (key, off) in [("disabled", true), ("enabled", false)] {
            let Some(value) = self.value(key) else { continue };
            match parse_flag(value) {
                Some(flag) if flag == off => return Some(format!("`{key}` is {flag}")),
                Some(_) => {}
                None => {
                    self.warn(key, "is neither true nor false: the server stays off");
                    return Some(format!("`{key}` cannot be read"));
                }
            }
        }
        None
    }

    /// Reads a duration and converts it to seconds. `unit` is the number of seconds in one unit of the client's file.
    pub(super) fn seconds(
        &mut self,
        key: &str,
        unit: f64,
        range: &RangeInclusive<f64>,
    ) -> Option<f64> {
        let number = self.value(key)?.as_f64();
        let Some(number) = number else {
            self.warn(key, "is not a number; ignored");
            return None;
        };
        let seconds = number * unit;
        let used = seconds.clamp(*range.start(), *range.end());
        if (used - seconds).abs() > 0.0 {
            self.warn(key, &format!("is out of range; {used} seconds are used"));
        }
        Some(used)
    }

    /// Builds a stdio transport from `command`, `args`, `env` and `cwd`. Adds a warning and returns `None` if `command`
    /// is missing or is not a string.
    pub(super) fn stdio(&mut self) -> Option<Transport> {
        self.stdio_from("command", "env")
    }

    /// Builds a stdio transport from the keys that a client uses for the command and the variables.
    pub(super) fn stdio_from(&mut self, command_key: &str, env_key: &str) -> Option<Transport> {
        let Some(command) = self.string(command_key) else {
            if !self.has(command_key) {
                self.warn(command_key, "is missing, and so is `url`; the server is left out");
            }
            return None;
        };
        let args = self.raw_strings("args").unwrap_or_default();
        Some(Transport::Stdio {
            command,
            args: args.iter().map(|arg| (self.convert)(arg).into()).collect(),
            env: self.map(env_key),
            cwd: self.string("cwd").filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
        })
    }

    /// Builds an HTTP transport from the URL under `key`, from `headers` and from the OAuth settings. Adds a warning
    /// and returns `None` if the URL is missing or is not a string.
    pub(super) fn http(&mut self, key: &str, variant: HttpVariant) -> Option<Transport> {
        if !self.has(key) {
            self.warn(key, "is missing; the server is left out");
        }
        let url = self.string(key)?;
        Some(Transport::Http { url, variant, headers: self.map("headers"), oauth: self.oauth() })
    }

    /// Reads OAuth settings from `oauth`, or from Cursor's `auth`.
    fn oauth(&mut self) -> OAuth {
        let table = ["oauth", "auth"].iter().find_map(|key| self.value(key)?.as_object());
        let Some(table) = table else { return OAuth::default() };
        let text =
            |keys: &[&str]| keys.iter().find_map(|key| table.get(*key)?.as_str()).map(self.convert);
        let scopes = table.get("scopes").or_else(|| table.get("scope"));
        let scopes = match scopes {
            Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
            Some(Value::Array(list)) => list.iter().filter_map(scalar).collect(),
            _ => Vec::new(),
        };
        OAuth {
            trusted_hosts: Vec::new(),
            client_id: text(&["clientId", "client_id", "CLIENT_ID"]),
            client_secret: text(&["clientSecret", "client_secret", "CLIENT_SECRET"])
                .map(Secret::from),
            scopes,
        }
    }

    /// Sets a server's `allow` and `deny` from the lists under these keys.
    pub(super) fn set_tool_filter(&mut self, server: &mut Server, allow: &str, deny: &str) {
        // In Gemini CLI an entry may be `tool(argument)`. Only the tool's name is kept.
        let bare = |tool: String| tool.split('(').next().unwrap_or_default().trim().to_owned();
        let mut list = |key: &str| -> Option<Vec<String>> {
            Some(
                self.raw_strings(key)?
                    .into_iter()
                    .map(bare)
                    .filter(|tool| !tool.is_empty())
                    .collect(),
            )
        };
        let (allowed, denied) = (list(allow), list(deny));
        server.deny = denied.unwrap_or_default();
        match allowed {
            // In the clients that have such a list, an empty list allows no tools. In our config it would allow all
            // tools, so all tools are denied instead.
            Some(tools) if tools.is_empty() => server.deny = vec!["*".into()],
            Some(tools) => server.allow = tools,
            None => {}
        }
    }

    /// Warns about keys with which a client lets tools run without the user's approval. The gateway ignores these keys.
    pub(super) fn warn_approvals(&mut self, keys: &[&str]) {
        for key in keys {
            let is_set = match self.value(key) {
                Some(Value::Array(list)) => !list.is_empty(),
                Some(Value::Bool(flag)) => *flag,
                _ => false,
            };
            if is_set {
                self.warn(key, "is ignored: tool approvals stay with your client");
            }
        }
    }
}

/// Parses a boolean, which may also be a string such as `yes` or the number 0 or 1. Returns `None` for any other value.
pub(super) fn parse_flag(value: &Value) -> Option<bool> {
    let word = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::String(word) => word.trim().to_ascii_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    match word.as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Whether a server is Toolcrib itself, started directly, started through a runner such as `npx` or a shell, or reached
/// at its own URL. An entry named `toolcrib` may use any port of this machine, because `http.listen` may set any port.
fn is_toolcrib(entry: &str, transport: &Transport) -> bool {
    let is_name = |text: &str| {
        let name = Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.rsplit('\\').next().unwrap_or_default();
        let name = name.split('@').next().unwrap_or_default();
        name.strip_suffix(".exe").unwrap_or(name) == "toolcrib"
    };
    match transport {
        Transport::Stdio { command, args, .. } => {
            // An argument `toolcrib` may be the name of a folder that is passed to another server, so it counts as our
            // own command only if `mcp` follows.
            let runs = |pair: &[&str]| is_name(pair[0]) && pair[1] == "mcp";
            // A shell gets the whole command in one argument.
            let words: Vec<&str> =
                args.iter().flat_map(|arg| arg.expose().split_whitespace()).collect();
            is_name(command) || words.windows(2).any(runs)
        }
        Transport::Http { url, .. } => {
            url::is_local(url, Some(HttpSettings::default().listen.port()), "/mcp")
                || entry == "toolcrib" && url::is_local(url, None, "/mcp")
        }
    }
}
