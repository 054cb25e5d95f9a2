//! `toolcrib explain`: why this tool, and not that one.

use serde::Serialize;
use toolcrib_core::policy::{Verdict, VerdictReason};
use toolcrib_core::rank::{Explanation, Fit, ScorePart, Similarity};
use toolcrib_core::{CallOutcome, Conversation, Crib, Query, Scope, TurnContext, Words};

use crate::args::ExplainArgs;
use crate::load;
use crate::output::{Failure, Output};

/// Tools that are explained when none is named.
const FIRST: usize = 3;

#[derive(Serialize)]
struct Answer {
    query: String,
    /// Whether a search would answer it, where the ranker can tell.
    #[serde(flatten)]
    judged: Option<Judged>,
    tools: Vec<Explained>,
}

#[derive(Serialize)]
struct Judged {
    fit: Fit,
    because: String,
}

#[derive(Serialize)]
struct Explained {
    /// The place in the ranking, from 1; none for a tool that does not fit at all.
    rank: Option<usize>,
    #[serde(flatten)]
    explanation: Explanation,
    /// What would become of the tool in a conversation that begins now.
    shown: String,
}

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> Result<bool, Failure> {
    let crib = load::ranker(&args.source, &args.vectors)?;
    let scope = Scope::all(crib.catalog());
    let words = match crib.parse(&args.query, &scope) {
        Query::Words(words) => words,
        Query::Select(_) | Query::Browse => {
            let hint = "give words; `select:` and an empty query are not ranked";
            return Err(Failure::input(format!("`{}`", args.query), &"nothing to rank", hint));
        }
    };
    let ranked = crib.rank(&words, &scope, usize::MAX);
    let ids = match &args.tool {
        None => ranked.iter().take(FIRST).map(|hit| hit.id).collect(),
        Some(name) => vec![resolve(&crib, &scope, name)?],
    };
    let mut tools = Vec::new();
    for id in ids {
        let Some(explanation) = crib.explain(&words, &scope, id) else { continue };
        let rank = ranked.iter().position(|hit| hit.id == id).map(|at| at + 1);
        tools.push(Explained { rank, shown: shown(&crib, &scope, &explanation.name), explanation });
    }
    let said = tools.iter().any(|tool| tool.rank.is_some());
    let judged = crib.judge(&ranked);
    let judged = judged.map(|by| Judged { fit: by.fit, because: by.reason.to_string() });
    let answer = Answer { query: args.query.clone(), judged, tools };
    if output.is_json() {
        output.document(&answer)?;
    } else {
        print(&words, args.tool.as_deref(), &answer, output)?;
    }
    Ok(said)
}

/// The tool of any spelling, found the way a model's own call would find it.
fn resolve(crib: &Crib, scope: &Scope, name: &str) -> Result<toolcrib_core::ToolId, Failure> {
    let input = serde_json::json!({ "name": name }).to_string();
    match crib.handle(&TurnContext::new(scope), &mut Conversation::new(), "tool_describe", &input) {
        CallOutcome::Answer(reply) => {
            reply.loaded.first().and_then(|name| crib.catalog().find(name)).ok_or_else(|| {
                Failure::input(
                    format!("`{name}`"),
                    &"no such tool",
                    "browse with `toolcrib search ''`",
                )
            })
        }
        CallOutcome::Refused(refusal) => {
            let hint = match &refusal.nearest[..] {
                [] => "list the names with `toolcrib search ''`".to_owned(),
                names => format!("did you mean {}?", names.join(", ")),
            };
            Err(Failure::input(format!("`{name}`"), &refusal.message, hint))
        }
        CallOutcome::Run(_) => {
            Err(Failure::input(format!("`{name}`"), &"not described", "report this bug"))
        }
    }
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
    words: &Words,
    named: Option<&str>,
    answer: &Answer,
    output: &mut Output,
) -> Result<(), Failure> {
    let tools = &answer.tools;
    if let Some(named) = named.filter(|_| tools.is_empty()) {
        return output.line(&format!("`{named}` is not searched: the model always has it in full"));
    }
    if tools.is_empty() {
        return output.line(&format!("nothing fits `{}`", words.text));
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
            (explanation.pair_bonus, "words side by side, as asked"),
            (explanation.phrase_bonus, "quoted phrase"),
            (explanation.name_bonus, "share of the name that was asked for"),
            (explanation.server_bonus, "neighbours on its server fit too"),
            (explanation.filter_bonus, "passes the filter"),
            (explanation.substring_bonus, "the whole query stands in its name"),
        ];
        let bonuses = bonuses.into_iter().filter(|(points, _)| *points > 0.0);
        parts.extend(bonuses.map(|(points, reason)| format!("{points:>10.4}  {reason}")));
        if let Some(both) = &explanation.similarity {
            parts = of_both(both, &parts);
        }
        parts.iter().try_for_each(|line| output.line(line))?;
        if explanation.exact_bonus > 0.0 {
            output.line(&format!("{:>10.4}  named outright", explanation.exact_bonus))?;
        }
        output.line(&format!("{:>10.4}  score", explanation.score))?;
        if let Some(line) = confidence_line(explanation) {
            output.line(&line)?;
        }
        if !explanation.unknown.is_empty() {
            output.line(&format!("{:>10}  in no tool: {}", "", explanation.unknown.join(", ")))?;
        }
        output.line(&format!("{:>10}  shown {}", "", tool.shown))?;
    }
    match &answer.judged {
        Some(Judged { fit, because }) => output.line(&format!("\nfit {fit}: {because}")),
        None => Ok(()),
    }
}

/// How sure the tool is, and what that is made from.
fn confidence_line(explanation: &Explanation) -> Option<String> {
    let (confidence, coverage) = (explanation.confidence?, explanation.coverage?);
    let nearness = explanation.similarity.as_ref();
    let from = match nearness.and_then(|both| both.confidence_similarity) {
        _ if explanation.exact_bonus > 0.0 => "being named outright".to_owned(),
        Some(near) => {
            format!("near {near:.3} or {coverage:.2} of what the query weighs, whichever says more")
        }
        None => format!("{coverage:.2} of what the query weighs"),
    };
    Some(format!("{confidence:>10.4}  confidence, from {from}"))
}

/// What each signal gave. What the words' part is made of stands below it, set in: measured otherwise, it
/// adds up to the word score.
fn of_both(both: &Similarity, words: &[String]) -> Vec<String> {
    let mut lines = vec![format!(
        "{:>10.4}  words, {:.4} where the best has {:.4} and all that was asked weighs {:.4}",
        both.words, both.word_score, both.best_word_score, both.query_weight
    )];
    lines.extend(words.iter().map(|line| format!("{:>12}{line}", "")));
    let needs = if both.needs_apart {
        format!(", with the nearest of {} needs for half", both.needs)
    } else {
        String::new()
    };
    lines.push(format!("{:>10.4}  meaning, cosine {:.3}{needs}", both.vectors, both.cosine));
    if both.coverage_bonus > 0.0 {
        lines.push(format!(
            "{:>10.4}  its place among tools for {} needs: the first, or near to one that no hit before it is near to",
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
    // To a ranker without fields a tool is one text.
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
