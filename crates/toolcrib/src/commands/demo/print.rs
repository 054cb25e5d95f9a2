//! Prints the conversation as text.

use serde_json::Value;
use toolcrib_core::disclosure::DisclosureKind;
use toolcrib_core::listing::{ListingForm, ListingPlacement};
use toolcrib_core::rank::Explanation;
use toolcrib_core::reply::{AvailableTools, Reply};
use toolcrib_core::{Crib, Disclosure};
use toolcrib_text::{first_sentence, shorten};

use super::script::{DemoResult, DemoTurn, ISSUE};
use super::{DemoReport, TokenTotal, saved};
use crate::output::{Failure, Output};
use crate::terminal;

/// Maximum width of the text, in columns.
const MAX_WIDTH: usize = 100;
/// Maximum number of lines of the listing that are shown.
const MAX_LISTING_LINES: usize = 6;
/// Maximum number of hits of a search that are shown.
const MAX_HITS: usize = 3;

/// Returns the width to which the text is shortened, in columns.
fn width() -> usize {
    terminal::width().min(MAX_WIDTH)
}

pub(super) fn print(
    report: &DemoReport,
    crib: &Crib,
    shown: &Disclosure,
    output: &mut Output,
) -> Result<(), Failure> {
    output.wrapped(&format!(
        "{} tools on {} servers cost {} tokens on every turn ({}): {:.1} % of a {}-token context.",
        report.tools,
        report.servers,
        grouped(report.tokens),
        report.counter,
        100.0 * report.tokens as f64 / report.context as f64,
        grouped(report.context),
    ))?;
    print_first_turn(report, crib, shown, output)?;
    output.wrapped(&format!("\nThe task: \"{}\"", report.task))?;
    for (at, turn) in report.turns.iter().enumerate() {
        let (tokens, change) = (grouped(turn.tokens), change(report.tokens, turn.tokens));
        output.wrapped(&format!("\nTurn {}: {tokens} tokens of tools, {change}", at + 1))?;
        print_turn(turn, output)?;
    }
    let TokenTotal { turns, tokens } = &report.without;
    output.wrapped("\nAll turns together:")?;
    output.wrapped(&format!(
        "  without  {turns:>2} turns  {:>9} tokens of tools",
        grouped(*tokens)
    ))?;
    let TokenTotal { turns, tokens } = &report.with;
    let change = change(report.without.tokens, *tokens);
    output.wrapped(&format!(
        "  with     {turns:>2} turns  {:>9} tokens of tools, {change}",
        grouped(*tokens)
    ))?;
    let more = turns - report.without.turns;
    let least = grouped(report.first_turn);
    let remark = format!(
        "Searching took {more} more turns, each with at least {least} tokens. The replies to searches \
         count on every later turn. The misspelled call counts on both sides."
    );
    output.line(&terminal::wrap(&remark, width()))
}

/// Prints what the model sees instead of the full tool definitions.
fn print_first_turn(
    report: &DemoReport,
    crib: &Crib,
    shown: &Disclosure,
    output: &mut Output,
) -> Result<(), Failure> {
    let tokens = grouped(report.first_turn);
    let change = change(report.tokens, report.first_turn);
    if shown.passes_through() {
        return output.wrapped(&format!("Nothing is deferred: {}.", shown.decision.reason));
    }
    let own: Vec<&str> = shown.own_tools.iter().map(|own| own.name).collect();
    let own = own.join(", ");
    let instead = match shown.kind {
        DisclosureKind::Bridge => format!("The model sees {own} instead"),
        DisclosureKind::Append => {
            format!("The model sees {own}, and tools are added as it finds them")
        }
        DisclosureKind::Reveal => {
            format!("The model sees {own}, and every tool with a stub schema")
        }
        DisclosureKind::Terse => {
            format!("The model sees {own}; descriptions become {}", crib.settings().mark)
        }
    };
    output.wrapped(&format!("{instead}: {tokens} tokens, {change}."))?;
    let Some(listing) = &shown.listing else {
        let example = crib.catalog().find(ISSUE);
        let example = shown.tools.iter().find(|tool| Some(tool.id) == example);
        return match example.and_then(|tool| tool.definition.as_deref()) {
            Some(definition) => {
                output.wrapped("One of them:\n")?;
                let definition = brief(definition);
                let lines = json_lines(&definition, width() - 2);
                lines.into_iter().try_for_each(|line| output.line(&format!("  {line}")))
            }
            None => Ok(()),
        };
    };
    let place = match (listing.form, crib.settings().listing.placement) {
        (ListingForm::Groups | ListingForm::Count, _) => "This is all that it sees of the tools:\n",
        (_, ListingPlacement::Message) => "A message lists the tools:\n",
        _ => "The description of tool_search contains the listing:\n",
    };
    output.line(place)?;
    for line in listing.text.lines().take(MAX_LISTING_LINES) {
        output.wrapped(&format!("  {}", cut(line, 2)))?;
    }
    match listing.text.lines().count().saturating_sub(MAX_LISTING_LINES) {
        0 => Ok(()),
        more => output.wrapped(&format!("  … and {more} more lines")),
    }
}

/// Shortens a tool definition to a single line. The description is cut first, so that more of the schema fits.
fn brief(definition: &str) -> String {
    let mut tool: Value = serde_json::from_str(definition).unwrap_or_default();
    if let Some(Value::String(text)) = tool.get_mut("description") {
        *text = shorten(text, 24).into_owned();
    }
    // The `server` field is removed, because the tool's name already contains the server's name.
    if let Some(fields) = tool.as_object_mut() {
        fields.shift_remove("server");
    }
    shorten(&compact(&tool), 2 * width() - 4).into_owned()
}

/// Breaks JSON after commas into lines of at most `width` characters. A line without a comma is longer.
fn json_lines(json: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = json;
    while let Some((end, _)) = rest.char_indices().nth(width) {
        let Some(comma) = rest[..end].rfind(',').or_else(|| rest.find(',')) else { break };
        let (line, after) = rest.split_at(comma + 1);
        lines.push(line);
        rest = after;
    }
    lines.push(rest);
    lines
}

fn print_turn(turn: &DemoTurn, output: &mut Output) -> Result<(), Failure> {
    if !turn.tool.is_empty() {
        let input = compact(&turn.input);
        output.wrapped(&format!("  > {}", cut(&format!("{} {input}", turn.tool), 4)))?;
    }
    match &turn.got {
        DemoResult::Answer { reply, why } => print_reply(reply, why.as_deref(), output),
        DemoResult::Run { name, arguments } => output
            .wrapped(&format!("    runs {}", cut(&format!("{name} {}", compact(arguments)), 9))),
        DemoResult::Refused(refusal) => {
            output.wrapped(&format!("    refused: {}", refusal.message))?;
            output.wrapped(&format!("    hint: {}", refusal.hint))
        }
        DemoResult::Done => output.wrapped("    answers the user"),
    }
}

fn print_reply(
    reply: &Reply,
    why: Option<&Explanation>,
    output: &mut Output,
) -> Result<(), Failure> {
    for hit in reply.hits.iter().take(MAX_HITS) {
        let confidence = hit.confidence.filter(|_| hit.score > 0.0);
        let score = match confidence {
            Some(confidence) => format!(" {:.2}, confidence {confidence:.2}", hit.score),
            None if hit.score > 0.0 => format!(" {:.2}", hit.score),
            None => String::new(),
        };
        let detail =
            if hit.input_schema.is_some() { "with its schema" } else { "without its schema" };
        let sentence = first_sentence(&hit.description, width());
        output.wrapped(&format!(
            "    {}",
            cut(&format!("{}{score}, {detail}: {sentence}", hit.name), 4)
        ))?;
    }
    match reply.hits.len().saturating_sub(MAX_HITS) {
        0 => {}
        more => output.wrapped(&format!("    and {more} more"))?,
    }
    if let Some(why) = why {
        output.wrapped(&format!("    why: {}", cut(&reasons(why), 9)))?;
    }
    for missing in &reply.missing {
        let nearest = missing.nearest.join(", ");
        let line = format!("there is no {}; similar names: {nearest}", missing.name);
        output.wrapped(&format!("    {}", cut(&line, 4)))?;
    }
    if let Some(available) = reply.available.as_ref().filter(|_| reply.missing.is_empty()) {
        let listed = match available {
            AvailableTools::Names(names) => format!("{} names", names.len()),
            AvailableTools::Servers(servers) => format!("{} servers", servers.len()),
        };
        output.wrapped(&format!("    no tool fits; the reply lists {listed}"))?;
    }
    Ok(())
}

/// Formats the parts of a hit's score, the largest part first.
fn reasons(why: &Explanation) -> String {
    let words = why.words.iter().map(|points| {
        let via = if points.term.starts_with(&points.word) || points.word.starts_with(&points.term)
        {
            String::new()
        } else {
            format!(" as {}", points.term)
        };
        (points.points, format!("`{}`{via}", points.word))
    });
    let bonuses = [
        (if why.similarity.is_none() { why.exact_bonus } else { 0.0 }, "exact name"),
        (why.name_bonus, "share of the name"),
        (why.pair_bonus, "adjacent words"),
        (why.phrase_bonus, "phrase"),
        (why.server_bonus, "same server"),
        (why.substring_bonus, "inside the name"),
    ];
    let bonuses = bonuses.into_iter().filter(|(points, _)| *points > 0.0);
    let mut all: Vec<(f32, String)> =
        words.chain(bonuses.map(|(points, reason)| (points, reason.to_owned()))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    if let Some(both) = &why.similarity {
        let words: Vec<String> = all.into_iter().map(|(_, reason)| reason).collect();
        let (words, exact) = (words.join(", "), why.exact_bonus);
        let named = if exact > 0.0 { format!("{exact:.0} exact name + ") } else { String::new() };
        let cover = both.coverage_bonus;
        let need = if cover > 0.0 { format!("{cover:.2} coverage + ") } else { String::new() };
        let (vectors, own) = (both.vectors, both.words);
        return format!("{named}{vectors:.2} meaning + {need}{own:.2} words: {words}");
    }
    let all: Vec<String> =
        all.into_iter().map(|(points, reason)| format!("{points:.2} {reason}")).collect();
    all.join(" + ")
}

/// Formats the change from `before` to `after` in percent: `… % less` or `… % more`.
fn change(before: usize, after: usize) -> String {
    match saved(before, after) {
        less if less >= 0.0 => format!("{less:.1} % less"),
        more => format!("{:.1} % more", -more),
    }
}

fn compact(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Shortens a line so that it fits after `indent` columns.
fn cut(text: &str, indent: usize) -> String {
    shorten(text, width() - indent).into_owned()
}

/// Formats a number with thousands separators: 50,754.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
