//! Fitting what was found into a reply.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Finds;
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

/// Characters of a description where only a signature is shown.
const BRIEF: usize = 400;
/// Servers that a browse or a miss may list, however few names.
const SERVERS: usize = 50;

/// How much of a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Schema,
    Signature,
    /// The description alone.
    Brief,
}

impl Crib {
    /// The full schema of one tool, by any spelling of its name.
    pub(crate) fn describe(&self, conversation: &mut Conversation, id: ToolId) -> Reply {
        let tool = self.catalog().tool(id);
        self.record(conversation, tool);
        Reply {
            query: format!("select:{}", tool.name()),
            fit: self.rates().then_some(Fit::Strong),
            hits: vec![self.found(&self.named(id), Detail::Schema)],
            loaded: vec![tool.name().to_owned()],
            named: true,
            described: true,
            format: self.settings().search.format,
            ..Reply::default()
        }
    }

    /// The reply to a search; what it shows is recorded.
    pub(super) fn answer(
        &self,
        turn: &TurnContext<'_>,
        conversation: &mut Conversation,
        query: String,
        finds: Finds,
        circling: LoopWarning,
    ) -> Reply {
        let mut reply = Reply {
            query,
            fit: finds.fit,
            missing: finds.missing,
            omitted: finds.omitted,
            did_you_mean: finds.corrections,
            notes: finds.notes,
            named: finds.picked.iter().all(|hit| finds.by_name.contains(&hit.id)),
            searched: self.searched(turn.scope).len(),
            format: self.settings().search.format,
            ..Reply::default()
        };
        let described = matches!(circling, LoopWarning::Describe(_));
        let wanted: Vec<(Hit, Detail)> = finds
            .picked
            .iter()
            .enumerate()
            .map(|(at, hit)| {
                let asked = finds.by_name.contains(&hit.id) || (at == 0 && described);
                (*hit, self.detail(conversation, hit.id, asked))
            })
            .collect();
        let fitted = self.with_room(&wanted);
        let schemas = fitted.iter().filter(|found| found.input_schema.is_some()).count();
        let signatures = fitted.iter().filter(|found| found.signature.is_some()).count();
        for (hit, _) in &wanted[fitted.len()..] {
            reply.omitted.push(self.catalog().tool(hit.id).name().to_owned());
        }
        for found in fitted {
            // A signature is no schema, unless the disclosure shows that one next. What the ledger
            // gets, the reply says: a transcript must tell the same.
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
            // Names that are nearly right need no list of all the others.
            reply.available = finds.lost.then(|| self.available(turn));
            reply.connecting = turn.connecting.to_vec();
            if !turn.connecting.is_empty() {
                reply
                    .notes
                    .push("Some servers are still connecting: search again in a moment.".into());
            }
        }
        nudge(conversation, circling, self.settings(), &mut reply);
        reply
    }

    /// How much of a tool a reply should show.
    fn detail(&self, conversation: &Conversation, id: ToolId, asked: bool) -> Detail {
        if asked {
            Detail::Schema
        } else if !self.settings().shows_schemas() {
            Detail::Brief
        } else if self.settings().search.known_last && self.is_visible(conversation, id) {
            Detail::Signature
        } else {
            Detail::Schema
        }
    }

    /// The first tool in full, as many others as the budget has room for as signatures, and then, in
    /// order, as many of those in full as it still has room for.
    fn with_room(&self, wanted: &[(Hit, Detail)]) -> Vec<FoundTool> {
        let mut room = self.settings().search.reply_tokens;
        let mut fitted: Vec<(FoundTool, usize)> = Vec::new();
        for (hit, detail) in wanted {
            let (best, least) = match detail {
                Detail::Brief => (Detail::Brief, Detail::Brief),
                detail if fitted.is_empty() => (*detail, Detail::Signature),
                _ => (Detail::Signature, Detail::Signature),
            };
            let fits = [best, least].into_iter().find_map(|detail| {
                let found = self.found(hit, detail);
                let size = self.size(&found);
                (size <= room).then_some((found, size))
            });
            let Some((found, size)) = fits else { break };
            room -= size;
            fitted.push((found, size));
        }
        for ((found, size), (hit, detail)) in fitted.iter_mut().zip(wanted) {
            if *detail == Detail::Schema && found.input_schema.is_none() {
                let full = self.found(hit, Detail::Schema);
                if let Some(left) = (room + *size).checked_sub(self.size(&full)) {
                    room = left;
                    *found = full;
                }
            }
        }
        fitted.into_iter().map(|(found, _)| found).collect()
    }

    fn size(&self, found: &FoundTool) -> usize {
        let schema = found.input_schema.as_ref().map(|raw| raw.get());
        let body = schema.or(found.signature.as_deref()).unwrap_or_default();
        let texts = [&found.name, found.server.as_deref().unwrap_or(""), &found.description, body];
        texts.iter().map(|text| self.counter().count(text)).sum()
    }

    fn found(&self, hit: &Hit, detail: Detail) -> FoundTool {
        let tool = self.catalog().tool(hit.id);
        let schema = match detail {
            Detail::Schema => RawValue::from_string(compact(tool.schema()).into_owned()).ok(),
            Detail::Signature | Detail::Brief => None,
        };
        let description = match &schema {
            Some(_) => tool.description().to_owned(),
            None => shorten(tool.description(), BRIEF).into_owned(),
        };
        let signature =
            (detail == Detail::Signature).then(|| signature::bounded(&tool.schema_value()));
        FoundTool {
            name: tool.name().to_owned(),
            server: tool.server().map(str::to_owned),
            description,
            score: hit.score,
            confidence: hit.confidence.map(|confidence| (confidence * 100.0).round() / 100.0),
            input_schema: schema,
            signature,
            annotations: tool.annotations(),
            unavailable: None,
        }
    }

    /// What there is to be found for this caller: all names, or servers and sizes where that is too
    /// much.
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
        // Too many servers to name: the largest ones. Who wants no names still wants servers.
        let most = search.names.max(SERVERS);
        if servers.len() > most {
            servers.sort_by(|a, b| b.tools.cmp(&a.tools).then_with(|| a.server.cmp(&b.server)));
            servers.truncate(most);
        }
        AvailableTools::Servers(servers)
    }

    /// Whether the model has this tool's schema before it.
    pub(super) fn is_visible(&self, conversation: &Conversation, id: ToolId) -> bool {
        self.policy(id) == DeferPolicy::Never || conversation.ledger.has(self.catalog().tool(id))
    }
}

/// Tells a model that goes in circles so.
fn nudge(
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
            DisclosureKind::Bridge => {
                format!("call it, directly or through {}", settings.own_names.call)
            }
            _ => "call it".to_owned(),
        };
        reply.notes.push(format!("The first hit is described in full: {how}."));
    }
}
