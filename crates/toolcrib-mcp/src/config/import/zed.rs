//! Imports from Zed: `context_servers` in `settings.json`, with timeouts in seconds. Zed does not expand references.

use serde_json::Value;

use super::super::{HttpVariant, Server, check};
use super::entry::{ImportBuilder, ServerEntry};
use super::mcp_servers;

pub(super) fn read(value: &Value, builder: &mut ImportBuilder) {
    let Some(servers) = value.get("context_servers") else { return };
    let mut servers = servers.clone();
    // In earlier versions of Zed, `command` is an object with the path, the arguments and the variables.
    for server in servers.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        let Some(server) = server.as_object_mut() else { continue };
        let Some(Value::Object(command)) = server.get("command").cloned() else { continue };
        for (key, value) in command {
            let key = if key == "path" { "command".to_owned() } else { key };
            server.insert(key, value);
        }
    }
    builder.add_servers("context_servers", Some(&servers), &mcp_servers::literal, server);
}

fn server(entry: &mut ServerEntry<'_>) -> Option<Server> {
    let transport = if entry.has("url") && !entry.has("command") {
        entry.http("url", HttpVariant::Auto)?
    } else if entry.has("command") {
        entry.stdio()?
    } else {
        // Such an entry contains only the settings of a server that is part of one of Zed's extensions.
        entry.warn(
            "command",
            "is missing, because an extension of Zed runs the server; it cannot be imported",
        );
        return None;
    };
    let mut server = Server::new(transport);
    if let Some(seconds) = entry.seconds("timeout", 1.0, &check::CALL_TIMEOUT) {
        server.call_timeout = seconds;
    }
    Some(server)
}
