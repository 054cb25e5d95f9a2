//! What a model means to do, step by step and in no dialect.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing the model actions.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Text for the user.
    Text(String),
    /// A thought, in the dialect's own block. A search that this step needs first thinks as well.
    Thinking(String),
    /// The intent to use a tool, by whatever way the request offers.
    Call {
        /// The client's name of the tool.
        tool: String,
        /// What to call it with.
        #[serde(default)]
        arguments: Value,
        /// What to search for if the tool must be found first; the words of its name otherwise.
        #[serde(default)]
        query: Option<String>,
    },
    /// A call by exactly this name, declared or not.
    #[serde(rename = "blind")]
    ExactCall {
        /// The name to call.
        tool: String,
        /// What to call it with; may be no object at all.
        arguments: Value,
    },
    /// A search for its own sake. Left out where no search is declared.
    Search {
        /// The words to search for.
        query: String,
    },
    /// This prefix and the text of the newest tool results.
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

    /// The intent to use a tool; searched for by the words of its name.
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: None }
    }

    /// The intent to use a tool, searched for by these words.
    pub fn find(query: impl Into<String>, tool: impl Into<String>, arguments: Value) -> Self {
        Self::Call { tool: tool.into(), arguments, query: Some(query.into()) }
    }

    /// A call by exactly this name.
    pub fn exact_call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::ExactCall { tool: tool.into(), arguments }
    }

    /// A search for its own sake.
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

/// Why a turn of the model ended.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done, or it called.
    #[default]
    Natural,
    /// It ran into the limit of tokens.
    Length,
}

/// One turn of the model as the client sees it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// What it actions, in order.
    #[serde(rename = "says")]
    pub actions: Vec<Action>,
    /// Why it ends.
    #[serde(default)]
    pub stop: StopReason,
    /// Text that opens each search this step needs first ("I'll look for a tool").
    #[serde(default)]
    pub preamble: Option<String>,
}

impl Step {
    /// A step that ends by itself.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self { actions: actions.into_iter().collect(), ..Self::default() }
    }

    /// The same step, cut by the limit of tokens.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.stop = StopReason::Length;
        self
    }

    /// The same step, whose searches open with this text.
    #[must_use]
    pub fn preamble(mut self, text: impl Into<String>) -> Self {
        self.preamble = Some(text.into());
        self
    }

    /// Whether the client would see nothing of this step behind a proxy that answers searches.
    pub(crate) fn only_searches(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Search { .. }))
            && self
                .actions
                .iter()
                .all(|action| matches!(action, Action::Search { .. } | Action::Thinking(_)))
    }
}

/// A conversation from the model's side.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// Does what each user message names: `goal: TOOL {ARGUMENTS}`, then `Done: RESULT`.
    #[default]
    Goal,
    /// These steps, one per turn.
    Steps(Vec<Step>),
}

impl Script {
    /// A script of steps.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::Steps(steps.into_iter().collect())
    }

    /// The tools that the script means to use.
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
