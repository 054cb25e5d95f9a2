//! General tools, such as a web search or a shell, are found by requests that name only their subject.

use serde_json::{Value, json};

use crate::{file, own_path, run_in};

/// The name and the description of each tool.
const TOOLS: [(&str, &str); 6] = [
    ("mail_send", "Sends a mail to one or more recipients."),
    ("web_lookup", "Searches the web and returns titles, addresses and excerpts."),
    ("room_book", "Reserves a meeting room."),
    ("terminal", "Runs a command on this machine and returns what it prints."),
    ("leave_balance", "Shows how many days of leave are left."),
    ("warehouse_query", "Runs a read-only SQL statement on the data warehouse."),
];

/// Runs a command for a query, with these arguments in addition.
fn run(command: &str, query: &str, args: &[&str]) -> Value {
    let tools = TOOLS.map(|(name, description)| {
        json!({"name": name, "description": description, "input_schema": {"type": "object"}})
            .to_string()
    });
    let home = own_path("home");
    std::fs::create_dir_all(&home).unwrap();
    let catalog = file("catalog.jsonl", &tools.join("\n"));
    let args = [&[command, "--catalog", &catalog, "--json", query], args].concat();
    let run = run_in(&home, &home, &args, "");
    assert_eq!(run.err, "", "{run:?}");
    run.json()
}

#[test]
fn a_request_that_names_only_its_subject_finds_the_tool_of_its_type() {
    for (query, tool) in [
        ("news about the elections in Peru", "web_lookup"),
        ("train strikes Italy", "web_lookup"),
        ("kill whatever occupies port 8080", "terminal"),
        ("which customers ordered nothing since May", "warehouse_query"),
    ] {
        let found = run("search", query, &[]);
        assert_eq!(found["hits"][0]["name"], tool, "{query}: {found}");
        assert_ne!(found["fit"], "none", "{query}");
    }
}

#[test]
fn a_request_that_needs_no_general_tool_is_refused() {
    for query in ["let the cat in", "iron my shirts"] {
        assert_eq!(run("search", query, &[])["fit"], "none", "{query}");
    }
}

#[test]
fn explain_shows_why_a_general_tool_is_found() {
    let query = "news about the elections in Peru";
    let explained = run("explain", query, &[]);
    let tool = &explained["tools"][0];
    let general = &tool["nearness"]["general"];
    assert_eq!((&tool["name"], &general["type"]), (&json!("web_lookup"), &json!("info")));
    for probability in [&general["request"], &general["tool"]] {
        assert!(probability.as_f64().unwrap() > 0.5, "{general}");
    }
    // The encoder has the classifiers, so the table alone does not find the tool.
    assert_eq!(run("search", query, &["--tier", "table"])["fit"], "none");
}
