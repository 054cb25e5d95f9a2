//! Imports from opencode: servers under `mcp`, with commands as lists, timeouts in milliseconds, and the references
//! `{env:NAME}` and `{file:PATH}`.

use std::path::Path;

use serde_json::Value;
use toolcrib_server::expand::is_variable_name;

use super::super::{HttpVariant, Server, Transport, check};
use super::ImportSource;
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers::{self, TransportKind};

pub(super) fn read(value: &Value, source: &ImportSource<'_>, builder: &mut ImportBuilder) {
    let folder = source.file.parent().unwrap_or(Path::new(""));
    let convert = |text: &str| convert_references(text, folder);
    let mcp = value.get("mcp");
    // In the second version of the format, the servers are one level deeper, under `servers`.
    let deeper = mcp.and_then(|mcp| mcp.get("servers")).filter(|servers| {
        servers.as_object().is_some_and(|all| all.values().all(Value::is_object))
            && servers.get("type").is_none()
    });
    builder.add_servers("mcp", deeper.or(mcp), &convert, |entry| server(entry, &convert));
}

fn server(entry: &mut ServerEntry<'_>, convert: &dyn Fn(&str) -> String) -> Option<Server> {
    let transport = match mcp_servers::transport_kind(entry)? {
        TransportKind::Http(variant) => entry.http("url", variant)?,
        TransportKind::Unspecified if entry.has("url") => entry.http("url", HttpVariant::Auto)?,
        _ => stdio(entry, convert)?,
    };
    let mut server = Server::new(transport);
    set_timeouts(entry, &mut server);
    Some(server)
}

fn stdio(entry: &mut ServerEntry<'_>, convert: &dyn Fn(&str) -> String) -> Option<Transport> {
    let words = entry.raw_strings("command").unwrap_or_default();
    let mut words = words.iter().map(|word| convert(word));
    let Some(command) = words.next() else {
        // The command may be missing because the entry only enables or disables a server that the user's organisation
        // defines.
        entry.warn("command", "is missing; the server is left out");
        return None;
    };
    let args = words.map(Into::into).collect();
    let cwd = entry.string("cwd").map(Into::into);
    Some(Transport::Stdio { command, args, env: entry.map("environment"), cwd })
}

/// Sets the timeouts. `timeout` is either one number, for calls, or an object with separate numbers for startup and
/// calls.
fn set_timeouts(entry: &mut ServerEntry<'_>, server: &mut Server) {
    let Some(parts) = entry.value("timeout").and_then(Value::as_object).cloned() else {
        if let Some(seconds) = entry.seconds("timeout", 0.001, &check::CALL_TIMEOUT) {
            server.call_timeout = seconds;
        }
        return;
    };
    let time = |key: &str| parts.get(key).and_then(Value::as_f64).map(|time| time * 0.001);
    if let Some(seconds) = time("startup") {
        server.start_timeout =
            seconds.clamp(*check::START_TIMEOUT.start(), *check::START_TIMEOUT.end());
    }
    if let Some(seconds) = time("request") {
        server.call_timeout =
            seconds.clamp(*check::CALL_TIMEOUT.start(), *check::CALL_TIMEOUT.end());
    }
}

/// Converts `{env:NAME}` and `{file:PATH}`. A relative path is relative to the config file's folder.
fn convert_references(text: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        let inner = from.find('}').map(|end| &from[1..end]);
        let reference = inner.and_then(|inner| {
            if let Some(path) = inner.strip_prefix("file:") {
                let is_complete = path.starts_with("~/") || Path::new(path).is_absolute();
                let path = if is_complete {
                    path.into()
                } else {
                    folder.join(path.trim_start_matches("./"))
                };
                return Some(format!("${{file:{}}}", path.display()));
            }
            let name = inner.strip_prefix("env:").filter(|name| is_variable_name(name))?;
            Some(format!("${{{name}}}"))
        });
        if let (Some(reference), Some(inner)) = (reference, inner) {
            // A `$` before the reference is dropped, so that `${env:NAME}`, the syntax of other clients, is converted
            // as well.
            out.push_str(before.strip_suffix('$').unwrap_or(before));
            out.push_str(&reference);
            rest = &from[inner.len() + 2..];
        } else {
            out.push_str(before);
            if before.ends_with('$') {
                out.push('$');
            }
            out.push('{');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::convert_references;

    #[test]
    fn references_are_converted() {
        for (text, expected) in [
            ("{env:TOKEN}", "${TOKEN}"),
            ("Bearer {env:A}{env:B}", "Bearer ${A}${B}"),
            ("${env:TOKEN}", "${TOKEN}"),
            ("{file:./key}", "${file:/etc/oc/key}"),
            ("{file:~/key}", "${file:~/key}"),
            ("{file:/run/key}", "${file:/run/key}"),
            ("${HOME}", "$${HOME}"),
            ("{env:no name} {", "{env:no name} {"),
        ] {
            assert_eq!(convert_references(text, Path::new("/etc/oc")), expected);
        }
    }
}
