//! The default script. The user's message names tools, and the model calls them and reports the results.

use serde_json::{Deserializer, Value};

use crate::provider::parsed_request::{HistoryMessage, ParsedRequest};
use crate::provider::script::{Action, Step};

/// The text before each goal in a user message, for example `goal: weather__forecast {"city":"Oslo"}`. A message may
/// have several goals.
const GOAL_MARK: &str = "goal:";

/// Returns the steps of the newest message that has a goal, and the index of that message.
///
/// If the request has no goal or no tools, the only step is a short text, and the index is 0. Agents send requests
/// without tools to get a title for the conversation.
pub(crate) fn steps(request: &ParsedRequest) -> (Vec<Step>, usize) {
    let newest =
        request.messages.iter().enumerate().rev().find_map(|(at, message)| match message {
            HistoryMessage::User(text) if text.contains(GOAL_MARK) => Some((at, text)),
            _ => None,
        });
    match newest {
        Some((at, text)) if !request.tools.is_empty() => {
            let mut steps: Vec<Step> = text
                .split(GOAL_MARK)
                .skip(1)
                .filter_map(call)
                .map(|call| Step::new([call]))
                .collect();
            steps.push(Step::new([Action::report("Done: ")]));
            (steps, at)
        }
        _ => (vec![Step::new([Action::text("Hello.")])], 0),
    }
}

fn call(text: &str) -> Option<Action> {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(text.len());
    let (tool, rest) = text.split_at(end);
    if tool.is_empty() {
        return None;
    }
    let arguments = Deserializer::from_str(rest).into_iter::<Value>().next();
    let arguments = arguments.and_then(Result::ok).filter(Value::is_object).unwrap_or_default();
    Some(Action::call(tool, arguments))
}
