//! Merges the complete responses of several Responses rounds into one.
//!
//! The client gets the id of the last response. The API stores the complete turn under that id, so hidden rounds need
//! not be restored if the client continues from it.

use serde_json::Value;
use toolcrib_text::json::{self, Fields};

use super::echo_restorer::EchoRestorer;
use super::item_decision::{ClientItem, decide_item};
use crate::call_router::CallRouter;
use crate::dialect::{ResponseMerger, Round, RoundEnd};
use crate::splice::{range_of, splice};

/// Merges the responses of a turn.
#[derive(Debug)]
pub(super) struct ResponsesResponseMerger {
    echo: EchoRestorer,
    /// The response of the last round, as it was received.
    body: String,
    rounds: usize,
    /// The items for the client, from all rounds.
    output: Vec<String>,
    /// Whether any item was hidden from the client or rewritten.
    altered: bool,
    usage: Option<Value>,
}

impl ResponsesResponseMerger {
    pub(super) fn new(echo: EchoRestorer) -> Self {
        Self {
            echo,
            body: String::new(),
            rounds: 0,
            output: Vec::new(),
            altered: false,
            usage: None,
        }
    }
}

impl ResponseMerger for ResponsesResponseMerger {
    fn add_round(&mut self, body: &str, router: &mut CallRouter) -> Option<Round> {
        let fields = Fields::read(body)?;
        let output = json::items(fields.get("output")?)?;
        self.rounds += 1;
        body.clone_into(&mut self.body);
        let mut entries = Vec::with_capacity(output.len());
        for item in output {
            let decision = decide_item(item.get(), false, &self.echo, router);
            entries.extend(decision.entry);
            self.altered |= decision.client != ClientItem::AsReceived;
            match decision.client {
                ClientItem::AsReceived => self.output.push(item.get().to_owned()),
                ClientItem::Rewritten(text) => self.output.push(text),
                ClientItem::Hidden => {}
            }
        }
        let usage = super::usage::add(&fields, &mut self.usage);
        let end = round_end(&fields.string("status").unwrap_or_default());
        let response = fields.string("id").filter(|_| self.echo.is_stored);
        Some(Round { entries, end, usage, response })
    }

    fn finish(&mut self, router: &CallRouter) -> String {
        let body = std::mem::take(&mut self.body);
        let Some(fields) = Fields::read(&body) else { return body };
        let altered = self.rounds > 1 || self.altered;
        if router.toolset().passes_through() && !altered {
            return body;
        }
        let mut changes = self.echo.restore(&body, &fields, router.toolset());
        if altered {
            let output = fields.get("output").map(|raw| range_of(&body, raw));
            changes.extend(output.map(|at| (at, format!("[{}]", self.output.join(",")))));
            let usage = fields.get("usage").map(|raw| range_of(&body, raw));
            changes.extend(usage.zip(self.usage.as_ref().map(Value::to_string)));
        }
        splice(&body, changes)
    }
}

/// Returns how a response ended, according to its `status`.
pub(super) fn round_end(status: &str) -> RoundEnd {
    match status {
        "incomplete" => RoundEnd::Truncated,
        "failed" | "cancelled" => RoundEnd::Failed,
        _ => RoundEnd::Complete,
    }
}
