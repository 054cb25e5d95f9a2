//! Builds the results of `tools/list`.

use serde_json::{Value, json};

use crate::faults::Faults;
use crate::unknown_fields;

const VERBS: &[&str] = &["Find", "Create", "Update", "Delete", "Export", "Archive", "Count"];
const NOUNS: &[&str] = &[
    "customers",
    "invoices",
    "tickets",
    "repositories",
    "calendars",
    "documents",
    "shipments",
    "alerts",
    "contracts",
    "employees",
    "photos",
];

/// Tools that are always listed, except with `--pages` or `--define`.
const ALWAYS: &[(&str, &str)] = &[
    ("echo", "Returns its arguments."),
    ("elicit", "Asks the user for a word and returns the client's answer."),
    ("sample", "Asks the client's model for a word and returns the client's answer."),
    ("roots", "Asks for the client's roots and returns the client's answer."),
    ("env", "Returns the environment of the server."),
    ("cwd", "Returns the directory the server runs in."),
];

/// Returns the result of `tools/list`, as JSON text because the definition of `cargo` must be sent exactly as it is
/// written.
pub(crate) fn list(faults: &Faults, learned: &[String], cursor: Option<&str>) -> String {
    if let Some(pages) = faults.pages {
        return page(pages, cursor);
    }
    if let Some(defined) = defined(faults) {
        return format!(r#"{{"tools":{defined}}}"#);
    }
    let mut tools: Vec<String> =
        ALWAYS.iter().map(|(name, about)| plain(name, about).to_string()).collect();
    tools.push(unknown_fields::DEFINITION.to_owned());
    let mut offer = |wanted: bool, name: &str, about: &str| {
        if wanted {
            tools.push(plain(name, about).to_string());
        }
    };
    offer(faults.huge_line.is_some(), "huge", "Answers with one very long line.");
    offer(faults.tiny_objects.is_some(), "objects", "Answers with very many small objects.");
    offer(faults.storm.is_some(), "storm", "Sends many list changes at once.");
    offer(faults.storm.is_some(), "lists", "Counts how often the list of tools was fetched.");
    offer(faults.grandchild, "pids", "Names the processes of the server.");
    offer(faults.progress.is_some(), "progress", "Reports progress.");
    offer(faults.asks_for_roots, "known_roots", "Returns the roots that the client last sent.");
    offer(faults.flood.is_some(), "flood", "Sends many messages at once.");
    offer(faults.learns, "learn", "Adds a tool.");
    tools.extend(learned.iter().map(|name| plain(name, "A learned tool.").to_string()));
    tools.extend((0..faults.tools).map(|number| numbered(number).to_string()));
    for (name, about) in [(&faults.hang, "Never comes back."), (&faults.die_on, "Ends the server.")]
    {
        if let Some(name) = name.as_deref().filter(|name| !is_known(faults, name)) {
            tools.push(plain(name, about).to_string());
        }
    }
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}

/// Returns the text of the file that defines the tools. `None` without `--define`.
pub(crate) fn defined(faults: &Faults) -> Option<String> {
    faults.define.as_ref().map(|file| std::fs::read_to_string(file).unwrap_or_default())
}

/// Whether the server can answer calls of `name`. This is true for every listed tool, except those that are listed only
/// because of `--hang` or `--die-on`. With `--pages`, it is also true for `cargo` and other tools that are not listed.
pub(crate) fn is_known(faults: &Faults, name: &str) -> bool {
    if let Some(defined) = defined(faults) {
        let tools: Vec<Value> = serde_json::from_str(&defined).unwrap_or_default();
        return tools.iter().any(|tool| tool["name"] == name);
    }
    let numbered = name.strip_prefix("tool_").and_then(|number| number.parse::<u64>().ok());
    if let Some(number) = numbered {
        return number < faults.pages.unwrap_or(faults.tools);
    }
    match name {
        "cargo" => true,
        "huge" => faults.huge_line.is_some(),
        "objects" => faults.tiny_objects.is_some(),
        "storm" | "lists" => faults.storm.is_some(),
        "pids" => faults.grandchild,
        "progress" => faults.progress.is_some(),
        "learn" => faults.learns,
        "flood" => faults.flood.is_some(),
        "known_roots" => faults.asks_for_roots,
        _ => ALWAYS.iter().any(|(known, _)| *known == name),
    }
}

/// Returns the page with the number `cursor`, or page 0 without a cursor. Each page has one tool. The tool of page 0 is
/// `echo`.
fn page(pages: u64, cursor: Option<&str>) -> String {
    let number = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tool = if number == 0 { plain(ALWAYS[0].0, ALWAYS[0].1) } else { numbered(number) };
    let mut result = json!({"tools": [tool]});
    if number + 1 < pages {
        result["nextCursor"] = (number + 1).to_string().into();
    }
    result.to_string()
}

fn plain(name: &str, about: &str) -> Value {
    json!({"name": name, "description": about, "inputSchema": {"type": "object"}})
}

/// Returns the definition of a tool like those of business applications. Each number gives a tool with a different name
/// and description.
fn numbered(number: u64) -> Value {
    let verb = VERBS[number as usize % VERBS.len()];
    let noun = NOUNS[number as usize / VERBS.len() % NOUNS.len()];
    json!({
        "name": format!("tool_{number}"),
        "description": format!("{verb} {noun} of department {number}."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": format!("Which {noun}.")},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["query"],
        },
    })
}
