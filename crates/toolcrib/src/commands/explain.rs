//! `toolcrib explain`: shows how the score of a tool was computed.

use std::sync::Arc;

use serde::Serialize;
use toolcrib_core::policy::{Verdict, VerdictReason};
use toolcrib_core::rank::{Explanation, Fit, ScorePart, Similarity, Tier};
use toolcrib_core::{Conversation, Crib, FourCharsPerToken, Query, Scope, TurnContext, WordQuery};

use super::tool_source::{ToolSource, find_tool};
use crate::args::ExplainArgs;
use crate::deep;
use crate::output::{Failure, Output};

/// Number of tools that are explained if the command line names no tool.
const DEFAULT_TOOLS: usize = 3;

#[derive(Serialize)]
struct ExplainReport {
    query: String,
    /// How well the best hit fits the query; `None` if the ranker cannot tell.
    #[serde(flatten)]
    judged: Option<JudgedFit>,
    tools: Vec<ExplainedTool>,
}

#[derive(Serialize)]
struct JudgedFit {
    fit: Fit,
    because: String,
}

#[derive(Serialize)]
struct ExplainedTool {
    /// Position in the ranking, from 1. `None` for a tool that does not match at all.
    rank: Option<usize>,
    #[serde(flatten)]
    explanation: Explanation,
    /// How the tool is shown to the model at the start of a conversation.
    shown: String,
}

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> Result<bool, Failure> {
    let counter = Arc::new(FourCharsPerToken);
    let ToolSource { crib, scope, .. } =
        ToolSource::load(&args.source, Some(&args.vectors), counter)?;
    if !args.fast {
        deep::embed_missing(&crib, "embedding tools");
    }
    let words = match crib.parse(&args.query, &scope) {
        Query::Words(words) => words,
        Query::Select(_) | Query::Browse => {
            let hint = "search for words; `select:` and an empty query are not ranked";
            return Err(Failure::input(
                format!("`{}`", args.query),
                &"this query is not ranked",
                hint,
            ));
        }
    };
    let ranked = crib.rank(&words, &scope, usize::MAX);
    let ids = match &args.tool {
        None => ranked.iter().take(DEFAULT_TOOLS).map(|hit| hit.id).collect(),
        Some(name) => vec![find_tool(&crib, &scope, name)?],
    };
    let mut tools = Vec::new();
    for id in ids {
        let Some(explanation) = crib.explain(&words, &scope, id) else { continue };
        let rank = ranked.iter().position(|hit| hit.id == id).map(|at| at + 1);
        tools.push(ExplainedTool {
            rank,
            shown: shown(&crib, &scope, &explanation.name),
            explanation,
        });
    }
    let is_any_ranked = tools.iter().any(|tool| tool.rank.is_some());
    let judged = crib.decide_fit(&ranked);
    let judged = judged.map(|by| JudgedFit { fit: by.fit, because: by.reason.to_string() });
    let report = ExplainReport { query: args.query.clone(), judged, tools };
    if output.is_json() {
        output.document(&report)?;
    } else {
        print(&words, args.tool.as_deref(), &report, output)?;
    }
    Ok(is_any_ranked)
}

fn shown(crib: &Crib, scope: &Scope, name: &str) -> String {
    let disclosure = crib.disclose(&TurnContext::new(scope), &mut Conversation::new());
    let verdict =
        disclosure.tools.iter().find(|shown| crib.catalog().tool(shown.id).name() == name);
    match verdict.map(|shown| &shown.verdict) {
        Some(Verdict::Full(VerdictReason::NotActive) | Verdict::Hidden) | None => {
            format!("in full: {}", disclosure.decision.reason)
        }
        Some(Verdict::Full(because)) => format!("in full: {because}"),
        Some(Verdict::Deferred(because)) => {
            format!("deferred: {because} ({})", disclosure.decision.reason)
        }
    }
}

fn print(
    words: &WordQuery,
    named: Option<&str>,
    report: &ExplainReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let tools = &report.tools;
    if let Some(named) = named.filter(|_| tools.is_empty()) {
        return output
            .line(&format!("`{named}` is not ranked: the model always sees its full definition"));
    }
    if tools.is_empty() {
        return output.line(&format!("no tool matches `{}`", words.text));
    }
    for (at, tool) in tools.iter().enumerate() {
        if at > 0 {
            output.line("")?;
        }
        let explanation = &tool.explanation;
        let rank = tool.rank.map_or("not ranked".to_owned(), |rank| format!("rank {rank}"));
        output.line(&format!("{}  {rank}", explanation.name))?;
        let mut parts: Vec<String> = explanation.words.iter().map(word_line).collect();
        let bonuses = [
            (explanation.pair_bonus, "adjacent words, as in the query"),
            (explanation.phrase_bonus, "quoted phrase"),
            (explanation.name_bonus, "share of its name that the query covers"),
            (explanation.server_bonus, "other tools of its server match too"),
            (explanation.filter_bonus, "passes the filter"),
            (explanation.substring_bonus, "its name contains the query"),
        ];
        let bonuses = bonuses.into_iter().filter(|(points, _)| *points > 0.0);
        parts.extend(bonuses.map(|(points, reason)| format!("{points:>10.4}  {reason}")));
        if let Some(both) = &explanation.similarity {
            parts = combined_lines(both, &parts);
        }
        parts.iter().try_for_each(|line| output.line(line))?;
        if explanation.exact_bonus > 0.0 {
            output.line(&format!("{:>10.4}  exact name", explanation.exact_bonus))?;
        }
        output.line(&format!("{:>10.4}  score", explanation.score))?;
        if let Some(line) = confidence_line(explanation) {
            output.line(&line)?;
        }
        if !explanation.unknown.is_empty() {
            let unknown = explanation.unknown.join(", ");
            output.line(&format!("{:>10}  words that occur in no tool: {unknown}", ""))?;
        }
        output.line(&format!("{:>10}  shown {}", "", tool.shown))?;
    }
    match &report.judged {
        Some(JudgedFit { fit, because }) => output.line(&format!("\nfit {fit}: {because}")),
        None => Ok(()),
    }
}

/// Formats the confidence and the values that it was computed from. Returns `None` if the ranker computes no
/// confidence.
fn confidence_line(explanation: &Explanation) -> Option<String> {
    let (confidence, coverage) = (explanation.confidence?, explanation.coverage?);
    let similarity = explanation.similarity.as_ref();
    let from = match similarity.and_then(|both| Some((both, both.top_similarity?))) {
        _ if explanation.exact_bonus > 0.0 => "the exact name".to_owned(),
        Some((both, top)) => {
            let background = match both.tier {
                Tier::Deep => format!(" (background {:.3})", both.background),
                _ => String::new(),
            };
            let gap = match both.gap {
                gap if gap > 0.0 => format!(", {gap:.3} points below the best"),
                _ => String::new(),
            };
            let general = match both.top_general {
                general if general >= 0.005 => format!(" or general tool {general:.2}"),
                _ => String::new(),
            };
            format!(
                "similarity {top:.3}{background}{general}{gap}, or query coverage {coverage:.2}, whichever gives more"
            )
        }
        None => format!("query coverage {coverage:.2}"),
    };
    Some(format!("{confidence:>10.4}  confidence, from {from}"))
}

/// Lists the contribution of each signal to the score. Below the line `words`, the parts of the word score are
/// indented. They add up to the word score, but not to the contribution on that line, which is on another scale.
fn combined_lines(both: &Similarity, words: &[String]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:>10.4}  words: score {:.4} (best score {:.4}, query weight {:.4})",
        both.words, both.word_score, both.best_word_score, both.query_weight
    )];
    lines.extend(words.iter().map(|line| format!("{:>12}{line}", "")));
    let needs = if both.needs_apart {
        format!(", half of it from the most similar of {} needs", both.needs)
    } else {
        String::new()
    };
    let cosines = match (both.tier, both.deep_cosine) {
        (Tier::Deep, Some(deep)) => {
            format!("cosine {deep:.3} (encoder), {:.3} (table)", both.cosine)
        }
        (Tier::Deep, None) => {
            format!("cosine {:.3} (table); the encoder's is estimated from it", both.cosine)
        }
        _ => format!("cosine {:.3} (table)", both.cosine),
    };
    lines.push(format!("{:>10.4}  meaning: {cosines}{needs}", both.vectors));
    if let Some(general) = both.general.as_ref().filter(|general| general.bonus >= 0.00005) {
        lines.push(format!(
            "{:>10.4}  general tool of type `{}`: the query needs one with probability {:.2}, the tool is one with {:.2}",
            general.bonus, general.name, general.request, general.tool
        ));
    }
    if both.coverage_bonus > 0.0 {
        lines.push(format!(
            "{:>10.4}  coverage of {} needs: it is the first hit, or serves a need that no hit before it serves",
            both.coverage_bonus, both.needs
        ));
    }
    lines
}

fn word_line(points: &ScorePart) -> String {
    let via = serde_json::to_value(points.via).unwrap_or_default();
    let via = match via.as_str() {
        Some("word") | None => String::new(),
        Some(via) => format!(" by {via} `{}`", points.term),
    };
    // This list is empty for rankers that treat a tool as one text without fields.
    let fields: Vec<String> = points
        .fields
        .iter()
        .map(|(field, weight)| {
            let field = serde_json::to_value(field).unwrap_or_default();
            format!("{} {weight:.2}", field.as_str().unwrap_or_default().replace('_', " "))
        })
        .collect();
    let fields =
        if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
    format!(
        "{:>10.4}  `{}`{via} = weight {:.2} x share {:.2} x rarity {:.3} x impact {:.3}{fields}",
        points.points, points.word, points.weight, points.share, points.idf, points.impact,
    )
}
