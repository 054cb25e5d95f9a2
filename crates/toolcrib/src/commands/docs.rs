//! `toolcrib docs`: prints a page of the documentation, or the list of topics.

use serde::Serialize;
use toolcrib_core::nearest_names;
use toolcrib_text::clean::one_line;

use crate::args::DocsArgs;
use crate::documentation::{PAGES, Page, SCHEMA, find};
use crate::output::{Failure, Output};
use crate::terminal;

/// The page about the commands.
const COMMANDS: &str = "command-line";

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
    /// The page or its section, as Markdown. For the topic `schema`, a JSON document.
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
    let (name, section) = match topic.split_once('#') {
        Some((name, section)) => (name, Some(section)),
        None => (topic, None),
    };
    let (page, section) = match find(name) {
        Some(page) => (page, section),
        // A page describes all commands.
        None => match find(COMMANDS).filter(|page| section_of(page.text, name).is_some()) {
            Some(page) => (page, Some(name)),
            None => return Err(unknown_topic(name)),
        },
    };
    let text = match section {
        None => page.text,
        Some(section) => {
            section_of(page.text, section).ok_or_else(|| unknown_section(page, section))?
        }
    };
    if output.is_json() {
        return output.document(&PrintedPage { topic: page.topic, text });
    }
    if page.text == SCHEMA {
        // A comment would make the document invalid.
        return output.own_text(SCHEMA.as_bytes());
    }
    let version = env!("CARGO_PKG_VERSION");
    let topic = page.topic;
    output.line(&format!(
        "<!-- `{topic}`, from Toolcrib {version}. `toolcrib docs gateway#tasks` prints what a link such as gateway.md#tasks refers to. -->\n"
    ))?;
    output.own_text(text.as_bytes())
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

/// Returns the section of a page whose heading has this anchor, with all of its subsections.
fn section_of<'p>(text: &'p str, anchor: &str) -> Option<&'p str> {
    let mut start = None;
    for (at, level, heading) in headings(text) {
        match start {
            None if anchor_of(heading) == anchor => start = Some((at, level)),
            Some((start, of_start)) if level <= of_start => return text.get(start..at),
            _ => {}
        }
    }
    text.get(start?.0..)
}

/// Returns the headings of a page: where each begins, its level and its text.
fn headings(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    let mut is_code = false;
    text.split_inclusive('\n').filter_map(move |line| {
        let begin = at;
        at += line.len();
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        (level > 0 && !is_code && heading.starts_with(' ')).then(|| (begin, level, heading.trim()))
    })
}

/// Returns the anchor of a heading in a link, as code hosts make it.
fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn unknown_section(page: &Page, section: &str) -> Failure {
    let anchors: Vec<String> = headings(page.text).map(|(_, _, text)| anchor_of(text)).collect();
    let hint = match nearest_names(section, anchors.iter().map(String::as_str)).first() {
        Some(nearest) => format!("did you mean `{}#{nearest}`?", page.topic),
        None => format!("`toolcrib docs {}` prints the complete page", page.topic),
    };
    Failure::input(
        format!("`{}#{}`", page.topic, one_line(section)),
        &"the page has no such section",
        hint,
    )
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
