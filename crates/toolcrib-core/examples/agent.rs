//! An agent loop with tool search. Run it with `cargo run -p toolcrib-core --example agent`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use toolcrib_core::{
    CallOutcome, Catalog, Conversation, Crib, DefinitionFormat, Error, Scope, Settings, TurnContext,
};

/// Your agent's tools, as you would send them to the provider.
const TOOLS: &str = r#"[
  {"name": "slack__post_message", "description": "Post a message to a channel.", "input_schema":
    {"type": "object", "properties": {"channel": {"type": "string"}, "text": {"type": "string"}},
     "required": ["channel", "text"]}},
  {"name": "mail__send", "description": "Send an email.", "input_schema":
    {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}
]"#;

fn main() -> Result<(), Error> {
    // Done once. With only two tools, everything would be passed through unchanged, so this example turns deferral on.
    let settings = Settings::from_toml("[activation]\nmode = 'on'")?;
    let crib = Crib::new(Catalog::from_json(TOOLS.as_bytes())?, settings);
    let scope = Scope::all(crib.catalog());
    // Done once per conversation.
    let mut conversation = Conversation::new();
    let mut messages = vec!["Tell the team that the build is green.".to_owned()];
    loop {
        // Done in each turn: compute what to send to the model.
        let turn = TurnContext::new(&scope).with_context_window(200_000).with_model("gpt-5");
        let shown = crib.disclose(&turn, &mut conversation);
        let tools = crib.tools_json(&shown, TOOLS, DefinitionFormat::Anthropic);
        messages.extend(shown.announcement.clone());
        let call = model(&tools, shown.instruction.as_deref(), &messages);
        let Some((name, input)) = call else { return Ok(()) };
        // Done for each call that the model makes. A search is answered. A call of one of your tools is checked, and
        // then you run it under the tool's real name.
        let result = match crib.handle(&turn, &mut conversation, name, input) {
            CallOutcome::Run(call) => run(&call.name, call.arguments.get()),
            CallOutcome::Answer(reply) => reply.for_model(),
            CallOutcome::Refused(refusal) => refusal.text(),
        };
        println!("{name} {input}\n  {result}\n");
        messages.push(result);
    }
}

/// Runs one of your tools.
fn run(name: &str, arguments: &str) -> String {
    format!("ran {name} with {arguments}")
}

/// The name of the called tool, and its input as JSON.
type ModelCall = (&'static str, &'static str);

/// Your model. In this example, a script takes its place: it searches, calls the tool it found, and stops.
fn model(_tools: &str, _system: Option<&str>, messages: &[String]) -> Option<ModelCall> {
    let call =
        r#"{"name": "slack__post_message", "arguments": {"channel": "dev", "text": "Green."}}"#;
    let search = r#"{"query": "tell a channel something"}"#;
    [("tool_search", search), ("tool_call", call)].get(messages.len() - 1).copied()
}
