//! Generates a request from bytes: a body of one of the four APIs, with tools in every part where the API allows them.

use toolcrib_dialect::Api;

/// The bytes that determine all choices. After the last byte, the first option is always chosen.
pub(super) struct Choices<'a> {
    pub(super) bytes: std::slice::Iter<'a, u8>,
}

impl Choices<'_> {
    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or_default()) % count
    }

    fn one<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    pub(super) fn rarely(&mut self) -> bool {
        self.bytes.next().is_some_and(|byte| byte % 8 == 7)
    }
}

/// Generates one request and records what the checks need to know about it.
pub(super) struct RequestGenerator<'a> {
    api: Api,
    pub(super) choices: Choices<'a>,
    names: usize,
    /// Names of tools that must reach the upstream if the request is sent with tool search off and without translation,
    /// and `is_odd` is false.
    pub(super) shown: Vec<String>,
    /// Whether the request may be refused, for example because it deviates from the API.
    pub(super) is_odd: bool,
}

impl<'a> RequestGenerator<'a> {
    pub(super) fn new(api: Api, choices: Choices<'a>) -> Self {
        Self { api, choices, names: 0, shown: Vec::new(), is_odd: false }
    }
}

impl RequestGenerator<'_> {
    /// Returns either a name that the caller may use or a hidden name.
    fn name(&mut self) -> String {
        self.names += 1;
        let number = self.names;
        if self.choices.below(2) == 0 {
            return format!("show_{number}q");
        }
        format!("hide_{number}q")
    }

    /// Like `name`, but a name that the caller may use is recorded as one that must reach the upstream.
    fn kept_name(&mut self) -> String {
        let name = self.name();
        if name.starts_with("show") {
            self.shown.push(name.clone());
        }
        name
    }

    /// Returns a name that is always hidden, for parts of a request that must never reach the upstream.
    fn hidden(&mut self) -> String {
        self.names += 1;
        format!("hide_{}q", self.names)
    }

    /// Returns a key as JSON, sometimes in an unusual spelling or repeated.
    fn key(&mut self, key: &str) -> String {
        if !self.choices.rarely() {
            return format!("\"{key}\"");
        }
        match self.choices.below(6) {
            // A character of the key is escaped. Every parser reads this as the same key.
            0 => format!("\"\\u{:04x}{}\"", u32::from(key.as_bytes()[0]), &key[1..]),
            other => {
                self.is_odd = true;
                match other {
                    1 => format!("\"{}\"", key.to_uppercase()),
                    2 => format!("\"{}{}\"", key[..1].to_uppercase(), &key[1..]),
                    3 => format!("\"{}\"", key.replace('s', "\u{17f}")),
                    4 => format!("\"{key}\":[],\"{key}\""),
                    _ => format!("\"{}\":0,\"{key}\"", key.to_uppercase()),
                }
            }
        }
    }

    /// Returns a JSON string, sometimes with an escape in it.
    fn text(&mut self, text: &str) -> String {
        if self.choices.rarely() && !text.is_empty() {
            let first = u32::from(text.as_bytes()[0]);
            return format!("\"\\u{first:04x}{}\"", &text[1..]);
        }
        format!("\"{text}\"")
    }

    /// Returns the definition of a function in the form of the API.
    fn function(&mut self, name: &str) -> String {
        let (key, named) = (self.key("name"), self.text(name));
        let schema = format!(
            r#"{{"type":"object","properties":{{"q":{{"type":"string","description":"Of {name}."}},"Name":{{}}}}}}"#
        );
        let about = format!(r#""description":"Does {name} for the office.""#);
        match self.api {
            Api::Chat => {
                let function = self.key("function");
                format!(
                    r#"{{"type":"function",{function}:{{{key}:{named},{about},"parameters":{schema}}}}}"#
                )
            }
            Api::Responses => {
                format!(r#"{{"type":"function",{key}:{named},{about},"parameters":{schema}}}"#)
            }
            Api::Messages => format!(r#"{{{key}:{named},{about},"input_schema":{schema}}}"#),
            Api::Gemini => format!(r#"{{{key}:{named},{about},"parameters":{schema}}}"#),
        }
    }

    fn functions(&mut self) -> Vec<String> {
        let count = self.choices.below(4);
        (0..count)
            .map(|_| {
                let name = self.kept_name();
                self.function(&name)
            })
            .collect()
    }

    /// Returns up to three names as JSON strings, separated by commas.
    fn members(&mut self) -> String {
        let count = self.choices.below(4);
        let names: Vec<String> = (0..count).map(|_| format!("\"{}\"", self.kept_name())).collect();
        names.join(",")
    }

    /// Returns one entry of `tools`.
    fn entry(&mut self) -> String {
        let pick = self.choices.below(10);
        match (self.api, pick) {
            (Api::Gemini, 0..=4) => {
                let key =
                    self.choices.one(&["functionDeclarations", "function_declarations"]).to_owned();
                let members = self.functions();
                let hosted = if self.choices.rarely() {
                    format!(r#","googleSearch":{{"x":"{}"}}"#, self.hidden())
                } else {
                    String::new()
                };
                let twice = if self.choices.rarely() {
                    self.is_odd = true;
                    let (name, other) = (self.hidden(), "function_declarations");
                    let entry = self.function(&name);
                    let other = if key == other { "functionDeclarations" } else { other };
                    format!(r#","{other}":[{entry}]"#)
                } else {
                    String::new()
                };
                let key = self.key(&key);
                format!("{{{key}:[{}]{hosted}{twice}}}", members.join(","))
            }
            (Api::Gemini, 5) => {
                format!(r#"{{"mcpServers":[{{"name":"{}"}}]}}"#, self.hidden())
            }
            (Api::Gemini, 6) => {
                let name = self.name();
                self.is_odd |= name.starts_with("hide");
                let members = self.functions().join(",");
                format!(r#"{{"name":"{name}","functionDeclarations":[{members}]}}"#)
            }
            (_, 7) => self.server_in_disguise(),
            (Api::Gemini, _) => format!(r#"{{"codeExecution":{{"x":"{}"}}}}"#, self.hidden()),
            (Api::Responses, 0 | 1) => {
                let key = self.key("tools");
                let members = self.functions().join(",");
                format!(
                    r#"{{"type":"namespace","name":"office","description":"d",{key}:[{members}]}}"#
                )
            }
            (Api::Responses, 2) => {
                let names = self.members();
                let list = if self.choices.below(2) == 0 {
                    format!("[{names}]")
                } else {
                    format!(r#"{{"tool_names":[{names}]}}"#)
                };
                format!(
                    r#"{{"type":"mcp","server_label":"docs","server_url":"https://x","allowed_tools":{list}}}"#
                )
            }
            (Api::Responses, 3) => {
                format!(r#"{{"type":"mcp","server_label":"{}"}}"#, self.hidden())
            }
            (Api::Responses, 4) => {
                let name = self.kept_name();
                format!(r#"{{"type":"custom","name":"{name}","format":{{"type":"text"}}}}"#)
            }
            (Api::Chat, 0 | 1) => {
                let name = self.kept_name();
                let key = self.key("custom");
                format!(r#"{{"type":"custom",{key}:{{"name":"{name}"}}}}"#)
            }
            (Api::Messages, 0) => {
                let configs: Vec<String> = (0..self.choices.below(3))
                    .map(|_| format!(r#""{}":{{"enabled":true}}"#, self.kept_name()))
                    .collect();
                format!(
                    r#"{{"type":"mcp_toolset","mcp_server_name":"docs","default_config":{{"enabled":false}},"configs":{{{}}}}}"#,
                    configs.join(",")
                )
            }
            (Api::Messages, 1) => {
                let (name, on) = (self.hidden(), self.choices.one(&["true", "null"]));
                format!(
                    r#"{{"type":"mcp_toolset","mcp_server_name":"{name}","default_config":{{"enabled":{on}}}}}"#
                )
            }
            (_, 5) => {
                let kind = self.choices.one(&["web_search", "code_interpreter", "shell"]);
                format!(r#"{{"type":"{kind}","x":"{}"}}"#, self.hidden())
            }
            (_, 6) => {
                // A function with two names: a hidden name, and a name that the caller may use.
                self.is_odd = true;
                let (name, other) = (self.hidden(), "show_odd");
                format!(r#"{{"type":"function","name":"{name}","function":{{"name":"{other}"}}}}"#)
            }
            _ => {
                let name = self.kept_name();
                self.function(&name)
            }
        }
    }

    /// Returns an entry of `tools` for a hosted MCP server, in the form of another API or in no known form.
    fn server_in_disguise(&mut self) -> String {
        let (name, pick) = (self.hidden(), self.choices.below(7));
        match pick {
            0 => format!(r#"{{"type":"MCP","server_label":"{name}"}}"#),
            1 => format!(r#"{{"type":"mcp_server","name":"show_odd","url":"{name}"}}"#),
            2 => format!(r#"{{"name":"show_odd","mcp_server_name":"{name}"}}"#),
            3 => format!(r#"{{"name":"show_odd","allowed_tools":["{name}"]}}"#),
            _ => {
                let key = self.choices.one(&["server_url", "server_label", "connector_id"]);
                format!(r#"{{"type":"function","name":"show_odd","{key}":"{name}"}}"#)
            }
        }
    }

    fn entries(&mut self) -> String {
        let count = self.choices.below(5);
        let all: Vec<String> = (0..count).map(|_| self.entry()).collect();
        format!("[{}]", all.join(","))
    }

    /// Returns one entry of the history.
    fn history_entry(&mut self) -> String {
        let pick = self.choices.below(8);
        match (self.api, pick) {
            (Api::Gemini, 0) => {
                self.is_odd = true;
                let (key, name) = (self.key("tools"), self.hidden());
                format!(r#"{{"role":"user","parts":[],{key}:[{{"x":"{name}"}}]}}"#)
            }
            (Api::Gemini, _) => r#"{"role":"user","parts":[{"text":"Hello"}]}"#.to_owned(),
            (Api::Responses, 0 | 1) => {
                let tools = self.entries();
                let (kind, key) =
                    (self.choices.one(&["additional_tools", "future_tools"]), self.key("tools"));
                format!(r#"{{"type":"{kind}","role":"developer",{key}:{tools}}}"#)
            }
            (Api::Responses, 2) => {
                let tools = self.entries();
                format!(
                    r#"{{"type":"tool_search_output","execution":"client","call_id":"call_1","status":"completed","tools":{tools}}}"#
                )
            }
            (Api::Responses, 3) => {
                let name = self.kept_name();
                format!(
                    r#"{{"type":"mcp_list_tools","server_label":"docs","tools":[{{"name":"{name}","input_schema":{{}}}}]}}"#
                )
            }
            (Api::Messages, 0) => {
                let name = self.kept_name();
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"tool_reference","tool_name":"{name}"}}]}}]}}"#
                )
            }
            (Api::Messages, 1) => {
                let name = self.kept_name();
                let function = self.function(&name);
                let referred = self.kept_name();
                format!(
                    r#"{{"role":"system","content":[{{"type":"tool_addition","tool":{{"type":"tool_definition","definition":{function}}}}},{{"type":"tool_addition","tool":{{"type":"tool_reference","name":"{referred}"}}}},{{"type":"text","text":"on"}}]}}"#
                )
            }
            (Api::Messages, 2) => {
                let name = self.kept_name();
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"tool_search_tool_result","tool_use_id":"t","content":{{"type":"tool_search_tool_search_result","tool_references":[{{"type":"tool_reference","tool_name":"{name}"}}]}}}}]}}"#
                )
            }
            (Api::Chat, 0) => {
                self.is_odd = true;
                let name = self.hidden();
                let function = self.function(&name);
                format!(r#"{{"role":"system","content":"x","tools":[{function}]}}"#)
            }
            _ => r#"{"role":"user","content":"Hello"}"#.to_owned(),
        }
    }

    /// Returns the key and the value of a tool choice, or `None` if the request has no tool choice.
    fn choice(&mut self) -> Option<(&'static str, String)> {
        let pick = self.choices.below(6);
        let name = if pick > 1 { self.kept_name() } else { String::new() };
        self.is_odd |= name.starts_with("hide");
        let other = self.name();
        Some(match (self.api, pick) {
            (_, 0 | 1) => return None,
            (Api::Gemini, _) => (
                "toolConfig",
                format!(
                    r#"{{"functionCallingConfig":{{"mode":"ANY","allowedFunctionNames":["{name}","{other}"]}}}}"#
                ),
            ),
            (Api::Messages, _) => ("tool_choice", format!(r#"{{"type":"tool","name":"{name}"}}"#)),
            (Api::Chat, 2) => ("function_call", format!(r#"{{"name":"{name}"}}"#)),
            (Api::Chat, 3) => (
                "tool_choice",
                format!(
                    r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{{"type":"function","function":{{"name":"{name}"}}}},{{"type":"function","function":{{"name":"{other}"}}}}]}}}}"#
                ),
            ),
            (Api::Chat, _) => {
                ("tool_choice", format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#))
            }
            (Api::Responses, 3) => (
                "tool_choice",
                format!(
                    r#"{{"type":"allowed_tools","mode":"auto","tools":[{{"type":"function","name":"{name}"}},{{"type":"function","name":"{other}"}}]}}"#
                ),
            ),
            (Api::Responses, _) => {
                ("tool_choice", format!(r#"{{"type":"function","name":"{name}"}}"#))
            }
        })
    }

    /// Returns a further field of the body, in addition to the tools, the tool choice and the history.
    fn field(&mut self) -> String {
        let name = self.hidden();
        let pick = self.choices.below(8);
        self.is_odd |= pick > 3;
        match (pick, self.api) {
            (0, _) => r#""temperature":0.5"#.to_owned(),
            (1, Api::Messages) => {
                let members = self.members();
                let shut = format!(r#"{{"type":"url","url":"u","name":"{name}"}}"#);
                format!(
                    r#""mcp_servers":[{{"type":"url","url":"u","name":"docs","tool_configuration":{{"enabled":true,"allowed_tools":[{members}]}}}},{shut}]"#
                )
            }
            (1, Api::Chat) => format!(r#""web_search_options":{{"x":"{name}"}}"#),
            (2, Api::Chat) => {
                let members = self.functions().join(",");
                format!(r#""functions":[{members}]"#)
            }
            (0..=3, _) => r#""metadata":{"Tools":"a note"}"#.to_owned(),
            (4, _) => {
                let key =
                    self.choices.one(&["conversation", "prompt", "cachedContent", "container"]);
                self.is_odd = true;
                format!(r#""{key}":"{name}""#)
            }
            (5, _) => {
                let key = self.key("tools");
                format!(r#""extra_body":{{{key}:[{{"x":"{name}"}}]}}"#)
            }
            _ => {
                let key = self.choices.one(&[
                    "tools",
                    "functions",
                    "mcp_servers",
                    "functionDeclarations",
                    "custom_tools",
                    "toolsets",
                    "tool_definitions",
                    "local_functions",
                ]);
                // Keys that an API defines are written in upper case, so that the API does not recognise them.
                let key = if key.contains('_') && key != "mcp_servers" {
                    key.to_owned()
                } else {
                    key.to_uppercase()
                };
                format!(r#""{key}":[{{"name":"{name}"}}]"#)
            }
        }
    }

    /// Returns the complete body of the request.
    pub(super) fn body(&mut self) -> String {
        let mut fields = vec![r#""model":"m""#.to_owned(), r#""max_tokens":9"#.to_owned()];
        let key = self.key("tools");
        let tools = self.entries();
        fields.push(format!("{key}:{tools}"));
        let mut entries: Vec<String> =
            (0..self.choices.below(3)).map(|_| self.history_entry()).collect();
        let (history, hello) = match self.api {
            Api::Chat | Api::Messages => ("messages", r#"{"role":"user","content":"Hello"}"#),
            Api::Responses => ("input", r#"{"role":"user","content":"Hello"}"#),
            Api::Gemini => ("contents", r#"{"role":"user","parts":[{"text":"Hello"}]}"#),
        };
        entries.push(hello.to_owned());
        fields.push(format!("{}:[{}]", self.key(history), entries.join(",")));
        if let Some((key, value)) = self.choice() {
            fields.push(format!("{}:{value}", self.key(key)));
        }
        for _ in 0..self.choices.below(3) {
            let field = self.field();
            let key = field.split(':').next();
            self.is_odd |= fields.iter().any(|other| other.split(':').next() == key);
            fields.push(field);
        }
        format!("{{{}}}", fields.join(","))
    }
}
