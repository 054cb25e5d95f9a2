//! Generates client files from random bytes: keys in many spellings, comments, line endings, and different layouts.
//! Equal bytes give equal files, and fewer bytes give simpler files.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolcrib_client_files::{Format, KeyPath};

/// Choices that are made from random bytes. After the last byte, every choice is 0.
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// Returns a number below `count`.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % count
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.pick(3) == 1
    }
}

/// A generated file, and where its servers are.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) format: Format,
    pub(crate) text: String,
    pub(crate) container: KeyPath,
    /// The servers that `connect` removes, in the order of the file.
    pub(crate) removed: Vec<String>,
    /// Whether the container exists.
    pub(crate) newline: &'static str,
}

const NAMES: [&str; 10] = [
    "files",
    "git hub",
    "a.b",
    "größe",
    "x-1_2",
    "日本",
    "with 'quotes'",
    "tool/crib",
    "UPPER",
    "n0",
];
const TEXTS: [&str; 12] = [
    "npx",
    "",
    "a \"quoted\" text",
    "back\\slash",
    "https://example.com/mcp?x=1#y",
    "# no comment",
    "// no comment",
    "true",
    "-",
    "tab\tand\nnewline",
    "emoji 🦀",
    "{braces}, [brackets]: yes",
];

fn value(choices: &mut Choices<'_>, depth: usize) -> Value {
    match choices.pick(if depth == 0 { 4 } else { 7 }) {
        0 | 3 => Value::from(TEXTS[choices.pick(TEXTS.len())]),
        1 => Value::from(choices.pick(200)),
        2 => Value::from(choices.flag()),
        4 => (0..choices.pick(4)).map(|_| Value::from(TEXTS[choices.pick(TEXTS.len())])).collect(),
        _ => Value::Object(object(choices, depth - 1, 3)),
    }
}

fn object(choices: &mut Choices<'_>, depth: usize, most: usize) -> Map<String, Value> {
    let count = choices.pick(most + 1);
    (0..count)
        .map(|_| (NAMES[choices.pick(NAMES.len())].to_owned(), value(choices, depth)))
        .collect()
}

fn server(choices: &mut Choices<'_>) -> Value {
    let mut server = Map::new();
    server.insert("command".into(), Value::from(TEXTS[choices.pick(TEXTS.len())]));
    for (key, value) in object(choices, 1, 3) {
        server.insert(key, value);
    }
    Value::Object(server)
}

/// Generates a file of a format.
pub(crate) fn sample(format: Format, bytes: &[u8]) -> Sample {
    let mut choices = Choices::new(bytes);
    let nested = choices.flag();
    let container: KeyPath =
        if nested { vec!["mcp".into(), "servers".into()] } else { vec!["servers".into()] };
    let mut servers = Map::new();
    for _ in 0..choices.pick(5) {
        servers.insert(NAMES[choices.pick(NAMES.len())].to_owned(), server(&mut choices));
    }
    let removed = servers.keys().filter(|_| choices.pick(4) != 1).cloned().collect();
    let mut root = Map::new();
    let before = object(&mut choices, 2, 3);
    let after = object(&mut choices, 2, 3);
    let has_container = !servers.is_empty() || choices.flag();
    root.extend(before.into_iter().map(|(key, value)| (format!("b {key}"), value)));
    if has_container {
        let servers = Value::Object(servers);
        let value = if nested {
            Value::Object(Map::from_iter([("servers".to_owned(), servers)]))
        } else {
            servers
        };
        root.insert(container[0].clone(), value);
    }
    root.extend(after.into_iter().map(|(key, value)| (format!("a {key}"), value)));
    let newline = if choices.flag() { "\r\n" } else { "\n" };
    let text = match format {
        Format::Json => json(&Value::Object(root), &mut choices),
        Format::Toml => toml(&root, &mut choices),
        Format::Yaml => yaml(&root, &mut choices),
        Format::Dotenv => unreachable!(),
    };
    let bom = if choices.flag() { "\u{feff}" } else { "" };
    let text = format!("{bom}{}", text.replace('\n', newline));
    Sample { format, text, container, removed, newline }
}

fn json(root: &Value, choices: &mut Choices<'_>) -> String {
    if choices.pick(8) == 1 {
        return root.to_string();
    }
    let unit = ["  ", "    ", "\t"][choices.pick(3)];
    let mut out = String::new();
    if choices.flag() {
        out.push_str("// the settings\n");
    }
    json_value(root, unit, "", choices, &mut out);
    if !choices.flag() {
        out.push('\n');
    }
    out
}

fn json_value(
    value: &Value,
    unit: &str,
    indent: &str,
    choices: &mut Choices<'_>,
    out: &mut String,
) {
    let members: Vec<(Option<&String>, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (Some(key), value)).collect(),
        Value::Array(list) => list.iter().map(|value| (None, value)).collect(),
        _ => return out.push_str(&value.to_string()),
    };
    let (open, close) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    out.push(open);
    let in_one_line = choices.pick(5) == 1;
    let inner = if in_one_line { String::new() } else { format!("{indent}{unit}") };
    let count = members.len();
    for (at, (key, member)) in members.into_iter().enumerate() {
        if in_one_line {
            out.push_str(if at == 0 { "" } else { " " });
        } else {
            if choices.pick(6) == 1 {
                out.push('\n');
            }
            out.push('\n');
            if choices.pick(5) == 1 {
                writeln!(out, "{inner}// about {at}").unwrap();
            }
            out.push_str(&inner);
        }
        if let Some(key) = key {
            out.push_str(&Value::from(key.as_str()).to_string());
            out.push_str([": ", ":", " : "][choices.pick(3)]);
        }
        let nested = if in_one_line { "" } else { unit };
        json_value(member, nested, &inner, choices, out);
        if at + 1 < count || !in_one_line && choices.pick(5) == 1 {
            out.push(',');
        }
        if !in_one_line && choices.pick(6) == 1 {
            out.push_str([" // why", " /* why */"][choices.pick(2)]);
        }
    }
    if !in_one_line && (count > 0 || choices.flag()) {
        if choices.pick(8) == 1 {
            write!(out, "\n{inner}// the end").unwrap();
        }
        out.push('\n');
        out.push_str(indent);
    }
    out.push(close);
}

fn toml(root: &Map<String, Value>, choices: &mut Choices<'_>) -> String {
    let mut out = String::new();
    let (tables, plain): (Vec<_>, Vec<_>) = root.iter().partition(|(_, value)| value.is_object());
    for (key, value) in plain {
        toml_line(key, value, choices, &mut out);
    }
    for (key, value) in tables {
        toml_table(&[key], value, choices, &mut out);
    }
    if choices.flag() {
        out.push_str("# the end\n");
    }
    if choices.flag() && out.ends_with('\n') {
        out.pop();
    }
    out
}

fn toml_key(key: &str) -> String {
    toml_string(key)
}

fn toml_string(text: &str) -> String {
    // In these texts, JSON and TOML have the same escapes.
    Value::from(text).to_string()
}

fn toml_inline(value: &Value) -> String {
    match value {
        Value::String(text) => toml_string(text),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(toml_inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml_inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

fn toml_line(key: &str, value: &Value, choices: &mut Choices<'_>, out: &mut String) {
    if choices.pick(5) == 1 {
        out.push_str("# about the next line\n");
    }
    write!(out, "{} = {}", toml_key(key), toml_inline(value)).unwrap();
    out.push_str(if choices.pick(5) == 1 { " # why\n" } else { "\n" });
}

fn toml_table(path: &[&String], value: &Value, choices: &mut Choices<'_>, out: &mut String) {
    let map = value.as_object().unwrap();
    let (tables, plain): (Vec<_>, Vec<_>) =
        map.iter().partition(|(_, value)| value.is_object() && choices.pick(3) != 1);
    let path_text = path.iter().map(|key| toml_key(key)).collect::<Vec<_>>().join(".");
    if !plain.is_empty() || tables.is_empty() || choices.flag() {
        out.push_str(if choices.pick(4) == 1 { "" } else { "\n" });
        if choices.pick(5) == 1 {
            out.push_str("# about this table\n");
        }
        writeln!(out, "[{path_text}]").unwrap();
        for (key, value) in plain {
            toml_line(key, value, choices, out);
        }
    }
    for (key, value) in tables {
        toml_table(&[path, &[key]].concat(), value, choices, out);
    }
}

fn yaml(root: &Map<String, Value>, choices: &mut Choices<'_>) -> String {
    let mut out = String::new();
    if choices.pick(4) == 1 {
        out.push_str("---\n");
    }
    let unit = 2 + 2 * choices.pick(2);
    yaml_mapping(root, 0, unit, choices, &mut out);
    if choices.flag() {
        out.push_str("# the end\n");
    }
    if choices.flag() && out.ends_with('\n') {
        out.pop();
    }
    out
}

fn yaml_scalar(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().all(|c| c.is_ascii_lowercase()) && text == "npx" => {
            text.clone()
        }
        _ => value.to_string(),
    }
}

fn yaml_mapping(
    map: &Map<String, Value>,
    indent: usize,
    unit: usize,
    choices: &mut Choices<'_>,
    out: &mut String,
) {
    let spaces = " ".repeat(indent);
    for (key, value) in map {
        if choices.pick(6) == 1 {
            out.push('\n');
        }
        if choices.pick(5) == 1 {
            writeln!(out, "{spaces}# about the next key").unwrap();
        }
        let key = if key.chars().all(|c| c.is_ascii_lowercase()) && choices.flag() {
            key.clone()
        } else {
            Value::from(key.as_str()).to_string()
        };
        let comment = if choices.pick(6) == 1 { " # why" } else { "" };
        match value {
            Value::Object(map) if !map.is_empty() => {
                writeln!(out, "{spaces}{key}:{comment}").unwrap();
                yaml_mapping(map, indent + unit, unit, choices, out);
            }
            Value::Array(list) if !list.is_empty() && choices.flag() => {
                writeln!(out, "{spaces}{key}:{comment}").unwrap();
                // A list may have the same indentation as its key.
                let inner = if choices.flag() { spaces.clone() } else { format!("{spaces}  ") };
                for item in list {
                    writeln!(out, "{inner}- {}", yaml_scalar(item)).unwrap();
                }
            }
            Value::String(text) if text.contains('\n') && choices.flag() => {
                writeln!(out, "{spaces}{key}: |-").unwrap();
                for line in text.lines() {
                    writeln!(out, "{spaces}  {line}").unwrap();
                }
            }
            _ => writeln!(out, "{spaces}{key}: {}{comment}", yaml_scalar(value)).unwrap(),
        }
    }
}
