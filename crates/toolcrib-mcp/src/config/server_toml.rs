//! Writes a server as a table of `toolcrib.toml`. Only values that differ from the defaults are written.
//!
//! This does not use serde's derive, for two reasons. `Secret` does not implement `Serialize`, so that no secret is
//! written by accident, and the keys should be in the order in which people read them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{
    HttpVariant, IdleTimeout, Server, ShareSetting, StartPolicy, ToolDefault, ToolOverride,
    Transport,
};
use crate::Secret;
use toolcrib_core::DeferPolicy;

/// Writes the table of one server, **with its secrets**. Parsing the table returns the same server.
pub fn server_toml(name: &str, server: &Server) -> String {
    let mut out = format!("[servers.{}]\n", key(name));
    // Writing to a string cannot fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name} = {value}");
    };
    match &server.transport {
        Transport::Stdio { command, args, env, cwd } => {
            line("command", text(command));
            if !args.is_empty() {
                line("args", list(args.iter().map(Secret::expose)));
            }
            if !env.is_empty() {
                line("env", secrets(env));
            }
            if let Some(cwd) = cwd {
                line("cwd", text(&cwd.to_string_lossy()));
            }
        }
        Transport::Http { url, variant, headers, oauth } => {
            line("url", text(url));
            if *variant != HttpVariant::default() {
                line("transport", text(variant.name()));
            }
            if !headers.is_empty() {
                line("headers", secrets(headers));
            }
            let mut keys = Vec::new();
            if let Some(id) = &oauth.client_id {
                keys.push(format!("client_id = {}", text(id)));
            }
            if let Some(secret) = &oauth.client_secret {
                keys.push(format!("client_secret = {}", text(secret.expose())));
            }
            if !oauth.scopes.is_empty() {
                keys.push(format!("scopes = {}", list(oauth.scopes.iter().map(String::as_str))));
            }
            if !oauth.trusted_hosts.is_empty() {
                let hosts = list(oauth.trusted_hosts.iter().map(String::as_str));
                keys.push(format!("trusted_hosts = {hosts}"));
            }
            if !keys.is_empty() {
                line("oauth", format!("{{ {} }}", keys.join(", ")));
            }
        }
    }
    write_options(server, &mut line);
    for (tool, change) in &server.tools {
        write_tool(&mut out, &format!("servers.{}.tools.{}", key(name), key(tool)), change);
    }
    out
}

/// Writes the table of one tool.
fn write_tool(out: &mut String, table: &str, change: &ToolOverride) {
    let _ = writeln!(out, "[{table}]");
    for (name, value) in [("name", &change.name), ("description", &change.description)] {
        if let Some(value) = value {
            let _ = writeln!(out, "{name} = {}", text(value));
        }
    }
    if !change.hide_parameters.is_empty() {
        let hidden = list(change.hide_parameters.iter().map(String::as_str));
        let _ = writeln!(out, "hide_parameters = {hidden}");
    }
    if let Some(read_only) = change.read_only {
        let _ = writeln!(out, "read_only = {read_only}");
    }
    if !change.defaults.is_empty() {
        let pair = |(name, default): &(String, ToolDefault)| {
            format!("{} = {}", key(name), toml_value(default.expose()))
        };
        let pairs: Vec<String> = change.defaults.iter().map(pair).collect();
        let _ = writeln!(out, "defaults = {{ {} }}", pairs.join(", "));
    }
}

/// Writes a JSON value that was read from TOML, so it contains no `null`.
fn toml_value(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let pair =
                |(name, value): (&String, &Value)| format!("{} = {}", key(name), toml_value(value));
            format!("{{ {} }}", fields.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// Writes all keys except those of the transport.
#[expect(clippy::float_cmp, reason = "a default is exactly this number")]
fn write_options(server: &Server, line: &mut impl FnMut(&str, String)) {
    let plain = Server::new(server.transport.clone());
    if server.enabled != plain.enabled {
        line("enabled", server.enabled.to_string());
    }
    if let Some(prefix) = &server.prefix {
        line("prefix", text(prefix));
    }
    for (name, patterns) in [("allow", &server.allow), ("deny", &server.deny)] {
        if !patterns.is_empty() {
            line(name, list(patterns.iter().map(String::as_str)));
        }
    }
    if let Some(defer) = server.defer {
        let word = match defer {
            DeferPolicy::Never => "never",
            DeferPolicy::Automatic => "automatic",
            DeferPolicy::Always => "always",
        };
        line("defer", text(word));
    }
    if !server.always_load.is_empty() {
        line("always_load", list(server.always_load.iter().map(String::as_str)));
    }
    if server.start_timeout != plain.start_timeout {
        line("start_timeout", number(server.start_timeout));
    }
    if server.call_timeout != plain.call_timeout {
        line("call_timeout", number(server.call_timeout));
    }
    if !server.timeouts.is_empty() {
        let pairs: Vec<String> = server
            .timeouts
            .iter()
            .map(|(pattern, seconds)| format!("{} = {}", key(pattern), number(*seconds)))
            .collect();
        line("timeouts", format!("{{ {} }}", pairs.join(", ")));
    }
    if server.parallel != plain.parallel {
        line("parallel", server.parallel.to_string());
    }
    if server.trust_annotations != plain.trust_annotations {
        line("trust_annotations", server.trust_annotations.to_string());
    }
    if let Some(start) = server.start {
        line("start", text(if start == StartPolicy::Eager { "eager" } else { "lazy" }));
    }
    match server.idle {
        Some(IdleTimeout::Never) => line("idle", text("never")),
        Some(IdleTimeout::After(seconds)) => line("idle", number(seconds)),
        None => {}
    }
    if let Some(share) = server.share {
        line("share", text(if share == ShareSetting::Session { "session" } else { "all" }));
    }
}

fn secrets(values: &BTreeMap<String, Secret>) -> String {
    let pairs: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{} = {}", key(name), text(value.expose())))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(text).collect();
    format!("[{}]", texts.join(", "))
}

/// Formats a number, without a decimal point if it is an integer.
fn number(value: f64) -> String {
    format!("{value}")
}

fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { text(name) }
}

fn text(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
