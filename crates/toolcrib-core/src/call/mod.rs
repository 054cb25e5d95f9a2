//! Handling the model's calls.
//!
//! [`Crib::handle`] receives every call. Calls to our own tools are answered directly. Any other name is resolved to
//! one tool in scope, and the arguments are unwrapped (`unwrap_arguments`) and checked against the tool's schema
//! (`argument_validation`). The result is a call to run under the tool's real name, or a refusal that contains what the
//! model needs to correct the call. A deferred tool may be called directly if its arguments are valid.

mod refusal;
mod search_input;
mod unwrap_arguments;

pub use crate::access::{AccessPolicy, MayWriteReason, ReadOnlyReason, ToolAccess};
pub use crate::argument_validation::ArgumentFault;
pub use refusal::{Refusal, RefusalCode};

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalog::ToolId;
use crate::conversation::Conversation;
use crate::crib::Crib;
use crate::own_names::{OwnNames, OwnToolKind};
use crate::reply::{Reply, ReplyFormat};
use crate::signature;
use crate::spelling::{Resolution, SUGGESTION_SIMILARITY, bigram_similarity};
use crate::text::words::fold_name;
use crate::turn_context::TurnContext;
use search_input::read_search_request;
use toolcrib_text::json::{Fields, data};
use toolcrib_text::shorten;

/// A checked call, ready to run: the real tool and its arguments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub id: ToolId,
    /// The tool's name, for hooks, approvals and logs.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: Box<RawValue>,
}

/// What to do with a call.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// Run this tool.
    Run(ToolCall),
    /// Return this reply to the model.
    Answer(Reply),
    /// Return this refusal to the model, which can correct its call.
    Refused(Refusal),
}

/// If exactly the same call fails more often than this, the refusal's hint tells the model to try something else.
const MAX_REPEATS: u32 = 2;

impl Crib {
    /// Handles a call from the model. `input` is the JSON text of its arguments.
    pub fn handle(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        name: &str,
        input: &str,
    ) -> CallOutcome {
        let turn = &self.checked_turn(turn);
        let names = self.settings().own_names;
        // A call to one of our own tools that is not offered in this turn is handled as if that tool did not exist.
        let offered = |own: &OwnToolKind| {
            turn.search_allowed
                && match own {
                    OwnToolKind::SearchRegex => self.settings().search.regex,
                    OwnToolKind::Read | OwnToolKind::Write => self.settings().split_calls,
                    _ => true,
                }
        };
        match names.kind_of(name).filter(offered) {
            Some(OwnToolKind::Search | OwnToolKind::SearchRegex) => {
                match read_search_request(names, name, input) {
                    Ok(ask) => CallOutcome::Answer(self.search(turn, conversation, &ask)),
                    Err(refusal) => CallOutcome::Refused(*refusal),
                }
            }
            Some(OwnToolKind::Describe) => self.describe_call(turn, conversation, input),
            Some(OwnToolKind::Call | OwnToolKind::Read | OwnToolKind::Write) => {
                self.bridge_call(turn, conversation, name, input)
            }
            None => {
                let candidates = unwrap_arguments::interpretations(input);
                self.run(turn, conversation, None, name, input, &candidates)
            }
        }
    }

    fn describe_call(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        input: &str,
    ) -> CallOutcome {
        let names = self.settings().own_names;
        let interpretations = unwrap_arguments::interpretations(input);
        let fields = interpretations.first().and_then(|text| Fields::read(text));
        let name =
            fields.as_ref().and_then(|fields| unwrap_arguments::ToolCallInput::read(fields).name);
        let Some(name) = name else {
            return CallOutcome::Refused(no_name(names.describe, names));
        };
        match self.resolve(turn, &name) {
            Ok(id) => CallOutcome::Answer(self.describe(conversation, id)),
            Err(refusal) => CallOutcome::Refused(*refusal),
        }
    }

    fn bridge_call(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        call: &str,
        input: &str,
    ) -> CallOutcome {
        let names = self.settings().own_names;
        // The input should be an object. A JSON string that contains the object is accepted too.
        let interpretations = unwrap_arguments::interpretations(input);
        let Some(text) = interpretations.first() else {
            return CallOutcome::Refused(Refusal::new(
                RefusalCode::InvalidInput,
                format!("{call} takes an object with `name` and `arguments`"),
                format!("send {{\"name\": \"…\", \"arguments\": {{…}}}} to {call}"),
            ));
        };
        let wrapped = Fields::read(text).map(|fields| {
            let wrapped = unwrap_arguments::ToolCallInput::read(&fields);
            let candidates: Vec<Cow<'_, str>> =
                wrapped.candidates().into_iter().map(|c| Cow::Owned(c.into_owned())).collect();
            (wrapped.name, candidates)
        });
        match wrapped {
            Some((Some(name), candidates)) if !name.trim().is_empty() => {
                if names.is_reserved(name.trim()) {
                    let name = shorten(name.trim(), 40).into_owned();
                    return CallOutcome::Refused(Refusal::new(
                        RefusalCode::Recursion,
                        format!("`{name}` is not called through {call}"),
                        format!("call `{name}` directly"),
                    ));
                }
                self.run(turn, conversation, Some(call), &name, input, &candidates)
            }
            _ => CallOutcome::Refused(no_name(call, names)),
        }
    }

    /// Resolves the name, checks the arguments, and returns a call or a refusal. `through` is our own tool through
    /// which the tool is called, if it is not called directly.
    fn run(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        through: Option<&str>,
        name: &str,
        input: &str,
        candidates: &[Cow<'_, str>],
    ) -> CallOutcome {
        let id = match self.resolve(turn, name) {
            Ok(id) => id,
            Err(mut refusal) => {
                self.count_failure(conversation, name, input, &mut refusal);
                return CallOutcome::Refused(*refusal);
            }
        };
        if let Some(through) = through
            && let Some(mut refusal) = self.wrong_call_tool(id, through)
        {
            self.count_failure(conversation, name, input, &mut refusal);
            return CallOutcome::Refused(refusal);
        }
        let validator = self.validator(id);
        let mut faults = Vec::new();
        for candidate in candidates {
            let Ok(value) = serde_json::from_str::<Value>(candidate) else { continue };
            let wrong = validator.faults(&value);
            if wrong.is_empty() {
                conversation.guard.called();
                let Ok(arguments) = RawValue::from_string(candidate.clone().into_owned()) else {
                    continue;
                };
                let tool = self.catalog().tool(id);
                // A model that calls a tool correctly knows its schema, so the tool counts as revealed.
                // `Ledger::from_transcript` treats calls the same way.
                conversation.ledger.reveal(tool);
                let name = tool.name().to_owned();
                return CallOutcome::Run(ToolCall { id, name, arguments });
            }
            if faults.is_empty() {
                faults = wrong;
            }
        }
        let literal = candidates.first().map(AsRef::as_ref);
        let mut refusal = self.invalid(conversation, id, faults, literal);
        self.count_failure(conversation, name, input, &mut refusal);
        CallOutcome::Refused(refusal)
    }

    /// Resolves a name to one tool in scope.
    fn resolve(&self, turn: &TurnContext<'_>, name: &str) -> Result<ToolId, Box<Refusal>> {
        let shown = shorten(&toolcrib_text::clean::one_line(name), 128).into_owned();
        match self.spellings.resolve(self.catalog(), turn.scope, turn.unlisted, name) {
            Resolution::One(id, _) => Ok(id),
            Resolution::Several(ids) => {
                let mut names: Vec<String> =
                    ids.iter().map(|id| self.catalog().tool(*id).name().to_owned()).collect();
                names.sort_unstable();
                names.truncate(8);
                let message = format!("`{shown}` fits several tools");
                let mut refusal =
                    Refusal::new(RefusalCode::AmbiguousName, message, "use one of `nearest`");
                refusal.nearest = names;
                Err(Box::new(refusal))
            }
            Resolution::Nothing => {
                let missing = self.missing_tool(turn, name, SUGGESTION_SIMILARITY);
                let search = self.settings().own_names.search;
                let hint = if missing.nearest.is_empty() {
                    format!("search with {search}")
                } else {
                    format!("use one of `nearest`, or search with {search}")
                };
                let message = format!("there is no tool `{shown}`");
                let mut refusal = Refusal::new(RefusalCode::UnknownTool, message, hint);
                refusal.nearest = missing.nearest;
                Err(Box::new(refusal))
            }
        }
    }

    /// Refuses a call because of its arguments. If the model has not been shown the tool's schema yet, the refusal
    /// contains the complete schema and thereby reveals the tool. Otherwise it contains only the signature.
    fn invalid(
        &self,
        conversation: &mut Conversation,
        id: ToolId,
        faults: Vec<ArgumentFault>,
        arguments: Option<&str>,
    ) -> Refusal {
        let tool = self.catalog().tool(id);
        let misspelled = arguments.and_then(|text| misspelled(text, &tool.schema_value()));
        let message = match &faults[..] {
            [] => "the arguments are not a JSON object".to_owned(),
            [one] if one.path.is_empty() => format!("invalid arguments: {}", one.problem),
            [one] => format!("invalid arguments: {} at `{}`", one.problem, one.path),
            several => format!("invalid arguments: {} things are wrong", several.len()),
        };
        // With `ReplyFormat::Functions`, the message starts with Claude Code's name for this error, which Claude models
        // know.
        let message = match self.settings().search.format {
            ReplyFormat::Functions => format!("InputValidationError: {message}"),
            ReplyFormat::Json
            | ReplyFormat::Tools
            | ReplyFormat::Matches
            | ReplyFormat::Markdown => message,
        };
        let mut refusal = Refusal::new(
            RefusalCode::InvalidArguments,
            message,
            "send arguments that fit the schema",
        );
        refusal.tool = Some(tool.name().to_owned());
        refusal.faults = faults;
        if let Some((wrong, right)) = misspelled {
            refusal.hint = format!("{} should be {}", data(&wrong), data(&right));
        }
        if conversation.ledger.has(tool) {
            refusal.signature = Some(signature::bounded(&tool.schema_value()));
        } else {
            refusal.input_schema = RawValue::from_string(tool.schema().to_owned()).ok();
            self.record(conversation, tool);
        }
        refusal
    }

    /// Refuses a call that contains a hidden parameter. Callers that hide parameters need this, because most schemas allow
    /// additional properties.
    pub fn refuse_parameter(
        &self,
        conversation: &mut Conversation,
        id: ToolId,
        parameter: &str,
    ) -> Refusal {
        let shown = data(&shorten(parameter, 80));
        let fault = ArgumentFault {
            path: String::new(),
            problem: format!("{shown} is not a parameter of this tool"),
        };
        let mut refusal = self.invalid(conversation, id, vec![fault], None);
        refusal.hint = format!("leave out {shown}");
        refusal
    }

    /// Refuses a call of a tool through the wrong one of our own tools. Returns `None` if it is the right one.
    fn wrong_call_tool(&self, id: ToolId, through: &str) -> Option<Refusal> {
        let tool = self.catalog().tool(id);
        let right = self.call_tool_by_access(tool).filter(|right| *right != through)?;
        let what = match tool.access() {
            ToolAccess::ReadOnly(_) => "only reads",
            ToolAccess::MayWrite(_) => "may write",
        };
        let name = tool.name();
        let message =
            format!("`{name}` {what}, so it must be called through {right}, not {through}");
        let hint = format!("call {right} with the same input");
        let mut refusal = Refusal::new(RefusalCode::WrongCallTool, message, hint);
        refusal.tool = Some(tool.name().to_owned());
        Some(refusal)
    }

    fn count_failure(
        &self,
        conversation: &mut Conversation,
        name: &str,
        input: &str,
        refusal: &mut Refusal,
    ) {
        let times = conversation.guard.failed(name, input);
        if times <= MAX_REPEATS {
            return;
        }
        refusal.hint = format!(
            "this exact call has failed {times} times: change it, use another tool, or report what prevents it"
        );
        // The schema may be far back in the conversation by now, or compaction may have removed it, so it is shown
        // again.
        if let Some(id) = refusal.tool.as_deref().and_then(|name| self.catalog().find(name)) {
            let schema = self.catalog().tool(id).schema().to_owned();
            refusal.input_schema = RawValue::from_string(schema).ok();
            refusal.signature = None;
        }
    }
}

/// Finds a misspelled parameter in the arguments. Returns the unknown name, such as `titel`, and the name of the
/// missing parameter that was probably meant, such as `title`.
fn misspelled(arguments: &str, schema: &Value) -> Option<(String, String)> {
    let properties = schema.get("properties")?.as_object()?;
    let given = Fields::read(arguments)?;
    let extra = given.iter().map(|(key, _)| key).filter(|key| !properties.contains_key(*key));
    let absent = || properties.keys().filter(|name| given.get(name).is_none());
    extra.take(16).find_map(|key| {
        let best =
            absent().map(|name| (bigram_similarity(&fold_name(key), &fold_name(name)), name));
        let (alike, name) = best.max_by_key(|(alike, _)| *alike)?;
        (alike >= 50).then(|| (shorten(key, 80).into_owned(), name.clone()))
    })
}

fn no_name(tool: &str, names: OwnNames) -> Refusal {
    Refusal::new(
        RefusalCode::NoName,
        format!("{tool} needs the `name` of a tool"),
        format!("find the name with {}", names.search),
    )
}
