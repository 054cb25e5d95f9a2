//! Tests of `toolcrib search`.

use serde_json::{Value, json};

use crate::{file, toolcrib, with_input};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect()
}

#[test]
fn select_loads_an_existing_tool_and_suggests_names_for_a_missing_one() {
    let run =
        toolcrib(&["search", "--json", "select:github__create_issue,github__creat_issu,nope"]);
    let reply = run.json();
    assert_eq!(run.code, 0);
    assert_eq!(reply["loaded"], json!(["github__create_issue"]));
    assert_eq!(names(&reply["missing"]), ["github__creat_issu", "nope"]);
    assert_eq!(reply["missing"][0]["nearest"][0], "github__create_issue");
    assert!(!reply["missing"][1]["nearest"].as_array().unwrap().is_empty());
    assert!(reply["hits"][0]["input_schema"]["properties"]["title"].is_object());
    assert_eq!((&reply["fit"], &reply["hits"][0]["confidence"]), (&json!("strong"), &json!(1.0)));
}

#[test]
fn an_empty_query_lists_names_and_loads_nothing() {
    let run = toolcrib(&["search", "--json", ""]);
    let reply = run.json();
    assert_eq!((run.code, &reply["hits"], &reply["loaded"]), (0, &json!([]), &json!([])));
    let listed = reply["available"]["names"].as_array().unwrap();
    assert!(listed.contains(&json!("github__create_issue")) && listed.len() > 50);
    assert_eq!(reply.get("fit"), None, "an empty query has no fit");
}

#[test]
fn a_search_without_hits_is_a_document_and_exit_code_1() {
    let run = toolcrib(&["search", "--preset", "words", "--json", "xylophone zzz"]);
    assert_eq!((run.code, run.json()["hits"].as_array().unwrap().len()), (1, 0));
    assert_eq!(toolcrib(&["search", "select:nope"]).code, 1);
}

#[test]
fn a_query_that_no_tool_fits_exits_with_1_and_names_similar_tools() {
    let query = "knit socks from goat wool while humming sea shanties";
    let run = toolcrib(&["search", "--json", query]);
    let reply = run.json();
    assert_eq!((run.code, &reply["fit"], &reply["hits"]), (1, &json!("none"), &json!([])));
    let note = reply["notes"][0].as_str().unwrap();
    assert!(note.starts_with(&format!("No tool here fits \"{query}\". Nearest: \"")), "{note}");
    assert_eq!(
        note.matches('"').count(),
        2 + 3 * 4,
        "the query, three names and sentences: {note}"
    );
    assert_eq!(
        reply["available"],
        json!(null),
        "the list of all tools would cost thousands of tokens"
    );
    // For people, the three nearest tools and one more line are printed.
    let run = toolcrib(&["search", query]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!((run.code, lines.len()), (1, 8), "{run:?}");
    assert_eq!(lines[0], format!("No tool fits `{query}`. The nearest tools are:"));
    assert!([1, 3, 5].iter().all(|at| note.contains(lines[*at].trim())), "{run:?}");
    assert_eq!(lines[7], "`toolcrib tools` lists all 272 tools.");
}

#[test]
fn presets_with_another_ranker_say_nothing_about_fit() {
    for preset in ["everruns", "hermes", "opencode"] {
        let args = ["search", "--preset", preset, "--json", "create a github issue"];
        let run = toolcrib(&args);
        assert!(!run.out.contains("\"fit\"") && !run.out.contains("\"confidence\""), "{preset}");
        assert!(!toolcrib(&["search", "--preset", preset, "github"]).out.contains("confidence"));
        assert!(!toolcrib(&["explain", "--preset", preset, "github"]).out.contains("confidence"));
    }
}

#[test]
fn the_text_output_has_names_sentences_and_signatures() {
    let run = toolcrib(&["search", "--limit", "1", "create a github issue"]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].starts_with("github__create_issue  "), "{run:?}");
    assert_eq!(lines[1], "  Open a new issue in a repository.");
    assert!(lines[2].starts_with("  {owner: string; repo: string; title: string; body?: string;"));
    assert_eq!((lines.len(), run.code), (3, 0));
}

#[test]
fn catalogs_come_from_files_folders_and_standard_input() {
    let mcp = r#"{"tools":[{"name":"open_door","description":"Opens a door.","inputSchema":{"type":"object"}}]}"#;
    let chat = r#"[{"type":"function","function":{"name":"close_door","description":"Closes a door.","parameters":{"type":"object"}}}]"#;
    let one = file("doors/house.json", mcp);
    file("doors/garage.json", chat);
    let folder = one.strip_suffix("/house.json").unwrap();
    let found = |args: &[&str], input: &str| {
        let run = with_input(args, input);
        let mut names: Vec<String> =
            names(&run.json()["hits"]).iter().map(ToString::to_string).collect();
        names.sort();
        names
    };
    assert_eq!(found(&["search", "--json", "--catalog", &one, "door"], ""), ["open_door"]);
    assert_eq!(
        found(&["search", "--json", "--catalog", folder, "door"], ""),
        ["close_door", "open_door"]
    );
    assert_eq!(found(&["search", "--json", "--catalog", "-", "door"], chat), ["close_door"]);
    let run = toolcrib(&["search", "--json", "--catalog", folder, "house:"]);
    assert_eq!(
        names(&run.json()["hits"]),
        ["open_door"],
        "tools without a server get the file's name"
    );
}

#[test]
fn withheld_tools_are_reported_and_the_others_are_searched() {
    let run = with_input(
        &["search", "--json", "--catalog", "-", "door"],
        "{\"name\":\"tool_search\",\"input_schema\":{}}\n{\"name\":\"open_door\",\"input_schema\":{}}\n",
    );
    assert_eq!(names(&run.json()["hits"]), ["open_door"]);
    assert_eq!(run.err, "note: line 1: `tool_search`: withheld: the name is reserved\n");
}

#[test]
fn two_dashes_end_the_options() {
    let run = toolcrib(&["search", "--json", "--", "-delete file"]);
    let reply = run.json();
    assert!(!names(&reply["hits"]).iter().any(|name| name.contains("delete")));
    assert_eq!(run.code, 0);
}

#[test]
fn a_filter_does_not_replace_a_word_that_no_tool_has() {
    assert_eq!(toolcrib(&["search", "github: zebra"]).code, 1);
    assert_eq!(toolcrib(&["search", "github:"]).code, 0);
}
