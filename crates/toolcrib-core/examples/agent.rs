//! An agent loop with tool search in it: `cargo run -p toolcrib-core --example agent`.
#![allow(clippy::print_stdout, reason = "it is there to be watched")]

use toolcrib_core::{
    CallOutcome, Catalog, Conversation, Crib, DefinitionFormat, Error, Scope, Settings, TurnContext,
};

/// The tools your agent has, as you would send them.
const TOOLS: &str = r#"[
  {"name": "slack__post_message", "description": "Post a message to a channel.", "input_schema":
    {"type": "object", "properties": {"channel": {"type": "string"}, "text": {"type": "string"}},
     "required": ["channel", "text"]}},
  {"name": "mail__send", "description": "Send an email.", "input_schema":
    {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}
]"#;

fn main() -> Result<(), Error> {
    // Once. Two tools would pass as they are, so this example asks for deferring them.
    let settings = Settings::from_toml("[activation]\nmode = 'on'")?;
    let crib = Crib::new(Catalog::from_json(TOOLS.as_bytes())?, settings);
    let scope = Scope::all(crib.catalog());
    // Once a conversation.
    let mut conversation = Conversation::new();
    let mut messages = vec!["Tell the team that the build is green.".to_owned()];
    loop {
        // Each turn: what the model is sent.
        let turn = TurnContext::new(&scope).with_context_window(200_000).with_model("gpt-5");
        let shown = crib.disclose(&turn, &mut conversation);
        let tools = crib.tools_json(&shown, TOOLS, DefinitionFormat::Anthropic);
        messages.extend(shown.announcement.clone());
        let asked = model(&tools, shown.instruction.as_deref(), &messages);
        let Some((name, input)) = asked else { return Ok(()) };
        // Each call: searches are answered, your tools are checked and run by their own names.
        let result = match crib.handle(&turn, &mut conversation, name, input) {
            CallOutcome::Run(call) => run(&call.name, call.arguments.get()),
            CallOutcome::Answer(reply) => reply.for_model(),
            CallOutcome::Refused(refusal) => refusal.text(),
        };
        println!("{name} {input}\n  {result}\n");
        messages.push(result);
    }
}

/// Your tools.
fn run(name: &str, arguments: &str) -> String {
    format!("ran {name} with {arguments}")
}

/// A tool and its input.
type Asked = (&'static str, &'static str);

/// Your model. Here a script: it searches, calls what it found, and is done.
fn model(_tools: &str, _system: Option<&str>, messages: &[String]) -> Option<Asked> {
    let call =
        r#"{"name": "slack__post_message", "arguments": {"channel": "dev", "text": "Green."}}"#;
    let search = r#"{"query": "tell a channel something"}"#;
    [("tool_search", search), ("tool_call", call)].get(messages.len() - 1).copied()
}
