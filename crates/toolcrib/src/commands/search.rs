//! `toolcrib search`: shows what `tool_search` returns to a model.

use toolcrib_core::rank::Fit;
use toolcrib_core::reply::{AvailableTools, Reply};
use toolcrib_core::{Conversation, SearchRequest, TurnContext};
use toolcrib_text::first_sentence;
use toolcrib_tokens::{Vocabulary, VocabularyCounter};

use super::tool_source::ToolSource;
use crate::args::SearchArgs;
use crate::output::{Failure, Output};

pub(crate) fn run(args: &SearchArgs, output: &mut Output) -> Result<bool, Failure> {
    let counter = VocabularyCounter::exact(Vocabulary::O200k).shared();
    let ToolSource { crib, scope, .. } =
        ToolSource::load(&args.source, Some(&args.vectors), counter)?;
    let ask = SearchRequest::query(&args.query).with_limit(args.limit);
    let reply = crib.search(&TurnContext::new(&scope), &mut Conversation::new(), &ask);
    let browsed = reply.available.is_some() && reply.notes.is_empty() && reply.missing.is_empty();
    if output.is_json() {
        output.document(&reply)?;
    } else {
        print(&reply, output)?;
    }
    Ok(browsed || !reply.hits.is_empty())
}

fn print(reply: &Reply, output: &mut Output) -> Result<(), Failure> {
    for hit in &reply.hits {
        let score = if hit.score > 0.0 { format!("  {:.2}", hit.score) } else { String::new() };
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
        output.wrapped("weak fit: none of these tools may do what the query asks for")?;
    }
    for missing in &reply.missing {
        let nearest = match &missing.nearest[..] {
            [] => String::new(),
            names => format!("; nearest: {}", names.join(", ")),
        };
        output.wrapped(&format!("no tool `{}`{nearest}", missing.name))?;
    }
    for correction in &reply.did_you_mean {
        output.line(&format!(
            "searched for `{}` instead of `{}`",
            correction.read_as, correction.word
        ))?;
    }
    reply.notes.iter().try_for_each(|note| output.wrapped(note))?;
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
