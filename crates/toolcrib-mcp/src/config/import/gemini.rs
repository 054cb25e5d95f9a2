//! Imports from Gemini CLI: servers under `mcpServers`, with `httpUrl`, lists of tools, timeouts in milliseconds, and
//! `$NAME` for variables.

use serde_json::Value;

use super::super::{HttpVariant, Server, Transport, check};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    let convert = |text: &str| convert_references(&mcp_servers::variables_only(text));
    builder.add_servers("mcpServers", value.get("mcpServers"), &convert, server);
    // The file may also contain a list of the servers to use and a list of the servers to leave out.
    let names = |list: Option<&Value>| {
        let list = list?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
    };
    let mcp = |key: &str| value.get("mcp").and_then(|mcp| mcp.get(key));
    // `excludeMCPServers`, and `allowMCPServers` below, are the keys that earlier versions of Gemini CLI used.
    for (key, list) in
        [("mcp.excluded", mcp("excluded")), ("excludeMCPServers", value.get("excludeMCPServers"))]
    {
        for name in names(list).into_iter().flatten() {
            builder.disable(&name, format!("`{key}` names it"));
        }
    }
    for (key, list) in
        [("mcp.allowed", mcp("allowed")), ("allowMCPServers", value.get("allowMCPServers"))]
    {
        let Some(allowed) = names(list) else { continue };
        let others: Vec<String> =
            builder.servers.keys().filter(|name| !allowed.contains(name)).cloned().collect();
        for name in others {
            builder.disable(&name, format!("`{key}` does not name it"));
        }
    }
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let transport = transport(entry)?;
    let mut server = Server::new(transport);
    if let Some(seconds) = entry.seconds("timeout", 0.001, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    entry.set_tool_filter(&mut server, "includeTools", "excludeTools");
    entry.warn_approvals(&["trust"]);
    if entry.has("authProviderType") {
        entry.warn("authProviderType", "is not supported: use `oauth` to log in");
        entry.set_client_only("signs in with `authProviderType`, which only Gemini CLI supports");
    }
    Some(server)
}

/// Builds the transport. As in Gemini CLI, a URL takes precedence over a command, and `httpUrl` over `url`.
fn transport(entry: &mut ServerEntry<'_>) -> Option<Transport> {
    if entry.has("httpUrl") {
        return entry.http("httpUrl", HttpVariant::Auto);
    }
    if !entry.has("url") {
        return entry.stdio();
    }
    let variant = mcp_servers::transport_kind(entry)?.http_variant();
    entry.http("url", variant)
}

/// Converts `$NAME` to a reference in our syntax. If there is no such variable, the reference expands to `$NAME` again.
fn convert_references(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &from[1..end.map_or(from.len(), |end| end + 1)];
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            // A variable may be called `file` or `input`. Without `env:`, the reference would be to a file or an input.
            out.push_str(if matches!(name, "file" | "input") { "${env:" } else { "${" });
            out.push_str(name);
            out.push_str(":-$");
            out.push_str(name);
            out.push('}');
        } else {
            out.push('$');
            out.push_str(name);
        }
        rest = &from[1 + name.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::convert_references;

    #[test]
    fn variables_become_references_that_default_to_themselves() {
        for (text, expected) in [
            ("$TOKEN", "${TOKEN:-$TOKEN}"),
            ("Bearer $A_1-b", "Bearer ${A_1:-$A_1}-b"),
            ("${TOKEN}", "${TOKEN}"),
            ("costs 5$ or $5", "costs 5$ or $5"),
            ("$", "$"),
            ("$file", "${env:file:-$file}"),
            ("$${file:/a}", "$${file:/a}"),
        ] {
            assert_eq!(convert_references(text), expected);
        }
    }
}
