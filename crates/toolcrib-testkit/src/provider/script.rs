//! What the model does, step by step and independent of the dialect.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One action of the model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Text for the user.
    Text(String),
    /// A thought, as a thinking block of the dialect. If the step must search first, the message with the search has a
    /// thought, too.
    Thinking(String),
    /// Uses a tool, in whatever way the request offers.
    Call {
        /// The client's name for the tool.
        tool: String,
        /// The arguments.
        #[serde(default)]
        arguments: Value,
        /// The query if the tool must be searched for. Default: the words of its name.
        #[serde(default)]
        query: Option<String>,
    },
    /// A call of exactly this name, declared or not.
    #[serde(rename = "blind")]
    ExactCall {
        /// The name to call.
        tool: String,
        /// The arguments; need not be an object.
        arguments: Value,
    },
    /// A search that no call needs. Skipped if no search is declared.
    Search {
        /// The words to search for.
        query: String,
    },
    /// This prefix, followed by the text of the newest tool results.
    Report(String),
}

impl Action {
    /// Text for the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A thought.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking(text.into())
    }

    /// Uses a tool. If it must be searched for, the query is the words of its name.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: None }
    }

    /// Uses a tool. If it must be searched for, this is the query.
    pub fn find(query: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: Some(query.into()) }
    }

    /// A call of exactly this name.
    pub fn exact_call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::ExactCall { tool: tool.into(), arguments }
    }

    /// A search that no call needs.
    pub fn search(query: impl Into<String>) -> Self {
        Self::Search { query: query.into() }
    }

    /// A prefix and the newest results.
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
    /// It was complete, or it called tools.
    #[default]
    Natural,
    /// It reached the token limit.
    Length,
}

/// One message of the model, as the client sees it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// The actions, in order.
    #[serde(rename = "says")]
    pub actions: Vec<Action>,
    /// Why it ends.
    #[serde(default)]
    pub stop: StopReason,
    /// Text before each search that this step needs ("I'll look for a tool").
    #[serde(default)]
    pub preamble: Option<String>,
}

impl Step {
    /// A step that ends normally.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self { actions: actions.into_iter().collect(), ..Self::default() }
    }

    /// The same step, truncated by the token limit.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.stop = StopReason::Length;
        self
    }

    /// The same step, with this text before its searches.
    #[must_use]
    pub fn preamble(mut self, text: impl Into<String>) -> Self {
        self.preamble = Some(text.into());
        self
    }

    /// Whether the step only searches. Behind a proxy that answers searches, the client sees nothing of such a step.
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
    /// Does what each user message names: `goal: TOOL {ARGUMENTS}`, then `Done: RESULT`.
    #[default]
    Goal,
    /// These steps, one per message.
    Steps(Vec<Step>),
}

impl Script {
    /// A script of steps.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::Steps(steps.into_iter().collect())
    }

    /// The tools that the script uses.
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
