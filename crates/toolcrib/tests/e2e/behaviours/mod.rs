//! Tests of every behaviour in docs/behaviours.md that an MCP client can see, through `toolcrib mcp`.
//!
//! A test defines the gateway's config and its servers' tools; then it lists, searches and calls like a client, and
//! checks the results.

mod claude_code;
mod everruns;
mod everruns_050;
mod hermes;
mod opencode;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::client::{Client, Era};
use crate::support::gateway::{Home, server};
use crate::support::wire::Wire;
use crate::support::{Program, eventually, testkit_program};

const CHANGED: &str = "notifications/tools/list_changed";

/// Defines a tool whose parameters are all strings. The first `required` of them are required.
fn tool(name: &str, description: &str, parameters: &[&str], required: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let schema =
        json!({"type": "object", "properties": properties, "required": parameters[..required]});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// Defines tools without parameters, each by its name and description.
fn plain(tools: &[(&str, &str)]) -> Vec<Value> {
    tools.iter().map(|(name, words)| tool(name, words, &[], 0)).collect()
}

/// Defines `count` tools with one parameter each.
fn numbered(count: usize, stem: &str, description: &str) -> Vec<Value> {
    (0..count).map(|at| tool(&format!("{stem}{at}"), description, &["unit"], 1)).collect()
}

/// A gateway that is not running yet: a home folder with the files of its servers, its config file, and its flags.
struct Setup {
    home: Home,
    file: PathBuf,
    flags: Vec<String>,
}

impl Setup {
    /// Writes a config in Toolcrib's own format, and servers with their tools. Each server is given by its name. The
    /// name may be followed by a line break and further lines of the server's section.
    fn toml(text: &str, servers: &[(&str, &[Value])]) -> Self {
        let home = Home::new("");
        let mut text = text.to_owned();
        for (section, tools) in servers {
            let (name, more) = section.split_once('\n').unwrap_or((section, ""));
            text.push('\n');
            text.push_str(&server(name, &program(&home, name, tools), more));
        }
        home.configure(&text);
        Self { file: home.path().join("toolcrib.toml"), home, flags: Vec::new() }
    }

    /// Writes a config that names only a preset, and servers with their tools.
    fn preset(preset: &str, servers: &[(&str, &[Value])]) -> Self {
        Self::toml(&format!("preset = \"{preset}\""), servers)
    }

    /// Writes another system's config file. `text` returns its content, given the command of each server.
    fn file(
        name: &str,
        servers: &[(&str, &[Value])],
        text: impl FnOnce(&[(String, Program)]) -> String,
    ) -> Self {
        let home = Home::new("");
        let commands: Vec<(String, Program)> = servers
            .iter()
            .map(|(server, tools)| ((*server).to_owned(), program(&home, server, tools)))
            .collect();
        let file = home.path().join(name);
        fs::write(&file, text(&commands)).unwrap();
        Self { home, file, flags: Vec::new() }
    }

    /// Writes a JSON file that contains `keys`, and the servers under `mcpServers`.
    fn json(name: &str, mut keys: Value, servers: &[(&str, &[Value])]) -> Self {
        Self::file(name, servers, |commands| {
            for (server, command) in commands {
                keys["mcpServers"][server]["command"] = command[0].clone().into();
                keys["mcpServers"][server]["args"] = command[1..].into();
            }
            keys.to_string()
        })
    }

    fn flags(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(ToString::to_string).collect();
        self
    }

    fn command(&self, name: &str) -> Program {
        let binary = env!("CARGO_BIN_EXE_toolcrib");
        let file = self.file.to_str().unwrap();
        let mut program = [binary, name, "--config", file].map(str::to_owned).to_vec();
        program.extend(self.flags.iter().cloned());
        program
    }

    /// Runs `doctor` and returns the reason that it gives for deferring tools or not.
    fn doctor(&self) -> String {
        let program = self.command("doctor");
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg("--json").env("HOME", self.home.path());
        let ran = command.env("XDG_STATE_HOME", self.home.path().join("state")).output().unwrap();
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
        answer["decision"]["reason"].as_str().unwrap().to_owned()
    }

    /// Starts the gateway, connects a client, and waits until every server has answered.
    fn start(self) -> Session {
        self.start_as("test", Era::Older)
    }

    fn start_as(self, name: &str, era: Era) -> Session {
        let mut session = self.connect(name, era);
        session.wait_until_connected();
        session.changes = 0;
        session
    }

    /// Starts the gateway and connects a client, without waiting for the servers.
    fn connect(self, name: &str, era: Era) -> Session {
        let wire = Wire::stdio(&self.command("mcp"), self.home.path());
        Session { client: Client::named(name, wire, era), setup: self, changes: 0 }
    }
}

/// Writes `tools` to a file named after the server, and returns the command of a server that reads its tools from this
/// file.
fn program(home: &Home, name: &str, tools: &[Value]) -> Program {
    define(home, name, tools);
    testkit_program("faulty-server", &["--define", home.path().join(name).to_str().unwrap()])
}

/// Writes the tools of a server to its file. The file is replaced atomically, so that the server never reads half of
/// it.
fn define(home: &Home, name: &str, tools: &[Value]) {
    let draft = home.path().join("draft");
    fs::write(&draft, Value::from(tools).to_string()).unwrap();
    fs::rename(draft, home.path().join(name)).unwrap();
}

/// A client of a running gateway.
struct Session {
    setup: Setup,
    client: Client,
    /// Number of `list_changed` notifications received during calls.
    changes: usize,
}

impl Session {
    /// Waits until no server is connecting.
    fn wait_until_connected(&mut self) {
        eventually("all servers up", || {
            let text = self.text("tool_search", &json!({"query": ""}));
            (!text.contains("connecting")).then_some(())
        });
    }

    /// Restarts the gateway and connects a new client. The gateway has saved its servers' tools, so the instructions
    /// that the new client receives already include them.
    fn restart(self) -> Self {
        let Self { setup, mut client, .. } = self;
        client.kill();
        setup.start()
    }

    fn instructions(&self) -> Option<String> {
        self.client.initialize_result["instructions"].as_str().map(str::to_owned)
    }

    fn list(&mut self) -> Vec<Value> {
        self.client.tools()
    }

    fn names(&mut self) -> Vec<String> {
        self.list().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    fn listed(&mut self, name: &str) -> Value {
        let found = self.list().into_iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("`{name}` is not listed"))
    }

    /// Returns the parameters of a tool as they are listed.
    fn parameters(&mut self, name: &str) -> Value {
        self.listed(name)["inputSchema"]["properties"].take()
    }

    fn is_stub(&mut self, name: &str) -> bool {
        self.parameters(name) == json!({})
    }

    /// Returns the names of the tools that are listed as stubs.
    fn stubs(&mut self) -> Vec<String> {
        let stub = |tool: &&Value| tool["inputSchema"]["properties"] == json!({});
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        self.list().iter().filter(stub).map(name).collect()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let mut exchange = self.client.ask("tools/call", &params);
        self.changes +=
            exchange.messages.iter().filter(|message| message["method"] == CHANGED).count();
        assert!(exchange.answer.get("result").is_some(), "{params}: {}", exchange.answer);
        exchange.answer["result"].take()
    }

    fn text(&mut self, name: &str, arguments: &Value) -> String {
        self.call(name, arguments)["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Makes a call that must be refused, and returns the refusal.
    fn refused(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.call(name, arguments);
        assert_eq!(result["isError"], true, "{result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    /// Makes a call and checks that the tool ran. The test servers return the arguments as the result.
    #[track_caller]
    fn runs(&mut self, name: &str, arguments: &Value) {
        let result = self.call(name, arguments);
        assert_eq!(result["structuredContent"], *arguments, "{result}");
    }

    /// Searches, and parses the reply, which must be JSON.
    fn search(&mut self, query: &str) -> Value {
        serde_json::from_str(&self.text("tool_search", &json!({"query": query}))).unwrap()
    }

    /// Returns the names of the tools that a search finds, whatever format the reply has.
    fn found(&mut self, query: &str) -> Vec<String> {
        self.found_with("tool_search", &json!({"query": query}))
    }

    fn found_with(&mut self, name: &str, arguments: &Value) -> Vec<String> {
        names_in(&self.text(name, arguments))
    }

    fn define(&self, server: &str, tools: &[Value]) {
        define(&self.setup.home, server, tools);
    }

    /// Waits until the log contains this text.
    fn logs(&self, text: &str) {
        eventually(text, || self.setup.home.log().contains(text).then_some(()));
    }
}

/// Returns the tool names in a reply.
fn names_in(text: &str) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    if let Ok(answer) = serde_json::from_str::<Value>(text) {
        let tools = answer.get("tools").or(answer.get("matches")).and_then(Value::as_array);
        return tools.into_iter().flatten().map(name).collect();
    }
    let of_line = |line: &str| {
        let function = line.strip_prefix("<function>").and_then(|l| l.strip_suffix("</function>"));
        let heading = line.strip_prefix("### `").and_then(|line| line.strip_suffix('`'));
        let function = function.map(|json| name(&serde_json::from_str(json).unwrap()));
        function.or(heading.map(str::to_owned))
    };
    text.lines().filter_map(of_line).collect()
}
