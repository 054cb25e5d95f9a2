//! `toolcrib search`: shows what `tool_search` returns to a model.

use toolcrib_core::rank::Fit;
use toolcrib_core::reply::{AvailableTools, Reply};
use toolcrib_core::{Conversation, Crib, Query, Scope, SearchRequest, TurnContext};
use toolcrib_text::{first_sentence, shorten};
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use super::tool_source::ToolSource;
use crate::args::SearchArgs;
use crate::deep;
use crate::output::{Failure, Output};

/// Minimum score of a tool whose exact name is in the query. All other scores are much smaller.
const EXACT_NAME_SCORE: f32 = 100.0;
/// Number of tools that are named if no tool fits.
const NEAREST: usize = 3;
/// Maximum length of the query that is repeated, in characters.
const QUERY_CHARS: usize = 100;

pub(crate) fn run(args: &SearchArgs, output: &mut Output) -> Result<bool, Failure> {
    let counter = VocabularyCounter::exact(Vocabulary::O200k).shared();
    let ToolSource { crib, scope, .. } =
        ToolSource::load(&args.source, Some(&args.vectors), counter)?;
    if !args.fast {
        deep::embed_missing(&crib, "embedding tools");
    }
    let ask = SearchRequest::query(&args.query).with_limit(args.limit);
    let reply = crib.search(&TurnContext::new(&scope), &mut Conversation::new(), &ask);
    let browsed = reply.available.is_some() && reply.notes.is_empty() && reply.missing.is_empty();
    if output.is_json() {
        output.document(&reply)?;
    } else {
        print(&reply, output)?;
        if browsed {
            print_available(&reply, output)?;
        } else if reply.hits.is_empty() {
            print_miss(args, (&crib, &scope), output)?;
        }
    }
    Ok(browsed || !reply.hits.is_empty())
}

fn print(reply: &Reply, output: &mut Output) -> Result<(), Failure> {
    for hit in &reply.hits {
        let score = match hit.score {
            // The score of an exact name only says that the tool comes before all others.
            score if score >= EXACT_NAME_SCORE => "  exact name".to_owned(),
            score if score > 0.0 => format!("  {score:.2}"),
            _ => String::new(),
        };
        let sure = hit.confidence.map(|sure| format!("  confidence {sure:.2}"));
        output.line(&format!("{}{score}{}", hit.name, sure.unwrap_or_default()))?;
        let sentence = first_sentence(&hit.description, 100);
        if !sentence.is_empty() {
            output.wrapped(&format!("  {sentence}"))?;
        }
        let schema = hit.input_schema.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        let signature = match (&hit.signature, schema) {
            (Some(signature), _) => signature.clone(),
            (None, Some(schema)) => toolcrib_core::signature(&schema),
            (None, None) => continue,
        };
        output.wrapped(&format!("  {signature}"))?;
    }
    if reply.fit == Some(Fit::Weak) {
        output.wrapped("weak fit: possibly none of these tools does what the query asks for")?;
    }
    for missing in &reply.missing {
        let nearest = match &missing.nearest[..] {
            [] => String::new(),
            names => format!("; nearest: {}", names.join(", ")),
        };
        output.wrapped(&format!("no tool `{}`{nearest}", missing.name))?;
    }
    // If nothing was found, the corrections did not help.
    for correction in reply.did_you_mean.iter().filter(|_| !reply.hits.is_empty()) {
        output.line(&format!(
            "searched for `{}` instead of `{}`",
            correction.read_as, correction.word
        ))?;
    }
    // The notes of a reply without hits are for the model. `print_miss` prints them for people.
    let notes = reply.notes.iter().filter(|_| !reply.hits.is_empty());
    notes.into_iter().try_for_each(|note| output.wrapped(note))
}

/// Prints the three nearest tools, and how to list all of them. The list itself may have hundreds of names.
fn print_miss(
    args: &SearchArgs,
    (crib, scope): (&Crib, &Scope),
    output: &mut Output,
) -> Result<(), Failure> {
    if let Query::Words(words) = crib.parse(&args.query, scope) {
        let nearest = crib.rank(&words, scope, NEAREST);
        let query = shorten(args.query.trim(), QUERY_CHARS);
        let end = if nearest.is_empty() { "." } else { ". The nearest tools are:" };
        output.wrapped(&format!("No tool fits `{query}`{end}"))?;
        for hit in nearest {
            let tool = crib.catalog().tool(hit.id);
            let sentence = first_sentence(tool.description(), 100);
            output.line(&format!("  {}", tool.name()))?;
            if !sentence.is_empty() {
                output.wrapped(&format!("    {sentence}"))?;
            }
        }
    }
    let source = match &args.source.catalog[..] {
        [] if args.source.sample => " --sample".to_owned(),
        files => {
            let files = files.iter().map(|file| format!(" --catalog {}", file.display()));
            files.collect::<Vec<_>>().concat()
        }
    };
    let count = scope.ids().count();
    output.wrapped(&format!("`toolcrib tools{source}` lists all {count} tools."))
}

/// Prints what is available, for an empty query.
fn print_available(reply: &Reply, output: &mut Output) -> Result<(), Failure> {
    match &reply.available {
        Some(AvailableTools::Names(names)) => {
            names.iter().try_for_each(|name| output.line(name))?;
        }
        Some(AvailableTools::Servers(servers)) => servers
            .iter()
            .try_for_each(|size| output.line(&format!("{} ({})", size.server, size.tools)))?,
        None => {}
    }
    Ok(())
}
