//! The words of the APIs by which keys are judged.
//!
//! They are compared folded: without case, separators and look-alikes, as the most forgiving of parsers does.

/// The words of the APIs that decide about tools, folded, with the accepted spellings.
pub(super) const WORDS: [(&str, &[&str]); 38] = [
    ("tools", &["tools"]),
    ("functions", &["functions"]),
    ("function", &["function"]),
    ("custom", &["custom"]),
    ("name", &["name"]),
    ("type", &["type"]),
    ("toolchoice", &["tool_choice"]),
    ("functioncall", &["function_call", "functionCall"]),
    ("functiondeclarations", &["functionDeclarations", "function_declarations"]),
    ("mcpservers", &["mcp_servers", "mcpServers"]),
    ("toolconfig", &["toolConfig", "tool_config"]),
    ("functioncallingconfig", &["functionCallingConfig", "function_calling_config"]),
    ("allowedfunctionnames", &["allowedFunctionNames", "allowed_function_names"]),
    ("allowedtools", &["allowed_tools"]),
    ("tool", &["tool"]),
    ("toolname", &["tool_name"]),
    ("toolnames", &["tool_names"]),
    ("toolreferences", &["tool_references"]),
    ("definition", &["definition"]),
    ("namespace", &["namespace"]),
    ("serverlabel", &["server_label"]),
    ("servername", &["server_name"]),
    ("mcpservername", &["mcp_server_name"]),
    ("toolconfiguration", &["tool_configuration"]),
    ("defaultconfig", &["default_config"]),
    ("configs", &["configs"]),
    ("enabled", &["enabled"]),
    ("messages", &["messages"]),
    ("input", &["input"]),
    ("contents", &["contents"]),
    ("content", &["content"]),
    ("previousresponseid", &["previous_response_id"]),
    ("conversation", &["conversation"]),
    ("prompt", &["prompt"]),
    ("cachedcontent", &["cachedContent", "cached_content"]),
    ("container", &["container"]),
    ("websearchoptions", &["web_search_options"]),
    ("datasources", &["data_sources", "dataSources"]),
];

/// Words whose values are lists of tools, folded, in addition to those that end in `tools` or `functions`. What other
/// gateways call them is here, too.
const CARRIERS: [&str; 4] = ["functiondeclarations", "mcpservers", "toolsets", "tooldefinitions"];

/// Words whose values are somebody's own: schemas, arguments, results, notes. Folded.
pub(super) const FREE: [&str; 21] = [
    "parameters",
    "parametersjsonschema",
    "inputschema",
    "outputschema",
    "schema",
    "responseschema",
    "responsejsonschema",
    "guidedjson",
    "properties",
    "patternproperties",
    "defs",
    "definitions",
    "inputexamples",
    "metadata",
    "labels",
    "arguments",
    "args",
    "input",
    "output",
    "response",
    "env",
];

/// Those of the free words that hold a schema wherever they are.
pub(super) const SCHEMAS: [&str; 4] =
    ["schema", "responseschema", "responsejsonschema", "guidedjson"];

/// Whether the value of a key may be tools, by what it is called. `word` is the folded key.
pub(super) fn is_carrier(word: &str) -> bool {
    word == "tool"
        || ["tools", "functions", "toollist"].iter().any(|end| word.ends_with(end))
        || CARRIERS.contains(&word)
}

/// A key as the most lenient parser would compare it: without case, separators and look-alikes. Code whose decisions
/// depend on the keys of a body must compare them in this form.
pub fn fold_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for c in key.chars() {
        let c = match c {
            // What Unicode's case folding makes ASCII letters of, and full-width forms.
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            '\u{130}' | '\u{131}' => 'i',
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            c => c,
        };
        out.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
    }
    out
}
