//! The invariants of the design, as properties over generated catalogs, scopes and queries.
//!
//! Faults were put into the engine on purpose, to show that these tests can fail. CONTRIBUTING.md lists each fault with
//! the tests that failed.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::conversation::{DEFAULT_MAX_REVEALS, TranscriptEntry};
use toolcrib_core::reply::ReplyFormat;
use toolcrib_core::{
    CallOutcome, Catalog, Conversation, Crib, DefinitionFormat, Ledger, Limits, Preset, Query,
    Scope, SearchRequest, Settings, TurnContext, ingest, wire_name,
};

use crate::support::{crib_with, lines};

const WORDS: [&str; 16] = [
    "create",
    "issue",
    "delete",
    "mail",
    "send",
    "file",
    "list",
    "search",
    "repository",
    "weather",
    "forecast",
    "message",
    "update",
    "calendar",
    "event",
    "photo",
];

fn words(
    count: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(&WORDS[..]), count)
}

/// A tool with a name of one or two words, a short description and some parameters.
fn tool() -> impl Strategy<Value = Value> {
    (words(1..3), words(0..8), words(0..3), 0..4usize).prop_map(
        |(name, prose, properties, server)| {
            let server = ["", "acme", "globex", "initech"][server];
            let properties: serde_json::Map<String, Value> = properties
                .iter()
                .map(|word| ((*word).to_owned(), json!({"type": "string", "description": word})))
                .collect();
            let name = name.join("_");
            let name = if server.is_empty() { name } else { format!("{server}__{name}") };
            json!({
                "name": name, "server": server, "description": prose.join(" "),
                "input_schema": {"type": "object", "properties": properties},
            })
        },
    )
}

/// Tools with distinct names, and for each whether it is in scope.
fn scoped_tools() -> impl Strategy<Value = Vec<(Value, bool)>> {
    proptest::collection::vec((tool(), any::<bool>()), 0..24).prop_map(|tools| {
        let mut seen = HashSet::new();
        tools.into_iter().filter(|(tool, _)| seen.insert(tool["name"].to_string())).collect()
    })
}

/// A query of words, operators, names and typos, or a `select:` of such tokens.
fn question() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => proptest::sample::select(&["isue", "mesage", "wether", "foto", "repo"][..]).prop_map(str::to_owned),
        1 => proptest::sample::select(&["+mail", "-file", "acme:", "server:globex", "\"send mail\""][..]).prop_map(str::to_owned),
        1 => (0..3usize, words(1..3)).prop_map(|(s, w)| format!("{}__{}", ["acme", "globex", "initech"][s], w.join("_"))),
    ];
    let plain = proptest::collection::vec(token.clone(), 0..6).prop_map(|tokens| tokens.join(" "));
    let select =
        proptest::collection::vec(token, 1..4).prop_map(|t| format!("select:{}", t.join(",")));
    prop_oneof![3 => plain, 1 => select]
}

fn preset() -> impl Strategy<Value = Preset> {
    proptest::sample::select(Preset::ALL)
}

/// The name of a tool as a person might write it in a rule: without its server, or with other separators.
fn rule(tools: &[(Value, bool)], at: usize) -> String {
    let name = tools.get(at / 2).and_then(|(tool, _)| tool["name"].as_str()).unwrap_or("none");
    if at.is_multiple_of(2) {
        name.replace("__", "-")
    } else {
        name.split("__").last().unwrap_or_default().to_owned()
    }
}

#[cfg(feature = "presets")]
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-10..60i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}|on|off|auto|auto:-1|yes|7".prop_map(Value::from),
        Just(json!(["mail__*", 3, null])),
        Just(json!({"k1": "x", "threshold": 0})),
    ]
}

fn build(tools: &[Value], toml: &str) -> Crib {
    let mut builder = Catalog::builder();
    builder.add(ingest(lines(tools).as_bytes(), None, &Limits::default()).unwrap_or_default());
    let on = "[activation]\nmode = 'on'\n";
    Crib::new(builder.build(), Settings::from_toml(&format!("{toml}{on}")).unwrap())
}

/// Everything that a caller can obtain from an engine for one query, as text.
fn everything(crib: &Crib, scope: &Scope, question: &str) -> Vec<String> {
    let turn = TurnContext::new(scope);
    let mut out = Vec::new();
    for form in [
        ReplyFormat::Json,
        ReplyFormat::Functions,
        ReplyFormat::Markdown,
        ReplyFormat::Tools,
        ReplyFormat::Matches,
    ] {
        out.push(
            crib.search(&turn, &mut Conversation::new(), &SearchRequest::query(question))
                .text(form),
        );
    }
    // If no tool fits, the reply has no hits to compare. So the search is repeated with settings that always return
    // hits.
    let (mut lenient, ask) = (crib.settings().clone(), SearchRequest::query(question));
    lenient.search.refuse = false;
    let lenient = crib.with_settings(lenient).search(&turn, &mut Conversation::new(), &ask);
    out.push(lenient.text(ReplyFormat::Json));
    let pattern = SearchRequest::pattern(&question.replace(' ', "|"));
    out.push(crib.search(&turn, &mut Conversation::new(), &pattern).text(ReplyFormat::Json));
    let shown = crib.disclose(&turn, &mut Conversation::new());
    out.extend(shown.definitions(DefinitionFormat::Own).iter().map(ToString::to_string));
    out.extend(shown.instruction.clone());
    out.extend(shown.announcement.clone());
    let mut conversation = Conversation::new();
    for (tool, key) in [("tool_describe", "name"), ("tool_call", "name"), (question, "text")] {
        let input = json!({key: question}).to_string();
        out.push(match crib.handle(&turn, &mut conversation, tool, &input) {
            CallOutcome::Run(call) => format!("run {} {}", call.name, call.arguments),
            CallOutcome::Answer(reply) => reply.text(ReplyFormat::Json),
            CallOutcome::Refused(refusal) => refusal.text(),
        });
    }
    if let Query::Words(words) = crib.parse(question, scope) {
        for hit in crib.rank(&words, scope, 10) {
            out.push(serde_json::to_string(&crib.explain(&words, scope, hit.id)).unwrap());
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Invariant 1. A scope is equivalent to a smaller catalog: every byte of every answer, including scores, is the
    /// same as if the other tools did not exist. This holds for every preset.
    #[test]
    fn out_of_scope_tools_influence_no_answer(
        tools in scoped_tools(), question in question(), preset in preset(), never in 0..48usize, always in 0..48usize,
    ) {
        let all: Vec<Value> = tools.iter().map(|(tool, _)| tool.clone()).collect();
        let some: Vec<Value> =
            tools.iter().filter(|(_, visible)| *visible).map(|(tool, _)| tool.clone()).collect();
        let (never, always) = (rule(&tools, never), rule(&tools, always));
        let rules = format!("[defer]\nnever = ['{never}']\nalways = ['{always}']\n");
        let toml = format!("preset = '{preset}'\n{rules}");
        let (whole, small) = (build(&all, &toml), build(&some, &toml));
        let visible: Vec<String> =
            some.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        let scope = Scope::named(whole.catalog(), visible.iter().map(String::as_str));
        prop_assert_eq!(
            everything(&whole, &scope, &question),
            everything(&small, &Scope::all(small.catalog()), &question)
        );
    }

    /// Invariant 2. The order of the catalog influences no answer. Only in the rankers of other systems does it break
    /// ties, as in those systems.
    #[cfg(feature = "presets")]
    #[test]
    fn the_order_of_the_catalog_influences_no_answer(
        tools in scoped_tools(), question in question(), shift in 0..24usize, kind in 0..2usize,
    ) {
        let tools: Vec<Value> = tools.into_iter().map(|(tool, _)| tool).collect();
        let mut reordered = tools.clone();
        reordered.rotate_left(shift % tools.len().max(1));
        reordered.reverse();
        let toml = ["disclosure = 'bridge'\n", "preset = 'claude-code'\n"][kind];
        let (a, b) = (build(&tools, toml), build(&reordered, toml));
        prop_assert_eq!(
            everything(&a, &Scope::all(a.catalog()), &question),
            everything(&b, &Scope::all(b.catalog()), &question)
        );
    }

    /// Invariant 5. Any text as a query, a name or an input gets an answer and causes no panic.
    #[test]
    fn any_text_gets_an_answer(
        text in "(?s).{0,300}", other in "\\PC{0,40}", preset in preset(),
    ) {
        let crib = build(&crate::support::office(), &format!("preset = '{preset}'\n"));
        let scope = Scope::all(crib.catalog());
        everything(&crib, &scope, &text);
        everything(&crib, &scope, &format!("{other}:{text}"));
        for tool in ["tool_search", "tool_search_regex", "tool_call", "tool_describe", &other] {
            crib.handle(&TurnContext::new(&scope), &mut Conversation::new(), tool, &text);
            let input = json!({"name": other, "query": text, "pattern": text, "arguments": text});
            crib.handle(&TurnContext::new(&scope), &mut Conversation::new(), tool, &input.to_string());
        }
        let _ = Settings::from_toml(&text);
        let _ = Ledger::import(&text, 8);
        let limits = crate::support::limits(|limits| {
            (limits.query_bytes, limits.description_bytes) = (7, 5);
            limits.indexed_description_bytes = 3;
        });
        Query::parse(&text, &limits, |_| true);
        let tool = json!({"name": "t", "description": text, "input_schema": {"description": text}});
        let mut settings = Settings::default();
        settings.limits = limits.clone();
        Crib::new(Catalog::from_json(tool.to_string().as_bytes()).unwrap(), settings);
        let _ = ingest(tool.to_string().as_bytes(), Some(other.as_str()), &limits);
    }

    /// Invariant 5. Any bytes give a catalog, or an error with a hint.
    #[test]
    fn any_bytes_are_a_catalog_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = ingest(&bytes, None, &Limits::default()) {
            prop_assert!(!error.hint().is_empty());
        }
    }

    /// Invariant 5. Any value anywhere in another system's configuration is used, clamped or replaced, and an engine
    /// works with the resulting settings.
    #[cfg(feature = "presets")]
    #[test]
    fn any_configuration_is_read(value in leaf(), other in leaf(), at in 0..12usize) {
        let config = [
            json!({"capabilities": {"tool_search": {"threshold": value, "never_defer": other}}}),
            json!({"capabilities": {"tool_search": value}}),
            json!({"capabilities": [value, "tool_search", other]}),
            json!({"tools": {"tool_search": {"enabled": value, "threshold_pct": other}}}),
            json!({"tools": {"tool_search": {"search_default_limit": value, "max_search_limit": other}}}),
            json!({"tools": {"tool_search": value}}),
            json!({"plugin": [["opencode-tool-search", {"alwaysLoad": value, "searchLimit": other}]]}),
            json!({"plugin": [["opencode-tool-search", {"bm25": {"k1": value, "b": other}}]]}),
            json!({"plugin": ["opencode-tool-search", value], "deferDescription": other}),
            json!({"toolSearch": {"enabled": value, "alwaysLoad": other}, "mcp": value}),
            json!({"env": {"ENABLE_TOOL_SEARCH": value}, "mcpServers": {"a": {"alwaysLoad": other}}}),
            value.clone(),
        ][at].clone();
        let tools = crate::support::catalog(&crate::support::office());
        for preset in [Preset::Everruns, Preset::Everruns050, Preset::Hermes, Preset::Opencode, Preset::ClaudeCode] {
            let settings = preset.configured(&config).unwrap().settings;
            prop_assert!((1..=50).contains(&settings.search.max_limit));
            prop_assert!((1..=settings.search.max_limit).contains(&settings.search.limit));
            prop_assert!((0.0..=100.0).contains(&settings.activation.context_percent));
            prop_assert!(settings.rank.bm25.k1 >= 0.0 && (0.0..=1.0).contains(&settings.rank.bm25.b));
            let crib = Crib::new(tools.clone(), settings);
            everything(&crib, &Scope::all(crib.catalog()), "create an issue");
        }
    }

    /// Invariant 5. Any JSON is ingested without affecting other tools, and all tools that are ingested are clean, have
    /// an allowed name, and have an object as their schema.
    #[test]
    fn any_json_is_ingested_clean_and_bounded(
        name in "\\PC{0,12}|[\\x00-\\x20a-z\u{200b}\u{202e}\u{e0041}_]{0,12}",
        description in "(?s).{0,40}",
        schema in "(null|true|\\[\\]|\\{\\}|\\{\"type\":7\\}|\\{\"properties\":\\{\"a\u{200b}\":\\{\\}\\}\\})",
        key in "(input_schema|inputSchema|parameters|parametersJsonSchema)",
    ) {
        let text = format!(
            "[{{\"name\":{},\"description\":{},\"{key}\":{schema}}}, {{\"name\":\"sibling\",\"input_schema\":{{}}}}]",
            json!(name), json!(description)
        );
        let ingested = ingest(text.as_bytes(), None, &Limits::default()).unwrap();
        prop_assert!(ingested.tools.iter().any(|tool| tool.name() == "sibling"), "{:?}", ingested.findings);
        for tool in &ingested.tools {
            prop_assert!(toolcrib_text::clean::is_clean(tool.description()));
            prop_assert!(toolcrib_text::clean::is_clean(tool.definition()));
            prop_assert!(!wire_name::is_reserved(tool.name()));
            prop_assert!(serde_json::from_str::<Value>(tool.schema()).unwrap().is_object());
        }
    }

    /// Invariant 6. Wire names are injective, valid for every provider, and never the name of one of our own tools. The
    /// generated pairs include pairs that differ only in the position of the separator, and tools whose own name is the
    /// wire name of another tool.
    #[test]
    fn wire_names_are_injective(
        pairs in proptest::collection::vec(("[_a]{0,3}|\\PC{0,80}|tool", "[_a]{0,3}|\\PC{0,80}|search"), 1..60),
    ) {
        let forged = pairs.iter().map(|(server, tool)| (String::new(), wire_name::for_tool(server, tool)));
        let pairs: Vec<(String, String)> = pairs.iter().cloned().chain(forged).collect();
        let mut owners: HashMap<String, &(String, String)> = HashMap::new();
        for pair in &pairs {
            let name = wire_name::for_tool(&pair.0, &pair.1);
            prop_assert!(wire_name::is_valid(&name), "{:?} became {}", pair, name);
            prop_assert!(!wire_name::is_reserved(&name));
            prop_assert_eq!(&name, &wire_name::for_tool(&pair.0, &pair.1));
            let owner = *owners.entry(name.clone()).or_insert(pair);
            prop_assert_eq!(owner, pair, "both are {}", name);
        }
    }

    /// Invariant 6. The wire names of tools with a fixed full name are injective as well.
    #[test]
    fn wire_names_of_full_names_are_injective(
        names in proptest::collection::hash_set("[_a. ]{1,3}|\\PC{1,80}|tool_search", 1..40),
    ) {
        let forged = names.iter().map(|name| wire_name::for_full_name(name).into_owned());
        let names: HashSet<String> = names.iter().cloned().chain(forged).collect();
        let wires: HashSet<Cow<'_, str>> = names.iter().map(|name| wire_name::for_full_name(name)).collect();
        prop_assert_eq!(wires.len(), names.len());
        prop_assert!(wires.iter().all(|wire| wire_name::is_valid(wire) && !wire_name::is_reserved(wire)));
    }

    /// Invariant 7. If deferral is not activated, the tools array is exactly the text of the input: no search tool, no
    /// note, and no changed white space.
    #[test]
    fn below_activation_the_tools_are_unchanged(
        tools in proptest::collection::vec(tool(), 0..14), blanks in "[ \\n\\t]{0,3}", shape in 0..4usize,
    ) {
        let definitions: Vec<String> = tools.iter().enumerate().map(|(i, tool)| {
            let name = format!("{}{i}", tool["name"].as_str().unwrap());
            let (description, schema) = (&tool["description"], &tool["input_schema"]);
            match shape {
                0 => format!("{{\"name\":{}{blanks},\"description\":{description},\"input_schema\":{schema}}}", json!(name)),
                1 => format!("{{\"type\":\"function\",{blanks}\"function\":{{\"name\":{},\"parameters\":{schema}}}}}", json!(name)),
                2 => format!("{{\"type\":\"function\",\"name\":{},\"parameters\":{blanks}{schema},\"x\":1.0}}", json!(name)),
                _ => format!("{{\"name\":{},\"parametersJsonSchema\":{schema}{blanks}}}", json!(name)),
            }
        }).collect();
        let input = format!("{blanks}[{}]", definitions.join(&format!(",{blanks}")));
        let shape = [DefinitionFormat::Anthropic, DefinitionFormat::Chat, DefinitionFormat::Responses, DefinitionFormat::Gemini][shape];
        let crib = Crib::new(Catalog::from_json(input.as_bytes()).unwrap(), Settings::default());
        let scope = Scope::all(crib.catalog());
        prop_assert_eq!(crib.catalog().len(), tools.len());
        let shown = crib.disclose(&TurnContext::new(&scope), &mut Conversation::new());
        prop_assert!(shown.passes_through());
        prop_assert_eq!(crib.tools_json(&shown, &input, shape), input.as_str());
        prop_assert_eq!((shown.own_tools.len(), &shown.instruction, &shown.listing), (0, &None, &None));
        prop_assert_eq!(shown.definitions(shape), definitions);
    }

    /// Under all settings, no text tells the model to use one of our tools that it does not have. In addition, the
    /// replies alone are enough to rebuild which tools were loaded.
    #[test]
    fn texts_for_the_model_are_true_under_all_settings(
        kind in 0..4usize, flags in any::<[bool; 6]>(), form in 0..5usize, listing in 0..6usize,
        place in 0..3usize, queries in proptest::collection::vec(question(), 1..8),
    ) {
        let [reveals, schemas, known_last, regex, deferrable, strong] = flags;
        let toml = format!(
            "disclosure = '{}'\nreveals = {reveals}\nguidance = '{}'\n[listing]\nform = '{}'\nplace = '{}'\n\
             [search]\nschemas = {schemas}\nknown_last = {known_last}\nregex = {regex}\nform = '{}'\namong = '{}'\n\
             reply_tokens = 200\n",
            ["bridge", "reveal", "terse", "append"][kind], ["short", "strong"][usize::from(strong)],
            ["full", "names", "mixed", "groups", "count", "none"][listing],
            ["description", "fresh", "message"][place],
            ["json", "functions", "markdown", "tools", "matches"][form],
            ["all", "deferrable"][usize::from(deferrable)],
        );
        // The schemas are made so large that replies must show some of them as signatures.
        let mut tools = crate::support::office();
        for (at, tool) in tools.iter_mut().enumerate() {
            let more = "as its server says ".repeat(6 * (at % 4));
            tool["input_schema"]["description"] = more.into();
        }
        let crib = build(&tools, &toml);
        let scope = Scope::all(crib.catalog());
        let turn = TurnContext::new(&scope);
        let mut conversation = Conversation::new();
        let (mut texts, mut replies) = (Vec::new(), Vec::new());
        for query in queries {
            let shown = crib.disclose(&turn, &mut conversation);
            texts.extend(shown.instruction.clone().into_iter().chain(shown.announcement.clone()));
            texts.extend(shown.own_tools.iter().map(|own| own.definition(DefinitionFormat::Own)));
            let reply = crib.search(&turn, &mut conversation, &SearchRequest::query(&query)).for_model();
            replies.push((reply.clone(), None));
            texts.push(reply);
            let call = json!({"query": "x", "to": "x", "subject": "x", "id": "x"}).to_string();
            match crib.handle(&turn, &mut conversation, &query, &call) {
                CallOutcome::Run(call) => replies.push((String::new(), Some(call.name))),
                CallOutcome::Refused(refusal) => replies.push((refusal.text(), None)),
                CallOutcome::Answer(reply) => replies.push((reply.for_model(), None)),
            }
        }
        // A ledger that is rebuilt from the transcript must be equal to that of the conversation.
        let transcript = replies.iter().map(|(reply, called)| match called {
            Some(name) => TranscriptEntry::Call(name),
            None => TranscriptEntry::Reply(reply),
        });
        let rebuilt = Ledger::from_transcript(transcript, DEFAULT_MAX_REVEALS);
        let names = |ledger: &Ledger| -> Vec<String> {
            ledger.reveals().map(|reveal| reveal.name.clone()).collect()
        };
        prop_assert_eq!(names(&rebuilt), names(conversation.ledger()), "{:?}", replies);
        prop_assert!(rebuilt.deferred(), "{:?}", replies);
        let shown = crib.disclose(&turn, &mut conversation);
        for name in ["tool_describe", "tool_call", "tool_search_regex"] {
            let offered = shown.own_tools.iter().any(|own| own.name == name);
            prop_assert!(offered || !texts.iter().any(|text| text.contains(name)), "{name}: {texts:?}");
        }
    }

    /// If any tool is deferred, at least one tool must be shown in full: our search tool.
    #[test]
    fn at_least_one_tool_is_always_shown_in_full(tools in scoped_tools(), kind in 0..4usize) {
        let tools: Vec<Value> = tools.into_iter().map(|(tool, _)| tool).collect();
        let kind = ["bridge", "reveal", "terse", "append"][kind];
        let crib = crib_with(&tools, &format!("disclosure = '{kind}'\n"));
        let scope = Scope::all(crib.catalog());
        let shown = crib.disclose(&TurnContext::new(&scope), &mut Conversation::new());
        prop_assert!(tools.is_empty() || shown.own_tools.iter().any(|own| own.name == "tool_search"));
    }
}
