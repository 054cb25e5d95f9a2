//! Masks the secrets of a server, for printing.

use std::collections::BTreeMap;

use toolcrib_server::mask::{arguments, url, value};

use super::{OAuth, Server, Transport};
use crate::Secret;

/// Returns the server with `***` in place of every value that could be a secret.
pub fn masked(server: &Server) -> Server {
    let values = |values: &BTreeMap<String, Secret>| {
        values.iter().map(|(name, secret)| (name.clone(), value(secret))).collect()
    };
    let transport = match &server.transport {
        Transport::Stdio { command, args, env, cwd } => Transport::Stdio {
            command: command.clone(),
            args: arguments(args),
            env: values(env),
            cwd: cwd.clone(),
        },
        Transport::Http { url: address, variant, headers, oauth } => Transport::Http {
            url: url(address),
            variant: *variant,
            headers: values(headers),
            oauth: OAuth {
                client_secret: oauth.client_secret.as_ref().map(value),
                ..oauth.clone()
            },
        },
    };
    let mut server = Server { transport, ..server.clone() };
    for tool in server.tools.values_mut() {
        for (_, value) in &mut tool.defaults {
            *value = value.masked();
        }
    }
    server
}
