//! `toolcrib docs`: prints a page of the documentation, or the list of topics.

use serde::Serialize;
use toolcrib_core::nearest_names;
use toolcrib_text::clean::one_line;

use crate::args::DocsArgs;
use crate::documentation::{PAGES, Page, SCHEMA, find};
use crate::output::{Failure, Output};
use crate::terminal;

#[derive(Serialize)]
struct TopicList {
    topics: Vec<ListedTopic>,
}

#[derive(Serialize)]
struct ListedTopic {
    topic: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct PrintedPage {
    topic: &'static str,
    /// The page, as Markdown. For the topic `schema`, a JSON document.
    text: &'static str,
}

pub(crate) fn run(args: &DocsArgs, output: &mut Output) -> Result<bool, Failure> {
    match &args.topic {
        Some(topic) => print_page(topic, output)?,
        None => list(output)?,
    }
    Ok(true)
}

fn print_page(topic: &str, output: &mut Output) -> Result<(), Failure> {
    let page = find(topic).ok_or_else(|| unknown_topic(topic))?;
    if output.is_json() {
        return output.document(&PrintedPage { topic: page.topic, text: page.text });
    }
    if page.text == SCHEMA {
        // A comment would make the document invalid.
        return output.own_text(SCHEMA.as_bytes());
    }
    let version = env!("CARGO_PKG_VERSION");
    let topic = page.topic;
    output.line(&format!(
        "<!-- `{topic}`, from Toolcrib {version}. A link such as gateway.md#tasks refers to the page that `toolcrib docs gateway` prints. -->\n"
    ))?;
    output.own_text(page.text.as_bytes())
}

fn list(output: &mut Output) -> Result<(), Failure> {
    let listed = |page: &Page| ListedTopic { topic: page.topic, about: page.about };
    let list = TopicList { topics: PAGES.iter().map(listed).collect() };
    if output.is_json() {
        return output.document(&list);
    }
    let longest = list.topics.iter().map(|listed| listed.topic.len()).max().unwrap_or_default();
    let width = terminal::width();
    for ListedTopic { topic, about } in &list.topics {
        output.line(&terminal::labelled(topic, about, longest + 2, width))?;
    }
    output.line("\n`toolcrib docs TOPIC` prints a page.")
}

fn unknown_topic(topic: &str) -> Failure {
    // The last part of a topic is enough to find it, so that `hermes` suggests `presets/hermes`.
    let named = PAGES.iter().map(|page| page.topic);
    let by_part = named.clone().find(|known| known.rsplit('/').next() == Some(topic));
    let nearest = by_part.or_else(|| nearest_names(topic, named).first().copied());
    let hint = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`? `toolcrib docs` lists all topics"),
        None => "`toolcrib docs` lists all topics".to_owned(),
    };
    Failure::input(format!("`{}`", one_line(topic)), &"no such topic", hint)
}
