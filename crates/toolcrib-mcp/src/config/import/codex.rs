//! Imports from Codex: `[mcp_servers]` in `config.toml`. Codex does not expand references such as `${NAME}`. Separate
//! keys name environment variables instead.

use serde_json::Value;
use toolcrib_server::expand::is_variable_name;

use super::super::{HttpVariant, Server, Transport, check};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    builder.add_servers("mcp_servers", value.get("mcp_servers"), &mcp_servers::literal, server);
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let transport = if entry.has("url") && !entry.has("command") {
        http(entry)?
    } else {
        let mut transport = entry.stdio()?;
        if let Transport::Stdio { env, .. } = &mut transport {
            for name in variables(entry) {
                // Codex ignores a variable that is not set, so the reference has an empty string as its default.
                let reference = format!("${{{name}:-}}").into();
                env.entry(name).or_insert(reference);
            }
        }
        transport
    };
    let mut server = Server::new(transport);
    server.parallel = entry.flag("supports_parallel_tool_calls").unwrap_or(true);
    let (key, unit) = if entry.has("startup_timeout_sec") {
        ("startup_timeout_sec", 1.0)
    } else {
        ("startup_timeout_ms", 0.001)
    };
    let start = entry.seconds(key, unit, &check::START_TIMEOUT);
    server.start_timeout = start.unwrap_or(server.start_timeout);
    if let Some(seconds) = entry.seconds("tool_timeout_sec", 1.0, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    entry.set_tool_filter(&mut server, "enabled_tools", "disabled_tools");
    Some(server)
}

fn http(entry: &mut ServerEntry<'_>) -> Option<Transport> {
    let mut transport = entry.http("url", HttpVariant::Auto)?;
    let literal = entry.map("http_headers");
    let named = entry.map("env_http_headers");
    let scopes = entry.raw_strings("scopes").unwrap_or_default();
    let bearer = entry.raw_string("bearer_token_env_var");
    if let Transport::Http { headers, oauth, .. } = &mut transport {
        *headers = literal;
        for (header, name) in named {
            let name = name.expose();
            if is_variable_name(name) {
                headers.insert(header, format!("${{{name}}}").into());
            } else {
                entry.warn("env_http_headers", "does not name a variable; ignored");
            }
        }
        match bearer {
            Some(name) if is_variable_name(&name) => {
                headers.insert("Authorization".into(), format!("Bearer ${{{name}}}").into());
            }
            Some(_) => entry.warn("bearer_token_env_var", "does not name a variable; ignored"),
            None => {}
        }
        if oauth.scopes.is_empty() {
            oauth.scopes = scopes;
        }
    }
    Some(transport)
}

/// Returns the names of the environment variables under `env_vars`. Each entry is a name, or a table with a `name`.
fn variables(entry: &mut ServerEntry<'_>) -> Vec<String> {
    let list = entry.value("env_vars").and_then(Value::as_array).cloned().unwrap_or_default();
    let name = |one: &Value| one.as_str().or_else(|| one.get("name")?.as_str()).map(str::to_owned);
    let names: Vec<String> =
        list.iter().filter_map(name).filter(|name| is_variable_name(name)).collect();
    if names.len() < list.len() {
        entry.warn("env_vars", "has entries that do not name a variable; they are ignored");
    }
    names
}
