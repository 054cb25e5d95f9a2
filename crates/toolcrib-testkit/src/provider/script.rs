//! What the model does, step by step and independent of the API.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One action of the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Text for the user.
    Text(String),
    /// A thought, sent as a thinking block of the API. If the step must search first, the message with the search has a
    /// thinking block, too.
    Thinking(String),
    /// A call of a tool. If the tool is not declared in full, the model first searches for it, and then calls it
    /// directly or through the bridge, which is the function `tool_call`.
    Call {
        /// The client's name for the tool.
        tool: String,
        /// The arguments.
        #[serde(default)]
        arguments: Value,
        /// The query to use if the model must search for the tool. Default: the words of the tool's name.
        #[serde(default)]
        query: Option<String>,
    },
    /// A call of exactly this name, even if no such tool is declared.
    #[serde(rename = "blind")]
    ExactCall {
        /// The name to call.
        tool: String,
        /// The arguments, which may be something other than an object.
        arguments: Value,
    },
    /// A search that belongs to no call. It is skipped if the request declares no search.
    Search {
        /// The words to search for.
        query: String,
    },
    /// Text that consists of this prefix and the text of the newest tool results.
    Report(String),
}

impl Action {
    /// Creates an action that sends text to the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates an action that sends a thought as a thinking block of the API.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking(text.into())
    }

    /// Creates an action that calls a tool. If the model must search for the tool, the query consists of the words of
    /// the tool's name.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: None }
    }

    /// Creates an action that calls `tool`. If the model must search for the tool, it uses `query`.
    pub fn find(query: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: Some(query.into()) }
    }

    /// Creates an action that calls exactly this name, even if no such tool is declared.
    pub fn exact_call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::ExactCall { tool: tool.into(), arguments }
    }

    /// Creates a search that belongs to no call.
    pub fn search(query: impl Into<String>) -> Self {
        Self::Search { query: query.into() }
    }

    /// Creates an action that sends this prefix, followed by the text of the newest tool results.
    pub fn report(prefix: impl Into<String>) -> Self {
        Self::Report(prefix.into())
    }

    pub(crate) fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::ExactCall { .. })
    }
}

/// Why a message of the model ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The message was complete, or it called tools.
    #[default]
    Natural,
    /// The message reached the token limit.
    Length,
}

/// One message of the model, as the client sees it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// The actions, in order.
    #[serde(rename = "says")]
    pub actions: Vec<Action>,
    /// Why the message ends.
    #[serde(default)]
    pub stop: StopReason,
    /// Text that the model writes before each search that this step needs, such as "I'll look for a tool".
    #[serde(default)]
    pub preamble: Option<String>,
}

impl Step {
    /// Creates a step that ends normally.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self { actions: actions.into_iter().collect(), ..Self::default() }
    }

    /// Makes the message end at the token limit.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.stop = StopReason::Length;
        self
    }

    /// Sets the text that the model writes before each search.
    #[must_use]
    pub fn preamble(mut self, text: impl Into<String>) -> Self {
        self.preamble = Some(text.into());
        self
    }

    /// Whether the step only searches. If a proxy answers the searches, the client does not see such a step.
    pub(crate) fn only_searches(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Search { .. }))
            && self
                .actions
                .iter()
                .all(|action| matches!(action, Action::Search { .. } | Action::Thinking(_)))
    }
}

/// The model's side of a conversation.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// For each `goal: TOOL {ARGUMENTS}` in the newest user message with a goal, calls the tool. Then says `Done:
    /// RESULT`.
    #[default]
    Goal,
    /// Plays these steps, one per message.
    Steps(Vec<Step>),
}

impl Script {
    /// Creates a script of these steps.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::Steps(steps.into_iter().collect())
    }

    /// Returns the names of the tools that the steps of the script call. Empty for [`Script::Goal`], which has no fixed
    /// steps.
    pub(crate) fn tools(&self) -> Vec<String> {
        let steps = match self {
            Self::Goal => &[][..],
            Self::Steps(steps) => steps,
        };
        let calls = steps.iter().flat_map(|step| &step.actions).filter_map(|action| match action {
            Action::Call { tool, .. } => Some(tool.clone()),
            _ => None,
        });
        calls.collect()
    }
}
