//! Tests of `toolcrib docs`: the binary contains every page.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{pages, read, root};
use crate::toolcrib;

/// Returns the topics: the pages below `docs`, without the list of pages.
fn topics() -> BTreeSet<String> {
    let folder = root().join("docs");
    let below = pages().into_iter().filter_map(|page| {
        let path = page.strip_prefix(&folder).ok()?.with_extension("");
        // The extension of `everruns-0.50.md` is `md`, so only that is removed.
        Some(path.to_str().unwrap().to_owned())
    });
    below.filter(|topic| topic != "README").collect()
}

#[test]
fn every_page_is_a_topic_and_is_printed_as_it_is() {
    let topics = topics();
    assert!(topics.contains("settings") && topics.contains("presets/everruns-0.50"), "{topics:?}");
    let list = toolcrib(&["docs", "--json"]).json();
    let listed = list["topics"].as_array().unwrap().iter().map(|topic| topic["topic"].as_str());
    let listed: BTreeSet<String> = listed.map(|topic| topic.unwrap().to_owned()).collect();
    // The schema is not a page. It is tested in the module `schema`.
    assert_eq!(listed, topics.iter().cloned().chain(["schema".to_owned()]).collect());
    for topic in &topics {
        let text = read(&format!("docs/{topic}.md"));
        let run = toolcrib(&["docs", topic]);
        let (header, page) = run.out.split_once("\n\n").unwrap();
        assert!(header.starts_with(&format!("<!-- `{topic}`, from Toolcrib ")), "{header}");
        assert_eq!((run.code, page, run.err.as_str()), (0, &*text, ""), "{topic}");
        let document = toolcrib(&["docs", topic, "--json"]).json();
        assert_eq!(document, serde_json::json!({"topic": topic, "text": text}));
        assert_eq!(toolcrib(&["docs", &format!("{topic}.md")]).out, run.out);
    }
}

#[test]
fn the_list_shows_every_topic_with_a_phrase() {
    let run = toolcrib(&["docs"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let list = toolcrib(&["docs", "--json"]).json();
    let lines: Vec<&str> = run.out.lines().collect();
    for (line, topic) in lines.iter().zip(list["topics"].as_array().unwrap()) {
        let text = |key: &str| topic[key].as_str().unwrap();
        let (shown, about) = line.split_once("  ").unwrap();
        assert_eq!((shown, about.trim()), (text("topic"), text("about")));
    }
    assert_eq!(lines.last(), Some(&"`toolcrib docs TOPIC` prints a page."));
}

#[test]
fn an_unknown_topic_gets_a_suggestion() {
    for (topic, suggestion) in [
        ("setings", "did you mean `settings`? "),
        ("hermes", "did you mean `presets/hermes`? "),
        ("README", ""),
        ("../Cargo.toml", ""),
    ] {
        let run = toolcrib(&["docs", topic]);
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        let hint = format!("{suggestion}`toolcrib docs` lists all topics");
        assert_eq!(run.err, format!("error: `{topic}`: no such topic\nhint: {hint}\n"));
    }
    let document: Value = toolcrib(&["docs", "setings", "--json"]).json();
    assert_eq!(document["error"], "`setings`: no such topic");
}

#[test]
fn a_section_is_printed_with_its_subsections() {
    let page = toolcrib(&["docs", "gateway"]).out;
    let section = toolcrib(&["docs", "gateway#starting-up"]);
    let (header, text) = section.out.split_once("\n\n").unwrap();
    assert_eq!((section.code, header), (0, page.split_once("\n\n").unwrap().0));
    assert!(text.starts_with("## Starting up\n") && page.contains(text), "{text}");
    assert_eq!(text.matches("\n## ").count(), 0, "the next section is not printed");
    assert_eq!(toolcrib(&["docs", "gateway.md#starting-up"]).out, section.out);
    // The name of a command is the section about it.
    assert_eq!(toolcrib(&["docs", "call"]).out, toolcrib(&["docs", "command-line#call"]).out);
    let unknown = toolcrib(&["docs", "gateway#startin-up"]);
    let error = "error: `gateway#startin-up`: the page has no such section\n\
                 hint: did you mean `gateway#starting-up`?\n";
    assert_eq!((unknown.code, unknown.err.as_str()), (2, error));
}

/// A message or a help text that refers to a topic is useless if the topic does not exist.
#[test]
fn every_topic_that_is_referred_to_exists() {
    let topics = topics();
    let mut found = 0;
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for rest in text.split("toolcrib docs ").skip(1) {
                    let topic = rest.split(['`', ' ', '"', '#']).next().unwrap();
                    let is_name = topic.starts_with(|c: char| c.is_ascii_lowercase());
                    found += usize::from(is_name);
                    assert!(!is_name || topics.contains(topic), "{}: {topic}", path.display());
                }
            }
        }
    }
    assert!(found >= 4, "only {found} references were found");
}
