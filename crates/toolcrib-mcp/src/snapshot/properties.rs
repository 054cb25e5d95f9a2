//! Property tests of snapshots: what a profile excludes does not exist for its clients, and no server's names depend on
//! another server's tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::disclosure::{CALL, DESCRIBE, SEARCH, SEARCH_REGEX};
use toolcrib_core::policy::{ActivationMode, Rules};
use toolcrib_core::rank::EmbeddingWork;
use toolcrib_core::{
    CallOutcome, Conversation, FourCharsPerToken, TokenCounter, TurnContext, wire_name,
};

use super::SessionKind;
use super::{ClientView, Snapshot, SnapshotServer};
use crate::config::{GatewayConfig, Profile, Server, ToolOverride, Transport};
use crate::upstream::{Definitions, ServerLists};

const SERVERS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const OWN_NAMES: [&str; 6] = ["read", "write", "read_all", "send", "find_person", "ping"];
const PATTERNS: [&str; 12] = [
    "alpha/*",
    "beta/read",
    "*/send",
    "read*",
    "ping",
    "gamma/*",
    "delta/?ing",
    "*",
    "alpha__read",
    "nobody/*",
    "be*/*",
    "find_person",
];

#[derive(Debug, Clone)]
struct ServerSpec {
    tools: Vec<&'static str>,
    prompts: Vec<&'static str>,
    resources: Vec<&'static str>,
    /// Whether the server has an empty prefix, provided that it has no tools.
    is_unprefixed: bool,
    connecting: bool,
}

fn server_spec() -> impl Strategy<Value = ServerSpec> {
    let some = || prop::sample::subsequence(OWN_NAMES.to_vec(), 0..=OWN_NAMES.len());
    (some(), some(), some(), prop::bool::weighted(0.3), prop::bool::weighted(0.2)).prop_map(
        |(tools, prompts, resources, is_unprefixed, connecting)| ServerSpec {
            tools,
            prompts,
            resources,
            is_unprefixed,
            connecting,
        },
    )
}

fn patterns() -> impl Strategy<Value = Vec<String>> {
    let some = prop::sample::subsequence(PATTERNS.to_vec(), 0..=3);
    some.prop_map(|some| some.into_iter().map(str::to_owned).collect())
}

fn profile() -> impl Strategy<Value = Profile> {
    let servers = prop::sample::subsequence(SERVERS.to_vec(), 0..=SERVERS.len());
    (servers, patterns(), patterns()).prop_map(|(servers, allow, deny)| {
        let servers = servers.into_iter().map(str::to_owned).collect();
        Profile { servers, allow, deny }
    })
}

fn definitions(entries: impl Iterator<Item = Value>) -> Definitions {
    Definitions::of(&entries.collect::<Vec<_>>())
}

fn server(name: &str, spec: &ServerSpec, keep: impl Fn(&str) -> bool) -> SnapshotServer {
    let mut config = Server::new(Transport::Stdio {
        command: "true".into(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
    });
    // Several servers may have an empty prefix here. If they had tools of the same name, the tools would be renamed for
    // all profiles, even for a profile that includes only one of the servers. So only servers without tools get an
    // empty prefix.
    config.prefix = (spec.is_unprefixed && spec.tools.is_empty()).then(String::new);
    let tool = |own: &&&str| json!({"name": own, "description": format!("To {own} things."), "inputSchema": {"type": "object"}});
    let tools: Vec<Value> =
        spec.tools.iter().filter(|own| keep(own)).map(|own| tool(&own)).collect();
    let lists = ServerLists {
        tools: Definitions::of(&tools),
        prompts: definitions(spec.prompts.iter().map(|own| json!({"name": own}))),
        resources: definitions(
            spec.resources.iter().map(|own| json!({"uri": format!("x://{own}")})),
        ),
        ..ServerLists::default()
    };
    let lists = (!spec.connecting).then(|| Arc::new(lists));
    let name = Arc::from(name);
    SnapshotServer {
        name,
        config: config.into(),
        lists,
        connecting: spec.connecting,
        failed: false,
    }
}

/// Generates rules with tool names as people write them, with or without a server's name.
fn rules() -> impl Strategy<Value = Rules> {
    let server = prop::sample::select(&["", "alpha_", "beta__"][..]);
    let name = (server, prop::sample::select(&OWN_NAMES[..]));
    let names = prop::collection::vec(name.prop_map(|(s, own)| format!("{s}{own}")), 0..3);
    names.prop_map(|names| Rules::default().never_defer(names.iter().map(String::as_str)))
}

fn snapshot(profiles: BTreeMap<String, Profile>, servers: Vec<SnapshotServer>) -> Snapshot {
    snapshot_with(Rules::default(), profiles, servers)
}

fn snapshot_with(
    rules: Rules,
    profiles: BTreeMap<String, Profile>,
    servers: Vec<SnapshotServer>,
) -> Snapshot {
    let mut config = GatewayConfig { profiles, ..GatewayConfig::default() };
    config.settings.rules = rules;
    // Deferring is always on, because there are few tools here, and the rules should decide what is deferred, not the
    // number of tools.
    config.settings.activation.mode = ActivationMode::On;
    let config = Arc::new(config);
    let counter: Arc<dyn TokenCounter> = Arc::new(FourCharsPerToken);
    Snapshot::build(None, &config, servers, &counter)
}

/// Generates names that servers may choose. They have various forms, and some contain other servers' prefixes.
fn own_names() -> impl Strategy<Value = BTreeSet<String>> {
    let name = "(a|b|_|__|files|read|名| |h2){1,4}";
    prop::collection::btree_set(name.prop_filter("a name", |name| !name.trim().is_empty()), 0..5)
}

fn server_with_tools(name: &str, prefix: &str, tools: &BTreeSet<String>) -> SnapshotServer {
    let none = ServerSpec {
        tools: Vec::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        is_unprefixed: false,
        connecting: false,
    };
    let mut server = server(name, &none, |_| true);
    let tools: Vec<Value> = tools.iter().map(|own| json!({"name": own})).collect();
    let lists = ServerLists { tools: Definitions::of(&tools), ..ServerLists::default() };
    server.lists = Some(Arc::new(lists));
    Arc::make_mut(&mut server.config).prefix = Some(prefix.to_owned());
    server
}

/// If one tool changes, only that tool is embedded again, regardless of what else is in the snapshot.
#[test]
fn the_next_snapshot_keeps_the_vectors_of_unchanged_tools() {
    let spec = |tools: &[&'static str]| ServerSpec {
        tools: tools.to_vec(),
        prompts: Vec::new(),
        resources: Vec::new(),
        is_unprefixed: false,
        connecting: false,
    };
    let of = |beta: &[&'static str]| {
        let all = |_: &str| true;
        vec![server("alpha", &spec(&OWN_NAMES), all), server("beta", &spec(beta), all)]
    };
    let first = snapshot(BTreeMap::new(), of(&["read", "send"]));
    assert_eq!(first.crib.prepare(), EmbeddingWork { embedded: 8, reused: 0 });
    let counter: Arc<dyn TokenCounter> = Arc::new(FourCharsPerToken);
    let next = Snapshot::build(Some(&first), &first.config, of(&["ping", "send"]), &counter);
    assert_eq!(next.crib.prepare(), EmbeddingWork { embedded: 1, reused: 7 });
    assert_eq!(next.crib.counter().label(), counter.label());
}

/// Returns everything that a client with this view can find out.
fn everything_visible(snapshot: &Snapshot, view: &ClientView) -> Vec<Value> {
    let can_see = |server: &str| view.can_see_server(server);
    let awaited: Vec<_> =
        snapshot.awaited_servers().filter(|name| can_see(name)).cloned().collect();
    let mut all = vec![
        view.list.clone(),
        view.full_list(),
        json!(view.instruction),
        json!(view.saved_tokens),
        json!(awaited),
        json!(snapshot.prompts.list(can_see)),
        json!(snapshot.resources.list(can_see)),
        json!(SERVERS.map(can_see)),
    ];
    let turn = TurnContext::new(&view.scope);
    let catalog = snapshot.crib.catalog();
    let ask = |tool: &str, input: &Value| match snapshot.crib.handle(
        &turn,
        &mut Conversation::new(),
        tool,
        &input.to_string(),
    ) {
        CallOutcome::Run(call) => json!([catalog.tool(call.id).name(), call.arguments.get()]),
        CallOutcome::Answer(reply) => json!([reply, reply.for_model()]),
        CallOutcome::Refused(refusal) => json!(format!("{refusal:?}")),
    };
    for server in SERVERS {
        all.push(ask(SEARCH, &json!({"query": server})));
        for own in OWN_NAMES {
            let name = format!("{server}__{own}");
            for tool in [&*name, own] {
                all.push(ask(tool, &json!({})));
                all.push(ask(CALL, &json!({"name": tool, "arguments": {}})));
                all.push(ask(DESCRIBE, &json!({"name": tool})));
                all.push(ask(SEARCH, &json!({"query": format!("select:{tool}")})));
            }
        }
    }
    for own in OWN_NAMES {
        all.push(ask(SEARCH, &json!({"query": format!("to {own} things")})));
        all.push(ask(SEARCH_REGEX, &json!({"pattern": own})));
        let of = |entry: Option<&super::entry_list::ListEntry>| {
            json!(entry.map(|o| (&o.server, &o.own_name)))
        };
        all.push(of(snapshot.prompts.find(own, can_see)));
        all.push(of(snapshot.resources.find(&format!("x://{own}"), can_see)));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_a_profile_excludes_does_not_exist(
        all in prop::collection::vec(server_spec(), SERVERS.len()),
        profile in profile(),
        rules in rules(),
    ) {
        let profiles = BTreeMap::from([("p".to_owned(), profile)]);
        let servers = || SERVERS.iter().zip(&all);
        let full = snapshot_with(rules.clone(), profiles, servers().map(|(name, spec)| server(name, spec, |_| true)).collect());
        let view = full.view(Some("p"), SessionKind::Stateful).unwrap();
        let catalog = full.crib.catalog();
        let in_scope = |server: &str, own: &str| view.scope.ids().any(|id| {
            let tool = catalog.tool(id);
            tool.server() == Some(server) && tool.declared_name() == own
        });
        let visible = servers()
            .filter(|(name, _)| view.can_see_server(name))
            .map(|(name, spec)| server(name, spec, |own| in_scope(name, own)))
            .collect();
        let alone = snapshot_with(rules, BTreeMap::new(), visible);
        let without = alone.view(None, SessionKind::Stateful).unwrap();
        for (one, other) in everything_visible(&full, &view).into_iter().zip(everything_visible(&alone, &without)) {
            prop_assert_eq!(one, other);
        }
    }

    /// Whatever names one server chooses for its tools, the other server's tools have the same names as if the first
    /// server had no tools. A call by an exact name reaches the right server.
    #[test]
    fn no_server_can_rename_another_servers_tools(
        prefixes in prop::sample::subsequence(vec!["", "a", "a_", "a__b", "files", "名"], 2).prop_shuffle(),
        one in own_names(),
        other in own_names(),
    ) {
        let (mine, theirs) = (prefixes[0], prefixes[1]);
        // The second server may also guess every name of the first server's tools.
        let taken = one.iter().map(|own| wire_name::for_tool(mine, own));
        let other: BTreeSet<String> = other.into_iter().chain(taken).collect();
        let of = |other: &BTreeSet<String>| {
            let servers = vec![server_with_tools("one", mine, &one), server_with_tools("two", theirs, other)];
            snapshot(BTreeMap::new(), servers)
        };
        let names = |snapshot: &Snapshot| -> BTreeSet<(String, String)> {
            let tools = snapshot.crib.catalog().tools().iter().filter(|tool| tool.server() == Some("one"));
            tools.map(|tool| (tool.name().to_owned(), tool.declared_name().into_owned())).collect()
        };
        let (alone, both) = (of(&BTreeSet::new()), of(&other));
        prop_assert_eq!(names(&alone), names(&both));
        let scope = toolcrib_core::Scope::all(both.crib.catalog());
        for (name, own) in names(&both) {
            let input = json!({"name": name, "arguments": {}}).to_string();
            let outcome = both.crib.handle(&TurnContext::new(&scope), &mut Conversation::new(), CALL, &input);
            let CallOutcome::Run(call) = outcome else { panic!("{name}: {outcome:?}") };
            let tool = both.crib.catalog().tool(call.id);
            prop_assert_eq!((tool.server(), &*tool.declared_name()), (Some("one"), &*own));
        }
    }

    /// Whatever the config renames, every tool of the server keeps exactly one name, and a call by that name reaches that
    /// tool. The name does not depend on which other tools the server lists.
    #[test]
    fn renamed_tools_stay_distinct_and_reachable(
        prefix in prop::sample::select(vec!["", "files", "a_", "名"]),
        listed in own_names(),
        renames in prop::collection::btree_map(
            "(a|b|_|__|files|read|名| |h2){1,4}", "(a|b|_|__|files|read|h2){1,3}", 0..6,
        ),
    ) {
        let mut given = BTreeSet::new();
        let overrides: BTreeMap<String, ToolOverride> = renames
            .into_iter()
            .filter(|(own, name)| !own.trim().is_empty() && given.insert(name.clone()))
            .map(|(own, name)| (own, ToolOverride { name: Some(name), ..ToolOverride::default() }))
            .collect();
        let of = |tools: &BTreeSet<String>| {
            let mut server = server_with_tools("one", prefix, tools);
            Arc::make_mut(&mut server.config).tools = overrides.clone();
            let other = server_with_tools("two", "files__", &BTreeSet::from(["read".to_owned()]));
            snapshot(BTreeMap::new(), vec![server, other])
        };
        // The server lists the tools that are renamed, the names that they get, and others.
        let listed: BTreeSet<String> =
            listed.into_iter().chain(overrides.keys().cloned()).chain(given).collect();
        let all = of(&listed);
        let catalog = all.crib.catalog();
        let tools = || catalog.tools().iter().filter(|tool| tool.server() == Some("one"));
        let owns: BTreeSet<String> = tools().map(|tool| tool.declared_name().into_owned()).collect();
        let names: BTreeSet<&str> = tools().map(toolcrib_core::Tool::name).collect();
        prop_assert_eq!(&owns, &listed);
        prop_assert_eq!(names.len(), listed.len());
        let scope = toolcrib_core::Scope::all(catalog);
        for tool in tools() {
            let own = tool.declared_name().into_owned();
            let alone = of(&BTreeSet::from([own.clone()]));
            prop_assert!(alone.crib.catalog().find(tool.name()).is_some(), "{} alone", own);
            let input = json!({"name": tool.name(), "arguments": {}}).to_string();
            let outcome = all.crib.handle(&TurnContext::new(&scope), &mut Conversation::new(), CALL, &input);
            let CallOutcome::Run(call) = outcome else { panic!("{own}: {outcome:?}") };
            prop_assert_eq!(catalog.tool(call.id).declared_name(), own);
        }
    }

    #[test]
    fn prefixed_uris_never_clash(
        one in "[a名 _+-]{1,2}", other in "[a名 _+-]{1,2}", own in "[x+-]{1,2}", others in "[x+-]{1,2}",
    ) {
        let uri = super::name_prefixes::prefixed_uri;
        if uri(&one, &own) == uri(&other, &others) {
            prop_assert_eq!((&one, &own), (&other, &others));
        }
        let full = uri(&one, &own);
        prop_assert_eq!(super::strip_uri_prefix(&one, &full), Some(&*own));
    }
}
