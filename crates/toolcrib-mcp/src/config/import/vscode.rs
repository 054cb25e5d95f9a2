//! Imports from VS Code: `servers` in `mcp.json`, or `mcp.servers` in `settings.json`, with inputs that VS Code asks
//! the user to enter.

use std::path::Path;

use serde_json::Value;

use super::super::{Server, Transport};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    let inner = value.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = value.get("servers").or(inner).or_else(|| value.get("mcp.servers"));
    builder.add_servers("servers", servers, &mcp_servers::without_files, server);
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let server = mcp_servers::server(entry, "url")?;
    if entry.flag("sandboxEnabled") == Some(true) {
        entry.warn("sandboxEnabled", "is ignored: the server runs without a sandbox");
        entry.set_client_only("runs in a sandbox of VS Code");
    }
    for key in asking(&server.transport) {
        entry.set_client_only("asks for an input, which only VS Code can do");
        entry.warn(
            &key,
            "asks for an input: set an environment variable and write `${NAME}` instead",
        );
    }
    Some(server)
}

/// Returns where a server's entry refers to an input: the key, or the name of the variable or the header.
fn asking(transport: &Transport) -> Vec<String> {
    let texts: Vec<(&str, &str)> = match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let cwd = cwd.as_deref().and_then(Path::to_str).unwrap_or_default();
            let args = args.iter().map(|arg| ("args", arg.expose()));
            let env = env.iter().map(|(name, value)| (&**name, value.expose()));
            [("command", &**command), ("cwd", cwd)].into_iter().chain(args).chain(env).collect()
        }
        Transport::Http { url, headers, .. } => {
            let headers = headers.iter().map(|(name, value)| (&**name, value.expose()));
            [("url", &**url)].into_iter().chain(headers).collect()
        }
    };
    let asking = texts.into_iter().filter(|(_, text)| text.contains("${input:"));
    asking.map(|(key, _)| key.to_owned()).collect()
}
