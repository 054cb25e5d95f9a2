//! Tests of every limit: one below, at the limit, and one above.

use serde_json::json;
use toolcrib_core::{Limits, Problem, SearchRequest, WordQuery, ingest};

use crate::support::{Chat, crib, crib_with, limits, office, tool};

/// Ingests a document under the given limits. Returns the number of tools and the first problem.
fn ingest_result(text: &str, limits: &Limits) -> (usize, Option<Problem>) {
    let ingested = ingest(text.as_bytes(), None, limits).unwrap();
    (ingested.tools.len(), ingested.findings.first().map(|finding| finding.problem.clone()))
}

#[test]
fn the_name_limit_is_exact() {
    let limits = limits(|limits| limits.name_bytes = 4);
    let with_name = |name: &str| {
        ingest_result(&json!([{"name": name, "input_schema": {}}]).to_string(), &limits)
    };
    assert_eq!(with_name("abc"), (1, None));
    assert_eq!(with_name("abcd"), (1, None));
    assert_eq!(with_name("abcde"), (0, Some(Problem::NameTooLong { bytes: 5, limit: 4 })));
}

#[test]
fn descriptions_are_cut_at_a_character_boundary_and_the_definition_is_kept() {
    let limits = limits(|limits| limits.description_bytes = 4);
    let described = |text: &str| {
        let text = json!([{"name": "a", "description": text, "input_schema": {}}]).to_string();
        let ingested = ingest(text.as_bytes(), None, &limits).unwrap();
        (
            ingested.tools[0].description().to_owned(),
            ingested.findings.len(),
            ingested.tools[0].definition().len(),
        )
    };
    assert_eq!(described("abc").0, "abc");
    assert_eq!(described("abcd"), ("abcd".into(), 0, 51));
    assert_eq!(described("abcdé"), ("abcd".into(), 1, 53));
    assert_eq!(described("abcé").0, "abc");
}

#[test]
fn the_schema_limits_are_exact() {
    let schema = |schema: &str, limits: &Limits| {
        ingest_result(&format!(r#"[{{"name":"a","input_schema":{schema}}}]"#), limits)
    };
    let bytes = |limit| limits(|limits| limits.schema_bytes = limit);
    let text = r#"{"type":"object"}"#;
    assert_eq!(schema(text, &bytes(18)), (1, None));
    assert_eq!(schema(text, &bytes(17)), (1, None));
    assert_eq!(
        schema(text, &bytes(16)),
        (0, Some(Problem::SchemaTooLarge { bytes: 17, limit: 16 }))
    );
    let depth = |limit| limits(|limits| limits.schema_depth = limit);
    let text = r#"{"a":{"b":{}}}"#;
    assert_eq!(schema(text, &depth(4)).0, 1);
    assert_eq!(schema(text, &depth(3)).0, 1);
    assert_eq!(schema(text, &depth(2)), (0, Some(Problem::SchemaTooDeep { depth: 3, limit: 2 })));
    let nodes = |limit| limits(|limits| limits.schema_nodes = limit);
    let text = r#"{"a":[1,2,3]}"#;
    assert_eq!(schema(text, &nodes(6)).0, 1);
    assert_eq!(schema(text, &nodes(5)).0, 1);
    assert_eq!(schema(text, &nodes(4)), (0, Some(Problem::SchemaTooMany { nodes: 5, limit: 4 })));
    let values = |limit| limits(|limits| limits.enum_values = limit);
    let text = r#"{"enum":["a","b"]}"#;
    assert_eq!(schema(text, &values(3)).0, 1);
    assert_eq!(schema(text, &values(2)).0, 1);
    assert_eq!(schema(text, &values(1)), (0, Some(Problem::EnumTooLong { values: 2, limit: 1 })));
}

#[test]
fn a_schema_of_a_million_levels_or_values_is_withheld_cheaply() {
    let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let wide = format!("[{}1]", "1,".repeat(1_000_000));
    for bomb in [deep, wide] {
        let limits = limits(|limits| limits.schema_bytes = usize::MAX);
        let text = format!(
            r#"[{{"name":"a","input_schema":{{"x":{bomb}}}}},{{"name":"b","input_schema":{{}}}}]"#
        );
        assert_eq!(ingest_result(&text, &limits).0, 1);
    }
}

#[test]
fn queries_are_cut_by_bytes_and_by_words_and_the_reply_says_so() {
    let crib = crib_with(&office(), "[limits]\nquery_words = 3\nquery_bytes = 40\n");
    let cut = |query: &str| {
        let reply = Chat::new(&crib).search(query);
        reply.notes.iter().any(|note| note.contains("too long"))
    };
    assert!(!cut("issue mail"));
    assert!(!cut("issue mail message"));
    assert!(cut("issue mail message channel"));
    assert!(!cut(&"issue ".repeat(6)));
    assert!(cut(&"issue ".repeat(8)));
}

#[test]
fn the_number_of_results_is_clamped() {
    let tools: Vec<_> =
        (0..60).map(|i| tool(&format!("s__mail_{i:02}"), "Mail.", &json!({}))).collect();
    let crib = crib(&tools);
    let hits =
        |limit| Chat::new(&crib).ask(&SearchRequest::query("mail").with_limit(limit)).hits.len();
    assert_eq!(hits(None), 5);
    for (requested, got) in [(0, 1), (1, 1), (19, 19), (20, 20), (21, 20), (usize::MAX, 20)] {
        assert_eq!(hits(Some(requested)), got, "{requested}");
    }
}

#[test]
fn the_number_of_queries_in_one_call_is_limited() {
    let crib = crib_with(&office(), "[limits]\nasks = 2\n");
    let notes = |count: usize| {
        let queries = vec!["issue".to_owned(); count];
        Chat::new(&crib).ask(&SearchRequest::queries(queries)).notes
    };
    assert_eq!(notes(2), Vec::<String>::new());
    assert_eq!(notes(3), ["3 queries were sent; only the first 2 are answered."]);
}

#[test]
fn the_number_of_names_in_one_call_is_limited() {
    let crib = crib_with(&office(), "[limits]\nnames = 2\n");
    let reply = |names: &str| Chat::new(&crib).search(&format!("select:{names}"));
    assert_eq!(reply("mail__send,zz").notes, Vec::<String>::new());
    let over = reply("mail__send,zz,slack__post_message");
    assert_eq!(over.loaded, ["mail__send"]);
    assert_eq!(over.notes, ["3 names were requested; only the first 2 are answered."]);
}

#[test]
fn the_number_of_indexed_words_of_a_tool_is_limited() {
    let tools = [tool("srv__thing", "one two three four", &json!({}))];
    let found = |limit: usize, word: &str| {
        let crib = crib_with(
            &tools,
            &format!("[rank]\nby = 'words'\n[limits]\nindexed_words = {limit}\n"),
        );
        !crib
            .rank(
                &WordQuery::plain(word, &Limits::default()),
                &toolcrib_core::Scope::all(crib.catalog()),
                5,
            )
            .is_empty()
    };
    // Four words are indexed: `thing` from the name, then `two`, `three` and `four` from the description, because `one`
    // is a stop word.
    assert!(found(4, "four") && !found(3, "four"));
    assert!(found(3, "three") && !found(2, "three"));
}

#[test]
fn the_pattern_limits_are_exact() {
    let ask = |toml: &str, pattern: &str| {
        let crib = crib_with(&office(), toml);
        let ask = SearchRequest::pattern(pattern);
        Chat::new(&crib).ask(&ask)
    };
    let short = "[limits]\npattern_bytes = 5\n";
    assert_eq!(ask(short, "mail").hits.len(), 3);
    assert_eq!(ask(short, "mails").hits.len(), 1);
    assert_eq!(
        ask(short, "emails").notes[0],
        "The pattern cannot be used: the pattern has 6 bytes, the limit is 5. Use plain words with tool_search instead."
    );
    // This pattern has fifty thousand states. It must be rejected, because the time to match it grows with the length
    // of the text times the number of states.
    assert!(ask("", "(.{0,50}){50}z").notes[0].contains("too large once compiled"));
    assert!(ask("", "(").notes[0].contains("unclosed group"));
    let size = office()[0].to_string().len();
    let partial = |bytes: usize| {
        let reply = ask(&format!("[limits]\npattern_scan_bytes = {bytes}\n"), "issue");
        (reply.hits.len(), reply.notes.iter().any(|note| note.contains("partial")))
    };
    assert_eq!(partial(size - 1), (0, true));
    assert_eq!(partial(size), (1, true));
    assert_eq!(partial(1 << 20), (2, false));
}
