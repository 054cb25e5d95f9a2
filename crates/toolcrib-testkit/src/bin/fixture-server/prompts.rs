//! Prompts: a plain one, one with arguments, one with a resource, one with an image, and one that asks for input.

use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject, Prompt,
    PromptArgument, PromptMessage, ResourceContents, Role,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::input_rounds::{self, ClientInput, NextStep, RoundResult};
use crate::input_tools::form;
use crate::media::PNG;

const PROMPT_WITH_INPUT: &str = "test_input_required_result_prompt";

/// Returns the prompts in a fixed order. If `extra`, the last one is the prompt that can be added and removed.
pub(crate) fn list(extra: bool) -> Vec<Prompt> {
    let needed = |name: &str, about: &str| {
        PromptArgument::new(name).with_description(about).with_required(true)
    };
    let mut prompts = vec![
        Prompt::new("test_simple_prompt", Some("One sentence."), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("Two arguments in one sentence."),
            Some(vec![needed("arg1", "The first."), needed("arg2", "The second.")]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("A resource, and what to do with it."),
            Some(vec![needed("resourceUri", "The address of the resource.")]),
        ),
        Prompt::new("test_prompt_with_image", Some("A picture, and what to do with it."), None),
        Prompt::new(PROMPT_WITH_INPUT, Some("Asks the user before it is made."), None),
    ];
    if extra {
        prompts.push(Prompt::new("test_extra_prompt", Some("Is here only at times."), None));
    }
    prompts
}

pub(crate) async fn get(
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let messages = match request.name.as_str() {
        "test_simple_prompt" | "test_extra_prompt" => vec![user("Say something simple.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (text(&arguments, "arg1")?, text(&arguments, "arg2")?);
            vec![user(format!("The first is {first}, the second is {second}."))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = text(&arguments, "resourceUri")?;
            let resource = ResourceContents::text("The text of a resource in a prompt.", uri);
            vec![
                PromptMessage::new(Role::User, ContentBlock::resource(resource)),
                user("What does the resource say?"),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            user("What does the picture show?"),
        ],
        PROMPT_WITH_INPUT => {
            let input =
                ClientInput { answers: request.input_responses, state: request.request_state };
            let turn = input_rounds::run_rounds(context, &arguments, input, |round| {
                Ok(match round.form("user_context", "context") {
                    Some(given) => {
                        NextStep::Done(GetPromptResult::new(vec![user(given.to_string())]))
                    }
                    None => NextStep::ask(json!({
                        "user_context": form(
                            "What is the prompt about?",
                            &json!({"context": {"type": "string"}}),
                            &["context"],
                        ),
                    })),
                })
            });
            return Ok(match turn.await? {
                RoundResult::Done(result) => result.into(),
                RoundResult::InputRequired(result) => result.into(),
            });
        }
        name => return Err(ErrorData::invalid_params(format!("unknown prompt: `{name}`"), None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

fn user(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn text<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("`{name}` must be a text"), None))
}
