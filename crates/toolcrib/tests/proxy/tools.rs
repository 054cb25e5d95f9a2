//! Generates any number of tools of an imaginary company, the same on every run.
//!
//! Tools of the usual size have three to twelve parameters, each with a description, like the tools of real MCP
//! servers. Tiny tools have one or two parameters and short descriptions, for the cases in which deferring saves
//! nothing.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// A tool, independent of the format of any API.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
}

/// The size of a tool's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Usual,
    Tiny,
}

/// Services, each with its name, its description and the kind of object that it stores.
const SERVICES: [(&str, &str, &str); 40] = [
    ("calendar", "the team calendar", "event"),
    ("contacts", "the address book", "contact"),
    ("invoices", "outgoing invoices", "invoice"),
    ("tickets", "the support desk", "ticket"),
    ("wiki", "the internal wiki", "page"),
    ("repos", "source repositories", "pull_request"),
    ("deploys", "deployments to production", "release"),
    ("storage", "shared file storage", "file"),
    ("payroll", "salaries and payslips", "payslip"),
    ("travel", "business travel", "booking"),
    ("shipping", "parcels and couriers", "parcel"),
    ("inventory", "the warehouse", "item"),
    ("surveys", "customer surveys", "survey"),
    ("alerts", "monitoring and paging", "alert"),
    ("leads", "the sales pipeline", "lead"),
    ("recruiting", "job applications", "applicant"),
    ("rooms", "meeting rooms", "reservation"),
    ("budgets", "departmental budgets", "budget"),
    ("newsletters", "mailing campaigns", "campaign"),
    ("assets", "laptops and other equipment", "laptop"),
    ("vendors", "suppliers and their contracts", "contract"),
    ("training", "courses for employees", "course"),
    ("expenses", "expense claims", "claim"),
    ("fleet", "company cars", "vehicle"),
    ("legal", "cases and their documents", "case"),
    ("metrics", "dashboards and time series", "dashboard"),
    ("feedback", "reviews between colleagues", "review"),
    ("badges", "access to buildings", "badge"),
    ("catering", "the canteen", "menu"),
    ("translations", "texts in other languages", "phrase"),
    ("certificates", "keys and certificates of servers", "certificate"),
    ("domains", "names and zones", "domain"),
    ("backups", "copies of databases", "snapshot"),
    ("chat", "channels and messages", "channel"),
    ("phone", "calls and voice mail", "voicemail"),
    ("research", "papers and notes", "paper"),
    ("patents", "inventions and filings", "patent"),
    ("energy", "meters and consumption", "meter"),
    ("garden", "plants of the roof garden", "plant"),
    ("library", "books that are lent out", "book"),
];

const VERBS: [(&str, &str); 10] = [
    ("create", "Creates a new THING and returns it with its identifier."),
    ("get", "Reads one THING with all of its details."),
    ("update", "Changes fields of an existing THING; fields that are left out stay as they are."),
    ("delete", "Deletes a THING for good. This cannot be undone."),
    ("list", "Lists every THING, newest first, a page at a time."),
    ("search", "Finds each THING that matches some words, best match first."),
    ("archive", "Puts a THING away without deleting it, so that it can be brought back."),
    ("comment", "Adds a comment to a THING and tells whoever watches it."),
    ("history", "Shows who changed a THING, when, and what it was before."),
    ("export", "Writes each THING of a period into a file and returns where it is."),
];

const KINDS: [&str; 5] = ["", "_template", "_note", "_member", "_report"];

const CAUTIONS: [&str; 4] = [
    "Use it only after the user has agreed to what is about to happen.",
    "Results are cached for a minute; pass `fresh` where that matters.",
    "Prefer the search where only words are known and no identifier.",
    "Needs the role of an editor; with fewer rights it fails and says which role is missing.",
];

/// Returns `count` tools. Consecutive tools belong to the same service, ten at a time.
pub(crate) fn tools(count: usize, size: Size) -> Vec<Tool> {
    (0..count).map(|at| tool(at, size)).collect()
}

fn tool(at: usize, size: Size) -> Tool {
    let (service, what, thing) = SERVICES[at / VERBS.len() % SERVICES.len()];
    let (verb, sentence) = VERBS[at % VERBS.len()];
    let thing = format!("{thing}{}", KINDS[at / (VERBS.len() * SERVICES.len()) % KINDS.len()]);
    let spoken = thing.replace('_', " ");
    let rng = &mut Rng(at as u64);
    let mut description = sentence.replace("THING", &spoken);
    let mut properties = Map::new();
    let mut required = Vec::new();
    let (parameters, worded) = match size {
        Size::Tiny => (1 + rng.below(2), false),
        Size::Usual => {
            description = format!("{description} Part of {what}. {}", rng.one(&CAUTIONS));
            (3 + rng.below(10), true)
        }
    };
    let first = rng.below(POOL.len());
    for at in 0..parameters {
        let (name, text, schema) = POOL[(first + at * 5) % POOL.len()];
        let mut schema: Value = serde_json::from_str(schema).unwrap();
        if worded {
            schema["description"] = text.replace("THING", &spoken).into();
        }
        properties.insert(name.to_owned(), schema);
        if at == 0 || (worded && rng.below(4) == 0) {
            required.push(name);
        }
    }
    Tool {
        name: format!("{service}__{verb}_{thing}"),
        description,
        schema: json!({"type": "object", "properties": properties, "required": required}),
    }
}

/// Parameters, each with its name, its description and its schema.
const POOL: [(&str, &str, &str); 24] = [
    ("id", "Identifier of the THING, as a search or a list returned it.", r#"{"type":"string"}"#),
    ("title", "A short title, shown in lists.", r#"{"type":"string","maxLength":200}"#),
    ("limit", "At most this many results.", r#"{"type":"integer","minimum":1,"maximum":100}"#),
    ("cursor", "Where the last page ended; leave it out for the first.", r#"{"type":"string"}"#),
    ("state", "Only in this state.", r#"{"type":"string","enum":["open","closed","archived"]}"#),
    (
        "owner",
        "Who is responsible for the THING: a user name or an address.",
        r#"{"type":"string"}"#,
    ),
    (
        "tags",
        "Labels that all must be on the THING.",
        r#"{"type":"array","items":{"type":"string"}}"#,
    ),
    (
        "since",
        "Only what changed after this moment, in RFC 3339.",
        r#"{"type":"string","format":"date-time"}"#,
    ),
    (
        "until",
        "Only what changed before this moment, in RFC 3339.",
        r#"{"type":"string","format":"date-time"}"#,
    ),
    ("fresh", "Whether to read past the cache.", r#"{"type":"boolean","default":false}"#),
    (
        "fields",
        "Which fields to return; all of them if none is named.",
        r#"{"type":"array","items":{"type":"string"}}"#,
    ),
    (
        "priority",
        "How urgent it is, from 1 for at once to 5 for some day.",
        r#"{"type":"integer","minimum":1,"maximum":5}"#,
    ),
    ("format", "Format of the file.", r#"{"type":"string","enum":["csv","json","pdf","xlsx"]}"#),
    (
        "query",
        "Words to look for in titles and texts. Quote them to find a phrase.",
        r#"{"type":"string"}"#,
    ),
    ("notify", "Whether those who watch the THING are told.", r#"{"type":"boolean"}"#),
    ("text", "The text, in Markdown.", r#"{"type":"string"}"#),
    ("parent_id", "Identifier of what the THING belongs to.", r#"{"type":"string"}"#),
    ("amount", "A sum in the currency below, tax included.", r#"{"type":"number","minimum":0}"#),
    ("currency", "Three letters, as in ISO 4217.", r#"{"type":"string","pattern":"^[A-Z]{3}$"}"#),
    (
        "order_by",
        "What to sort by; a minus before it turns the order round.",
        r#"{"type":"string","enum":["created","-created","title","-title"]}"#,
    ),
    (
        "range",
        "First and last day of the period, both included.",
        r#"{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"}},"required":["from","to"]}"#,
    ),
    ("reason", "Why this is done, for the record that auditors read.", r#"{"type":"string"}"#),
    ("dry_run", "Only says what would happen, and does nothing.", r#"{"type":"boolean"}"#),
    (
        "metadata",
        "Anything else to keep with the THING, as names and texts.",
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
    ),
];

/// Returns valid arguments for a tool: all required ones, and some optional ones.
pub(crate) fn arguments(tool: &Tool, rng: &mut Rng) -> Value {
    let required = tool.schema["required"].as_array().unwrap();
    let properties = tool.schema["properties"].as_object().unwrap();
    let wanted = properties
        .iter()
        .filter(|(name, _)| required.iter().any(|other| other == *name) || rng.below(3) == 0);
    let wanted: Vec<(String, Value)> =
        wanted.map(|(name, schema)| (name.clone(), value(schema))).collect();
    Value::Object(wanted.into_iter().collect())
}

fn value(schema: &Value) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    match schema["type"].as_str().unwrap() {
        "integer" => 3.into(),
        "number" => 12.5.into(),
        "boolean" => true.into(),
        "array" => json!(["one", "two"]),
        "object" if schema.get("properties").is_some() => {
            json!({"from": "2026-01-01", "to": "2026-01-31"})
        }
        "object" => json!({"source": "a \"quoted\" word, straße"}),
        _ if schema.get("pattern").is_some() => "EUR".into(),
        _ if schema.get("format").is_some() => "2026-01-01T00:00:00Z".into(),
        _ => "some words".into(),
    }
}

/// Returns the result of a tool when an agent runs it.
pub(crate) fn run(name: &str, arguments: &Value) -> String {
    format!("{name} took {arguments}")
}
