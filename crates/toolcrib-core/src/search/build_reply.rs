//! Builds the reply to a search within its token budget.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::SearchResults;
use crate::catalog::ToolId;
use crate::conversation::{Conversation, LoopWarning};
use crate::crib::Crib;
use crate::disclosure::DisclosureKind;
use crate::rank::{Fit, Hit};
use crate::reply::{AvailableTools, FoundTool, Reply, ServerSize};
use crate::settings::Settings;
use crate::signature;
use crate::tool::DeferPolicy;
use crate::turn_context::TurnContext;
use toolcrib_text::json::{compact, data};
use toolcrib_text::shorten;

/// Maximum length of a description that is shown without a schema, in characters.
const MAX_BRIEF_CHARS: usize = 400;
/// A reply without hits lists at most this many servers, or `SearchSettings::names` servers if that is more.
const MAX_LISTED_SERVERS: usize = 50;

/// How much of a tool a reply shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DetailLevel {
    Schema,
    Signature,
    /// Only the description, without schema or signature.
    Brief,
}

impl Crib {
    /// The reply to a call of `tool_describe`, with the full schema of one tool.
    pub(crate) fn describe(&self, conversation: &mut Conversation, id: ToolId) -> Reply {
        let tool = self.catalog().tool(id);
        self.record(conversation, tool);
        Reply {
            query: format!("select:{}", tool.name()),
            fit: self.has_confidence().then_some(Fit::Strong),
            hits: vec![self.found_tool(&self.hit_by_name(id), DetailLevel::Schema)],
            loaded: vec![tool.name().to_owned()],
            named: true,
            described: true,
            format: self.settings().search.format,
            ..Reply::default()
        }
    }

    /// Builds the reply to a search and records the tools that it shows.
    pub(super) fn build_reply(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        query: String,
        results: SearchResults,
        circling: LoopWarning,
    ) -> Reply {
        let mut reply = Reply {
            query,
            fit: results.fit,
            missing: results.missing,
            omitted: results.omitted,
            did_you_mean: results.corrections,
            notes: results.notes,
            named: results.picked.iter().all(|hit| results.by_name.contains(&hit.id)),
            searched: self.searched(turn.scope).len(),
            format: self.settings().search.format,
            ..Reply::default()
        };
        let described = matches!(circling, LoopWarning::Describe(_));
        let wanted: Vec<(Hit, DetailLevel)> = results
            .picked
            .iter()
            .enumerate()
            .map(|(at, hit)| {
                let asked = results.by_name.contains(&hit.id) || (at == 0 && described);
                (*hit, self.detail(conversation, hit.id, asked))
            })
            .collect();
        let fitted = self.fit_into_budget(&wanted);
        let schemas = fitted.iter().filter(|found| found.input_schema.is_some()).count();
        let signatures = fitted.iter().filter(|found| found.signature.is_some()).count();
        for (hit, _) in &wanted[fitted.len()..] {
            reply.omitted.push(self.catalog().tool(hit.id).name().to_owned());
        }
        for found in fitted {
            // If only the signature of a tool is shown, the tool is loaded only if its schema will be shown from the
            // next turn on. `loaded` must contain what the ledger records, because the ledger may be rebuilt from a
            // transcript.
            if found.input_schema.is_some() || self.settings().shows_revealed() {
                reply.loaded.push(found.name.clone());
            }
            reply.hits.push(found);
        }
        self.reveal(&mut conversation.ledger, &reply.loaded);
        if signatures > 0 {
            let way = match self.settings().disclosure_kind() {
                DisclosureKind::Bridge => {
                    format!("`select:NAME` or {}", self.settings().own_names.describe)
                }
                _ => "`select:NAME`".to_owned(),
            };
            let told = format!("{schemas} with the full schema, {signatures} as a signature");
            reply.notes.push(format!("{told}; {way} gives the full one."));
        }
        if reply.hits.is_empty() {
            // What is available is listed only if there are no similar names to suggest.
            reply.available = results.found_nothing.then(|| self.available(turn));
            reply.connecting = turn.connecting.to_vec();
            if !turn.connecting.is_empty() {
                reply
                    .notes
                    .push("Some servers are still connecting: search again in a moment.".into());
            }
        }
        add_loop_advice(conversation, circling, self.settings(), &mut reply);
        reply
    }

    /// How much of a tool the reply should show.
    fn detail(&self, conversation: &Conversation, id: ToolId, by_name: bool) -> DetailLevel {
        if by_name {
            DetailLevel::Schema
        } else if !self.settings().shows_schemas() {
            DetailLevel::Brief
        } else if self.settings().search.known_last && self.is_visible(conversation, id) {
            DetailLevel::Signature
        } else {
            DetailLevel::Schema
        }
    }

    /// Fits the tools into the token budget. The first tool is shown in full if it fits, and the others with their
    /// signatures, until the budget is used up. If there is room left, signatures are replaced with full schemas, in
    /// order.
    fn fit_into_budget(&self, wanted: &[(Hit, DetailLevel)]) -> Vec<FoundTool> {
        let mut room = self.settings().search.reply_tokens;
        let mut fitted: Vec<(FoundTool, usize)> = Vec::new();
        for (hit, detail) in wanted {
            let (best, least) = match detail {
                DetailLevel::Brief => (DetailLevel::Brief, DetailLevel::Brief),
                detail if fitted.is_empty() => (*detail, DetailLevel::Signature),
                _ => (DetailLevel::Signature, DetailLevel::Signature),
            };
            let fits = [best, least].into_iter().find_map(|detail| {
                let found = self.found_tool(hit, detail);
                let size = self.token_size(&found);
                (size <= room).then_some((found, size))
            });
            let Some((found, size)) = fits else { break };
            room -= size;
            fitted.push((found, size));
        }
        for ((found, size), (hit, detail)) in fitted.iter_mut().zip(wanted) {
            if *detail == DetailLevel::Schema && found.input_schema.is_none() {
                let full = self.found_tool(hit, DetailLevel::Schema);
                if let Some(left) = (room + *size).checked_sub(self.token_size(&full)) {
                    room = left;
                    *found = full;
                }
            }
        }
        fitted.into_iter().map(|(found, _)| found).collect()
    }

    fn token_size(&self, found: &FoundTool) -> usize {
        let schema = found.input_schema.as_ref().map(|raw| raw.get());
        let body = schema.or(found.signature.as_deref()).unwrap_or_default();
        let meta = found.meta.as_ref().map_or("", |meta| meta.get());
        let server = found.server.as_deref().unwrap_or_default();
        let texts = [&found.name, server, &found.description, body, meta];
        texts.iter().map(|text| self.counter().count(text)).sum()
    }

    fn found_tool(&self, hit: &Hit, detail: DetailLevel) -> FoundTool {
        let tool = self.catalog().tool(hit.id);
        let schema = match detail {
            DetailLevel::Schema => RawValue::from_string(compact(tool.schema()).into_owned()).ok(),
            DetailLevel::Signature | DetailLevel::Brief => None,
        };
        let description = match &schema {
            Some(_) => tool.description().to_owned(),
            None => shorten(tool.description(), MAX_BRIEF_CHARS).into_owned(),
        };
        let signature =
            (detail == DetailLevel::Signature).then(|| signature::bounded(&tool.schema_value()));
        FoundTool {
            name: tool.name().to_owned(),
            server: tool.server().map(str::to_owned),
            description,
            score: hit.score,
            confidence: hit.confidence.map(|confidence| (confidence * 100.0).round() / 100.0),
            input_schema: schema,
            signature,
            annotations: tool.annotations(),
            meta: tool.app_meta(),
            call: self.call_tool(tool),
            unavailable: None,
        }
    }

    /// The tools that this caller can search. If there are too many names, the servers and their sizes are returned
    /// instead.
    fn available(&self, turn: &TurnContext<'_>) -> AvailableTools {
        let catalog = self.catalog();
        let search = &self.settings().search;
        let scope = self.searched(turn.scope);
        if scope.len() <= search.names {
            let mut names: Vec<_> =
                scope.ids().map(|id| catalog.tool(id).name().to_owned()).collect();
            names.sort_unstable();
            return AvailableTools::Names(names);
        }
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for id in scope.ids() {
            *sizes.entry(catalog.tool(id).server().unwrap_or_default()).or_default() += 1;
        }
        let size = |(server, tools): (&str, usize)| ServerSize { server: server.to_owned(), tools };
        let mut servers: Vec<_> = sizes.into_iter().map(size).collect();
        // If there are too many servers, only the largest are listed. Servers are listed even if the limit for names is
        // 0.
        let most = search.names.max(MAX_LISTED_SERVERS);
        if servers.len() > most {
            servers.sort_by(|a, b| b.tools.cmp(&a.tools).then_with(|| a.server.cmp(&b.server)));
            servers.truncate(most);
        }
        AvailableTools::Servers(servers)
    }

    /// Whether the model already has the schema of this tool.
    pub(super) fn is_visible(&self, conversation: &Conversation, id: ToolId) -> bool {
        self.policy(id) == DeferPolicy::Never || conversation.ledger.has(self.catalog().tool(id))
    }
}

/// Adds advice to the reply if the model keeps searching without calling a tool.
fn add_loop_advice(
    conversation: &Conversation,
    circling: LoopWarning,
    settings: &Settings,
    reply: &mut Reply,
) {
    let (LoopWarning::Nudge(times) | LoopWarning::Describe(times)) = circling else { return };
    let tried: Vec<_> = conversation.guard.queries().map(data).collect();
    let tried = tried.join(", ");
    let advice = match (reply.hits.first(), &reply.available) {
        (Some(best), _) => {
            format!("Call {} if it serves, or say what is missing.", data(&best.name))
        }
        (None, Some(AvailableTools::Names(_))) => {
            "Load one of the available names with select:NAME, or say what is missing.".into()
        }
        (None, _) => "Say what is missing.".into(),
    };
    reply.notes.push(format!("{times} searches without a call: {tried}. {advice}"));
    if matches!(circling, LoopWarning::Describe(_)) && !reply.hits.is_empty() {
        let how = match settings.disclosure_kind() {
            DisclosureKind::Bridge if settings.split_calls => {
                "call it through the tool that `call` names".to_owned()
            }
            DisclosureKind::Bridge => {
                format!("call it, directly or through {}", settings.own_names.call)
            }
            _ => "call it".to_owned(),
        };
        reply.notes.push(format!("The first hit is described in full: {how}."));
    }
}
