//! Calls the same server directly and through the gateway, to compare the results.

use serde_json::Value;

use super::client::{Client, Era, Exchange};
use super::gateway::{DEFERRED, Home, HttpServerProcess, connect, server, wait_until_ready};
use super::{Program, assert_same};

/// Maximum number of attempts to get the same direct response twice. Some servers' responses contain the time, so two
/// of them may differ.
const MAX_ATTEMPTS: usize = 20;

/// Config lines with longer timeouts for real servers. On a busy machine, these servers may start more slowly than the
/// gateway allows by default, and would be restarted again and again.
const PATIENT: &str = "start_timeout = 600\ncall_timeout = 600\n";

/// Two clients: one is connected to the server directly, the other to a gateway that runs a second process of the
/// server.
pub(crate) struct Pair {
    pub(crate) direct: Client,
    pub(crate) through: Client,
    name: String,
    connection: (&'static str, Era),
    _gateway: Option<HttpServerProcess>,
    _homes: [Home; 2],
}

impl Pair {
    /// Starts both clients. `direct` starts the one that is connected to the server directly.
    pub(crate) fn new(
        name: &str,
        program: &Program,
        connection: (&'static str, Era),
        direct: fn(&Program, &Home) -> Client,
    ) -> Self {
        Self::with_config(name, &server(name, program, PATIENT), program, connection, direct)
    }

    /// Starts both clients. The gateway's server has this section of the config.
    pub(crate) fn with_config(
        name: &str,
        section: &str,
        program: &Program,
        connection: (&'static str, Era),
        direct: fn(&Program, &Home) -> Client,
    ) -> Self {
        let alone = Home::new("");
        let home = Home::new(&format!("{DEFERRED}{section}"));
        let direct = direct(program, &alone);
        let (mut through, gateway) = connect(&home, connection);
        wait_until_ready(&mut through);
        let name = name.to_owned();
        Self { direct, through, name, connection, _gateway: gateway, _homes: [alone, home] }
    }

    /// Calls a tool directly and through the gateway. The responses must be the same, and so must the messages received
    /// in the meantime.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) {
        let wire = format!("{}__{tool}", self.name);
        let (through, direct) = self.both(
            |direct| direct.call(tool, arguments),
            |through| through.bridge(&wire, arguments),
        );
        let direct = attributed(direct, &self.name);
        assert_same(&through, &direct, &format!("{:?}: {tool} {arguments}", self.connection));
    }

    /// Sends a request directly and through the gateway, and returns both responses. `direct` and `through` are the
    /// parameters, because names differ between the server and the gateway.
    pub(crate) fn ask(&mut self, method: &str, direct: &Value, through: &Value) -> (Value, Value) {
        self.both(|client| client.ask(method, direct), |client| client.ask(method, through))
    }

    /// Sends a request directly, then through the gateway, then directly again. Some responses contain the time, so if
    /// the two direct responses differ, all three requests are repeated.
    fn both(
        &mut self,
        mut direct: impl FnMut(&mut Client) -> Exchange,
        mut through: impl FnMut(&mut Client) -> Exchange,
    ) -> (Value, Value) {
        for _ in 0..MAX_ATTEMPTS {
            let before = plain(direct(&mut self.direct));
            let between = plain(through(&mut self.through));
            if before == plain(direct(&mut self.direct)) {
                return (between, before);
            }
        }
        panic!("`{}` never answers the same twice", self.name);
    }
}

/// Adds the server's name to the questions in a direct exchange, as the gateway does.
fn attributed(mut exchange: Value, server: &str) -> Value {
    for message in exchange["heard"].as_array_mut().into_iter().flatten() {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let params = &mut message["params"];
        match &*method {
            "elicitation/create" => {
                let host = params["url"].as_str().and_then(|url| url.split('/').nth(2));
                let link = host.map_or_else(String::new, |host| format!(", link to {host}"));
                let question = params["message"].as_str().unwrap();
                params["message"] = format!("[server \"{server}\"{link}] {question}").into();
            }
            "sampling/createMessage" => {
                let origin = format!("[server \"{server}\"] requests this completion.");
                let prompt = match params["systemPrompt"].as_str() {
                    Some(own_prompt) => format!("{origin}\n\n{own_prompt}"),
                    None => origin,
                };
                params["systemPrompt"] = prompt.into();
            }
            _ => {}
        }
    }
    exchange
}

/// Returns the part of an exchange that is compared. Fields that only the newer protocol has are removed, and so are
/// messages that belong to no call.
fn plain(mut exchange: Exchange) -> Value {
    if let Some(result) = exchange.answer.get_mut("result").and_then(Value::as_object_mut) {
        for mark in ["resultType", "ttlMs", "cacheScope"] {
            result.remove(mark);
        }
    }
    exchange.messages.retain(|message| {
        let method = message["method"].as_str().unwrap();
        !method.ends_with("list_changed") && !method.ends_with("/message") && method != "roots/list"
    });
    exchange.value()
}
