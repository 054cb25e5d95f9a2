//! Tests of the sample catalog, and of its queries with known answers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolcrib_core::rank::Fit;
use toolcrib_core::{
    Catalog, Conversation, Crib, Preset, Scope, SearchRequest, Settings, TurnContext, WordQuery,
};

const CATALOG: &str = include_str!("../../sample/catalog.jsonl");
const QUERIES: &str = include_str!("../../sample/queries.jsonl");

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_sample_is_large_and_varied_and_has_no_findings() {
    let catalog = Catalog::from_json(CATALOG.as_bytes()).unwrap();
    assert_eq!(catalog.findings(), []);
    assert!(catalog.len() >= 250 && catalog.servers().len() >= 20);
    assert!(catalog.find("github__create_issue").is_some());
    let tools = || catalog.tools().iter();
    let named =
        |test: fn(&str) -> bool| tools().filter(|tool| test(tool.name_without_server())).count();
    let camel = named(|name| name.contains(char::is_uppercase));
    let kebab = named(|name| name.contains('-'));
    let terse = tools().filter(|tool| tool.description().split_whitespace().count() <= 6).count();
    let long = tools().filter(|tool| tool.description().len() >= 400).count();
    let foreign = tools().filter(|tool| !tool.description().is_ascii()).count();
    let nested = tools().filter(|tool| tool.schema().matches("\"properties\"").count() > 1).count();
    let counts = [camel, kebab, terse, long, foreign, nested];
    assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
    // Counts near-duplicates, which are tools of several servers with the same name apart from the prefix.
    let mut servers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for tool in tools() {
        servers.entry(tool.name_without_server()).or_default().insert(tool.server().unwrap());
    }
    assert!(servers.values().filter(|servers| servers.len() > 1).count() >= 5, "{servers:?}");
}

#[test]
fn the_sample_queries_are_of_every_kind_and_name_existing_tools() {
    let catalog = Catalog::from_json(CATALOG.as_bytes()).unwrap();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for query in lines(QUERIES) {
        let kind = query["kind"].as_str().unwrap();
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let gold = query["gold"].as_array().unwrap();
        assert_eq!(gold.is_empty(), kind == "none", "{query}");
        assert!(gold.iter().all(|name| catalog.find(name.as_str().unwrap()).is_some()), "{query}");
    }
    assert!(kinds.values().sum::<usize>() >= 60, "{kinds:?}");
    let all: Vec<&str> = kinds.keys().map(String::as_str).collect();
    assert_eq!(all, ["exact", "none", "paraphrase", "several", "words"]);
    assert!(kinds.values().all(|count| *count >= 10), "{kinds:?}");
}

/// A query that is the name of a tool, in any spelling, must find that tool first.
#[test]
fn an_exact_name_is_always_first() {
    let crib = Crib::new(Catalog::from_json(CATALOG.as_bytes()).unwrap(), Settings::default());
    let scope = Scope::all(crib.catalog());
    for query in lines(QUERIES).iter().filter(|query| query["kind"] == "exact") {
        let words = WordQuery::plain(query["query"].as_str().unwrap(), &crib.settings().limits);
        let first = crib.rank(&words, &scope, 1)[0].id;
        assert_eq!(crib.catalog().tool(first).name(), query["gold"][0], "{query}");
    }
}

/// Returns the queries on which a ranker judges the fit wrongly: first those that it answers although no tool serves
/// them, then those that it rejects although a tool serves them.
fn misjudged(preset: Preset) -> (String, String) {
    let crib = Crib::new(Catalog::from_json(CATALOG.as_bytes()).unwrap(), preset.settings());
    let scope = Scope::all(crib.catalog());
    let (mut answered, mut refused) = (Vec::new(), Vec::new());
    for query in lines(QUERIES) {
        let ask = SearchRequest::query(query["query"].as_str().unwrap());
        let reply = crib.search(&TurnContext::new(&scope), &mut Conversation::new(), &ask);
        let none = reply.fit == Some(Fit::None);
        assert_eq!(none, reply.hits.is_empty() && reply.loaded.is_empty(), "{query}");
        let id = query["id"].as_str().unwrap().to_owned();
        match (none, query["kind"] == "none") {
            (false, true) => answered.push(id),
            (true, false) => refused.push(id),
            _ => {}
        }
    }
    (answered.join(" "), refused.join(" "))
}

fn query_ids(answered: &str, refused: &str) -> (String, String) {
    (answered.to_owned(), refused.to_owned())
}

/// The queries that no tool serves are near misses. For example, there is a tool that sends mail, and the query asks to
/// send a text message. So they are harder to reject than queries from another field.
#[test]
fn known_wrong_fits_with_words_and_vectors() {
    assert_eq!(
        misjudged(Preset::Default),
        query_ids("q55 q56 q57 q58 q60 q61 q63", "q36 q39 q40 q42")
    );
}

#[test]
fn known_wrong_fits_with_words_alone() {
    assert_eq!(
        misjudged(Preset::Words),
        query_ids("q55 q56 q57 q58 q59 q60 q61 q62 q63 q64", "q39 q40 q41")
    );
}
