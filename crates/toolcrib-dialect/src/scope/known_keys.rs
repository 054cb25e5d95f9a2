//! The keys that matter for the scope, in all four APIs.
//!
//! Keys are compared after [`fold_key`], which ignores case, separators and look-alike letters, as the most lenient
//! parser would.

/// Keys that are related to tools: in the form that [`fold_key`] returns, and with their accepted spellings.
pub(super) const KNOWN_KEYS: [(&str, &[&str]); 38] = [
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

/// Keys whose values are lists of tools, in the form that [`fold_key`] returns, except those that [`can_carry_tools`]
/// recognises by their endings. Some of the keys in this list are used only by other gateways.
const TOOL_LIST_KEYS: [&str; 4] =
    ["functiondeclarations", "mcpservers", "toolsets", "tooldefinitions"];

/// Keys whose values are free-form (schemas, arguments, results, notes), in the form that [`fold_key`] returns.
pub(super) const FREE_FORM_KEYS: [&str; 21] = [
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

/// Those free-form keys whose values are schemas in every position.
pub(super) const SCHEMA_KEYS: [&str; 4] =
    ["schema", "responseschema", "responsejsonschema", "guidedjson"];

/// Whether a key may contain tools, judging by its name. `word` is the key after [`fold_key`].
pub(super) fn can_carry_tools(word: &str) -> bool {
    word == "tool"
        || ["tools", "functions", "toollist"].iter().any(|end| word.ends_with(end))
        || TOOL_LIST_KEYS.contains(&word)
}

/// Returns a key in the form in which the most lenient parser would compare it: without case, separators and look-alike
/// letters. Code whose decisions depend on the keys of a body must compare them in this form. The function is public
/// because the proxy also looks for references to stored objects in bodies.
pub fn fold_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for c in key.chars() {
        let c = match c {
            // These are letters that Unicode's case folding maps to ASCII, and full-width forms.
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
