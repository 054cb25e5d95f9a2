//! Tests of ingesting definitions in every format. One bad tool must not affect the others.

use serde_json::{Value, json};
use toolcrib_core::{
    Catalog, DeferPolicy, DefinitionFormat, Error, IngestedTools, Limits, ListSource, Problem,
    ingest, signature,
};
use toolcrib_text::clean::Hidden;

fn read(text: &str) -> IngestedTools {
    ingest(text.as_bytes(), Some("label"), &Limits::default()).unwrap()
}

const SCHEMA: &str = r#"{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#;

#[test]
fn every_format_gives_the_same_tool() {
    let s = SCHEMA;
    let cases = [
        (
            DefinitionFormat::Mcp,
            format!(r#"{{"tools":[{{"name":"find","description":"Finds.","inputSchema":{s}}}]}}"#),
        ),
        (
            DefinitionFormat::Mcp,
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"find","description":"Finds.","inputSchema":{s}}}]}}}}"#
            ),
        ),
        (
            DefinitionFormat::Anthropic,
            format!(r#"[{{"name":"find","description":"Finds.","input_schema":{s}}}]"#),
        ),
        (
            DefinitionFormat::Anthropic,
            format!(
                r#"{{"model":"m","tools":[{{"type":"custom","name":"find","description":"Finds.","input_schema":{s}}}]}}"#
            ),
        ),
        (
            DefinitionFormat::Chat,
            format!(
                r#"[{{"type":"function","function":{{"name":"find","description":"Finds.","parameters":{s}}}}}]"#
            ),
        ),
        (
            DefinitionFormat::Responses,
            format!(
                r#"[{{"type":"function","name":"find","description":"Finds.","parameters":{s}}}]"#
            ),
        ),
        (
            DefinitionFormat::Responses,
            format!(
                r#"[{{"type":"namespace","name":"label","tools":[{{"type":"function","name":"find","description":"Finds.","parameters":{s}}}]}}]"#
            ),
        ),
        (
            DefinitionFormat::Gemini,
            format!(
                r#"[{{"functionDeclarations":[{{"name":"find","description":"Finds.","parametersJsonSchema":{s}}}]}}]"#
            ),
        ),
        (
            DefinitionFormat::Gemini,
            format!(
                r#"{{"tools":[{{"functionDeclarations":[{{"name":"find","description":"Finds.","parameters":{s}}}]}}]}}"#
            ),
        ),
        (
            DefinitionFormat::Gemini,
            format!(
                r#"{{"tools":[{{"function_declarations":[{{"name":"find","description":"Finds.","parameters":null,"parameters_json_schema":{s}}}]}}]}}"#
            ),
        ),
        (
            DefinitionFormat::Own,
            format!(
                r#"{{"name":"find","description":"Finds.","input_schema":{s},"server":"label"}}"#
            ),
        ),
    ];
    for (shape, text) in cases {
        let ingested = read(&text);
        assert_eq!(ingested.findings, [], "{text}");
        let tool = &ingested.tools[0];
        assert_eq!(
            (tool.name(), tool.description(), tool.schema()),
            ("find", "Finds.", s),
            "{text}"
        );
        assert_eq!((tool.format(), tool.server()), (shape, Some("label")), "{text}");
    }
}

/// A gateway changes the definitions of servers in MCP's format. A server must not evade that with another format.
#[test]
fn from_a_server_only_the_format_of_mcp_is_read() {
    let s = SCHEMA;
    let list = format!(
        r#"{{"tools":[
            {{"name":"plain","inputSchema":{s}}},
            {{"name":"anthropic","input_schema":{s}}},
            {{"name":"gemini","parameters":{s}}},
            {{"name":"both","inputSchema":{{"type":"object"}},"parameters":{s},"function":{{"name":"inner","parameters":{s}}}}},
            {{"type":"function","function":{{"name":"openai","parameters":{s}}}}},
            {{"functionDeclarations":[{{"name":"declared","parameters":{s}}}]}},
            {{"type":"namespace","name":"space","tools":[{{"name":"member","inputSchema":{s}}}]}}
        ]}}"#
    );
    let source = ListSource::Server("maths");
    let ingested = ingest(list.as_bytes(), source, &Limits::default()).unwrap();
    let tools: Vec<_> =
        ingested.tools.iter().map(|tool| (tool.name(), tool.schema() == s)).collect();
    let expected = [
        ("plain", true),
        ("anthropic", false),
        ("gemini", false),
        ("both", false),
        ("space", false),
    ];
    assert_eq!(tools, expected);
    assert!(ingested.tools.iter().all(|tool| tool.format() == DefinitionFormat::Mcp));
}

#[test]
fn a_schema_is_kept_byte_for_byte() {
    let schema = r#"{ "zeta":1.0, "type" : "object",  "properties":{"b":{"minimum":1e3},"a":{}},"$ref":"https://example.com/x.json" }"#;
    let ingested = read(&format!(r#"[{{"name":"t","input_schema":{schema}}}]"#));
    assert_eq!(ingested.tools[0].schema(), schema);
}

#[test]
fn names_are_kept_and_servers_are_derived_from_prefixes() {
    let tools = r#"[
        {"name":"mcp__github__get me","input_schema":{}},
        {"name":"slack__post","inputSchema":{}},
        {"name":"math.hypot","input_schema":{},"server":"math"},
        {"name":"plain","input_schema":{},"server":""},
        {"name":"other","input_schema":{}},
        {"name":"  __blank","input_schema":{}}
    ]"#;
    let ingested = read(tools);
    let got: Vec<_> = ingested.tools.iter().map(|tool| (tool.name(), tool.server())).collect();
    let want = [
        ("mcp__github__get me", Some("github")),
        ("slack__post", Some("slack")),
        ("math.hypot", Some("math")),
        ("plain", None),
        ("other", Some("label")),
        ("  __blank", Some("label")),
    ];
    assert_eq!(got, want);
}

#[test]
fn one_bad_tool_does_not_affect_the_others() {
    let deep = format!("{}{}", r#"{"items":"#.repeat(70), "{}") + &"}".repeat(70);
    let wide: Vec<u32> = (0..2_001).collect();
    let cases = [
        ("7".to_owned(), Problem::NotAnObject),
        (r#"{"description":"x"}"#.to_owned(), Problem::NoName),
        (r#"{"name":"","input_schema":{}}"#.to_owned(), Problem::NoName),
        (r#"{"name":"tool_search","input_schema":{}}"#.to_owned(), Problem::NameReserved),
        (r#"{"name":"Tool_Call","input_schema":{}}"#.to_owned(), Problem::NameReserved),
        ("{\"name\":\"a\u{200b}b\",\"input_schema\":{}}".to_owned(), Problem::NameHidden),
        (r#"{"name":"a","input_schema":[]}"#.to_owned(), Problem::SchemaNotAnObject),
        (
            r#"{"name":"a","description":"half \udc01","input_schema":{}}"#.to_owned(),
            Problem::NotJson("lone leading surrogate in hex escape at line 1 column 12".into()),
        ),
        (
            format!(r#"{{"name":"a","input_schema":{deep}}}"#),
            Problem::SchemaTooDeep { depth: 71, limit: 64 },
        ),
        (
            json!({"name": "a", "input_schema": {"enum": wide}}).to_string(),
            Problem::EnumTooLong { values: 2_001, limit: 2_000 },
        ),
        (
            "{\"name\":\"a\",\"input_schema\":{\"properties\":{\"x\u{202e}\":{}}}}".to_owned(),
            Problem::ParameterHidden,
        ),
    ];
    for (bad, problem) in cases {
        let ingested = read(&format!(r#"[{bad},{{"name":"good","input_schema":{{}}}}]"#));
        assert_eq!(ingested.tools.len(), 1, "{bad}");
        assert_eq!(ingested.findings.len(), 1, "{bad}");
        assert!(ingested.findings[0].is_withheld());
        assert_eq!(
            (&ingested.findings[0].problem, ingested.findings[0].location.as_str()),
            (&problem, "tools[0]")
        );
    }
}

#[test]
fn a_line_that_is_not_json_loses_only_that_line() {
    let ingested = read(
        "{\"name\":\"a\",\"input_schema\":{}}\n{oops\n\n{\"name\":\"b\",\"input_schema\":{}}\n",
    );
    assert_eq!(ingested.tools.len(), 2);
    assert_eq!(ingested.findings[0].location, "line 2");
    assert!(matches!(ingested.findings[0].problem, Problem::NotJson(_)));
}

#[test]
fn hidden_text_is_removed_and_reported() {
    let text = "[{\"name\":\"a\",\"description\":\"Reads\u{200b} files.\u{e0049}\u{e0047}\",\"input_schema\":{\"properties\":{\"p\":{\"description\":\"A \\u202epath\"}}}}]";
    let ingested = read(text);
    let tool = &ingested.tools[0];
    assert_eq!(tool.description(), "Reads files.");
    assert_eq!(tool.schema(), r#"{"properties":{"p":{"description":"A path"}}}"#);
    let classes = vec![Hidden::Bidi, Hidden::ZeroWidth, Hidden::Tag];
    assert_eq!(ingested.findings[0].problem, Problem::HiddenText(classes));
    assert!(!ingested.findings[0].is_withheld());
}

#[test]
fn built_in_tools_of_a_provider_are_skipped() {
    let ingested = read(
        r#"[{"type":"web_search_20250305","name":"web_search"},{"type":"tool_search"},{"type":"mcp","server_label":"x"}]"#,
    );
    assert_eq!(ingested.tools, []);
    let kinds: Vec<_> = ingested.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        kinds[0],
        "tools[0]: `web_search`: `web_search_20250305` is the provider's own tool, left as it is"
    );
    assert!(ingested.findings.iter().all(|finding| !finding.is_withheld()));
}

#[test]
fn owners_set_the_deferral_and_the_keywords() {
    let ingested = read(
        r#"[
        {"name":"a","input_schema":{},"defer":"never","keywords":["alpha"]},
        {"name":"b","input_schema":{},"defer_loading":true},
        {"name":"c","inputSchema":{},"_meta":{"anthropic/alwaysLoad":true}},
        {"name":"d","inputSchema":{},"title":"Dee","_meta":{"toolcrib/keywords":["delta"],"toolcrib/defer":"always"}}
    ]"#,
    );
    let policies: Vec<DeferPolicy> =
        ingested.tools.iter().map(toolcrib_core::Tool::defer).collect();
    assert_eq!(
        policies,
        [DeferPolicy::Never, DeferPolicy::Always, DeferPolicy::Never, DeferPolicy::Always]
    );
    assert_eq!(ingested.tools[0].keywords().collect::<Vec<_>>(), ["alpha"]);
    assert_eq!(
        (ingested.tools[3].title(), ingested.tools[3].keywords().next()),
        (Some("Dee"), Some("delta"))
    );
}

#[test]
fn invalid_documents_are_errors_with_hints() {
    for (text, want) in [
        ("", "not JSON: EOF while parsing a value at line 1, column 0"),
        ("{\"a\":", "not JSON: EOF while parsing a value at line 1, column 5"),
        ("7", "no tools in this JSON: found `7`"),
        ("{\"a\":1,\"b\":2}", "no tools in this JSON: found an object with the keys `a`, `b`"),
        ("{\"tools\":{}}", "no tools in this JSON: found `tools` that is not an array"),
    ] {
        let error = ingest(text.as_bytes(), None, &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert!(!error.hint().is_empty());
    }
    let error = ingest(b"[\xff]", None, &Limits::default()).unwrap_err();
    assert_eq!(error, Error::NotText { offset: 1 });
}

fn built(documents: &[(&str, &str)]) -> Catalog {
    let mut builder = Catalog::builder();
    for &(label, text) in documents {
        builder.add(ingest(text.as_bytes(), Some(label), &Limits::default()).unwrap());
    }
    builder.build()
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools().iter().map(toolcrib_core::Tool::name).collect()
}

#[test]
fn two_servers_keep_tools_with_the_same_name_in_either_order() {
    let github = ("github", r#"[{"name":"search","inputSchema":{},"description":"Code."}]"#);
    let slack =
        ("slack", r#"[{"name":"search","inputSchema":{}},{"name":"post","inputSchema":{}}]"#);
    assert_eq!(names(&built(&[github, slack])), ["github__search", "slack__search", "post"]);
    assert_eq!(names(&built(&[slack, github])), ["slack__search", "post", "github__search"]);
    let catalog = built(&[github, slack]);
    assert_eq!(
        catalog.findings()[0].to_string(),
        "catalog: `search`: several servers use this name: now `github__search`"
    );
    let declared: Vec<_> = catalog.tools().iter().map(|tool| tool.declared_name()).collect();
    assert_eq!(
        declared,
        ["search", "search", "post"],
        "the declared names are the servers' own names"
    );
}

#[test]
fn a_server_with_two_definitions_of_a_name_loses_both() {
    let twice = r#"[{"name":"a","input_schema":{},"description":"x"},{"name":"a","input_schema":{},"description":"y"},{"name":"b","input_schema":{}}]"#;
    let catalog = built(&[("s", twice)]);
    assert_eq!(names(&catalog), ["b"]);
    assert!(catalog.findings().iter().all(|finding| finding.problem == Problem::Collision));
    let same = r#"[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}]"#;
    let catalog = built(&[("s", same)]);
    assert_eq!(names(&catalog), ["a"]);
    assert_eq!(catalog.findings()[0].problem, Problem::Duplicate);
}

#[test]
fn the_next_catalog_has_the_next_generation() {
    let first = Catalog::builder().build();
    assert_eq!((first.generation(), first.next().build().generation()), (0, 1));
}

#[test]
fn fingerprints_change_with_everything_but_order_and_white_space() {
    let print = |text: &str| read(text).tools[0].fingerprint();
    let base = print(
        r#"[{"name":"a","description":"d","input_schema":{"type":"object","properties":{"x":{},"y":{}}}}]"#,
    );
    let same = print(
        r#"[{"description":"d","name":"a","input_schema":{"properties":{ "y":{},"x":{}},"type":"object"}}]"#,
    );
    assert_eq!(base, same);
    for other in [
        r#"[{"name":"b","description":"d","input_schema":{"type":"object","properties":{"x":{},"y":{}}}}]"#,
        r#"[{"name":"a","description":"e","input_schema":{"type":"object","properties":{"x":{},"y":{}}}}]"#,
        r#"[{"name":"a","description":"d","input_schema":{"type":"object","properties":{"x":{},"z":{}}}}]"#,
        r#"[{"name":"a","title":"t","description":"d","input_schema":{"type":"object","properties":{"x":{},"y":{}}}}]"#,
    ] {
        assert_ne!(base, print(other), "{other}");
    }
}

#[test]
fn a_recursive_reference_is_kept_and_never_inlined() {
    let schema = r##"{"type":"object","properties":{"filter":{"$ref":"#/$defs/f"}},"$defs":{"f":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/f"}}}}}}"##;
    let ingested = read(&format!(r#"[{{"name":"a","input_schema":{schema}}}]"#));
    assert_eq!(ingested.tools[0].schema(), schema);
    let value: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(signature(&value), "{filter?: {and?: any[]}}");
}

/// In a file with the tool lists of several servers, each tool has its server in a field.
#[test]
fn an_mcp_tool_can_state_its_server() {
    let lines = "{\"server\":\"github\",\"name\":\"find\",\"inputSchema\":{}}\n{\"server\":\"gitlab\",\"name\":\"find\",\"inputSchema\":{}}";
    assert_eq!(names(&built(&[("dump", lines)])), ["github__find", "gitlab__find"]);
}
