//! Imports from VS Code: `servers` in `mcp.json`, or `mcp.servers` in `settings.json`, with inputs that VS Code asks
//! the user to enter.

use serde_json::Value;

use super::super::{Server, Transport};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;
use crate::Secret;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    let inner = value.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = value.get("servers").or(inner).or_else(|| value.get("mcp.servers"));
    builder.add_servers("servers", servers, &mcp_servers::without_files, server);
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let server = mcp_servers::server(entry, "url")?;
    let asks = |values: Vec<(&str, &Secret)>| -> Vec<String> {
        let asking = values.into_iter().filter(|(_, value)| value.expose().contains("${input:"));
        asking.map(|(key, _)| key.to_owned()).collect()
    };
    let asking = match &server.transport {
        Transport::Stdio { args, env, .. } => {
            let args = args.iter().map(|arg| ("args", arg));
            asks(args.chain(env.iter().map(|(name, value)| (&**name, value))).collect())
        }
        Transport::Http { headers, .. } => {
            asks(headers.iter().map(|(name, value)| (&**name, value)).collect())
        }
    };
    for key in asking {
        entry.set_client_only("asks for an input, which only VS Code can do");
        entry.warn(
            &key,
            "asks for an input: set an environment variable and write `${NAME}` instead",
        );
    }
    Some(server)
}
