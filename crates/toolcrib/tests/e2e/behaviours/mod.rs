//! Every behaviour in docs/behaviours.md that an MCP client can see, through `toolcrib mcp`.
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

/// A tool with text parameters, of which the first `required` are required.
fn tool(name: &str, description: &str, parameters: &[&str], required: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let schema =
        json!({"type": "object", "properties": properties, "required": parameters[..required]});
    json!({"name": name, "description": description, "inputSchema": schema})
}

/// Tools without parameters.
fn plain(tools: &[(&str, &str)]) -> Vec<Value> {
    tools.iter().map(|(name, words)| tool(name, words, &[], 0)).collect()
}

/// This many tools with one parameter each.
fn numbered(count: usize, stem: &str, description: &str) -> Vec<Value> {
    (0..count).map(|at| tool(&format!("{stem}{at}"), description, &["unit"], 1)).collect()
}

/// A gateway that is not running yet: a home with the files of its servers, and its arguments.
struct Setup {
    home: Home,
    file: PathBuf,
    flags: Vec<String>,
}

impl Setup {
    /// A config of Toolcrib's, and servers with their tools. A server is a name, which further lines of its section may
    /// follow.
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

    /// A preset, and servers with their tools.
    fn preset(preset: &str, servers: &[(&str, &[Value])]) -> Self {
        Self::toml(&format!("preset = \"{preset}\""), servers)
    }

    /// Another system's own file. `text` writes it, given the command of each server.
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

    /// A JSON file with these keys, and the servers under `mcpServers`.
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

    /// Why tools are deferred or not, according to `doctor`.
    fn doctor(&self) -> String {
        let program = self.command("doctor");
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg("--json").env("HOME", self.home.path());
        let ran = command.env("XDG_STATE_HOME", self.home.path().join("state")).output().unwrap();
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
        answer["decision"]["reason"].as_str().unwrap().to_owned()
    }

    /// A client of the gateway, after every server has answered.
    fn start(self) -> Session {
        self.start_as("test", Era::Old)
    }

    fn start_as(self, name: &str, era: Era) -> Session {
        let mut session = self.connect(name, era);
        session.wait_until_connected();
        session.changes = 0;
        session
    }

    /// A client of the gateway, whether or not its servers have answered.
    fn connect(self, name: &str, era: Era) -> Session {
        let wire = Wire::stdio(&self.command("mcp"), self.home.path());
        Session { client: Client::named(name, wire, era), setup: self, changes: 0 }
    }
}

/// A server with these tools, which are in a file of its name.
fn program(home: &Home, name: &str, tools: &[Value]) -> Program {
    define(home, name, tools);
    testkit_program("faulty-server", &["--define", home.path().join(name).to_str().unwrap()])
}

/// Replaces the file atomically, so that the server never reads half of it.
fn define(home: &Home, name: &str, tools: &[Value]) {
    let draft = home.path().join("draft");
    fs::write(&draft, Value::from(tools).to_string()).unwrap();
    fs::rename(draft, home.path().join(name)).unwrap();
}

/// A client of a running gateway.
struct Session {
    setup: Setup,
    client: Client,
    /// Number of list changes received during calls.
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

    /// Restarts the gateway, with another client. Its servers' tools were saved, so the instructions include them.
    fn restart(self) -> Self {
        let Self { setup, mut client, .. } = self;
        client.kill();
        setup.start()
    }

    fn instructions(&self) -> Option<String> {
        self.client.greeting["instructions"].as_str().map(str::to_owned)
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

    /// The parameters that a tool is listed with.
    fn parameters(&mut self, name: &str) -> Value {
        self.listed(name)["inputSchema"]["properties"].take()
    }

    fn is_stub(&mut self, name: &str) -> bool {
        self.parameters(name) == json!({})
    }

    /// The tools that are listed as stubs.
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

    /// A call that is refused; returns the refusal.
    fn refused(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.call(name, arguments);
        assert_eq!(result["isError"], true, "{result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    /// A call that runs: the test servers return the arguments.
    #[track_caller]
    fn runs(&mut self, name: &str, arguments: &Value) {
        let result = self.call(name, arguments);
        assert_eq!(result["structuredContent"], *arguments, "{result}");
    }

    /// A search that is answered in JSON.
    fn search(&mut self, query: &str) -> Value {
        serde_json::from_str(&self.text("tool_search", &json!({"query": query}))).unwrap()
    }

    /// The tools that a search finds, whatever the format of the reply.
    fn found(&mut self, query: &str) -> Vec<String> {
        self.found_with("tool_search", &json!({"query": query}))
    }

    fn found_with(&mut self, name: &str, arguments: &Value) -> Vec<String> {
        names_in(&self.text(name, arguments))
    }

    /// Replaces the tools of a server.
    fn define(&self, server: &str, tools: &[Value]) {
        define(&self.setup.home, server, tools);
    }

    /// Waits until the log contains this text.
    fn logs(&self, text: &str) {
        eventually(text, || {
            let log = fs::read_to_string(self.setup.home.path().join("stderr")).ok()?;
            log.contains(text).then_some(())
        });
    }
}

/// The tool names in a reply.
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
