//! Tests that a server that is written as TOML is parsed back unchanged.

use proptest::prelude::*;
use toolcrib_core::DeferPolicy;
use toolcrib_mcp::config::{
    HttpVariant, IdleTimeout, OAuth, Server, StartPolicy, ToolDefault, ToolOverride, Transport,
    server_toml,
};
use toolcrib_mcp::{GatewayConfig, Secret};

use crate::{SAMPLES, imported_sample};

#[track_caller]
fn check_round_trip(name: &str, server: &Server) {
    let text = server_toml(name, server);
    let parsed = GatewayConfig::from_toml(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(parsed.servers.len() == 1 && parsed.servers[name] == *server, "{text}");
}

#[test]
fn every_sample_survives_a_round_trip() {
    for name in SAMPLES {
        for (name, server) in imported_sample(name).servers {
            check_round_trip(&name, &server);
        }
    }
}

#[test]
fn only_values_that_differ_from_defaults_are_written() {
    let text = "[servers.\"a b\"]\ncommand = \"x\"\nargs = [\"a\\\"\\\\\\n\\u0001\"]\n";
    let server = &GatewayConfig::from_toml(text).unwrap().servers["a b"];
    assert_eq!(server_toml("a b", server), text);
}

fn text() -> impl Strategy<Value = String> {
    // NUL is removed, because a program's arguments cannot contain it.
    any::<String>().prop_map(|text| text.replace('\0', ""))
}

fn secrets() -> impl Strategy<Value = std::collections::BTreeMap<String, Secret>> {
    prop::collection::btree_map("[A-Za-z0-9_-]{1,8}", "[ -~äß]{0,12}".prop_map(Secret::from), 0..3)
}

fn patterns() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z*?/ .\"]{0,8}[a-z*]", 0..3)
}

fn transport() -> impl Strategy<Value = Transport> {
    let program =
        ("[a-z~/][ -~]{0,8}", prop::collection::vec(text(), 0..4), secrets(), any::<bool>());
    let program = program.prop_map(|(command, args, env, cwd)| Transport::Stdio {
        command,
        args: args.into_iter().map(Secret::from).collect(),
        env,
        cwd: cwd.then(|| "/a b".into()),
    });
    let oauth = (prop::option::of(text()), prop::option::of(text()), patterns());
    let variant =
        prop::sample::select(vec![HttpVariant::Auto, HttpVariant::Streamable, HttpVariant::Sse]);
    let address = (variant, secrets(), oauth);
    let address = address.prop_map(|(variant, headers, (id, secret, scopes))| Transport::Http {
        url: "https://example.com/mcp?a=\"b\"".into(),
        variant,
        headers,
        oauth: OAuth {
            client_id: id,
            client_secret: secret.map(Secret::from),
            trusted_hosts: scopes.clone(),
            scopes,
        },
    });
    prop_oneof![program, address]
}

fn default_value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z .]{0,3}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn tool()(
        description in prop::option::of(".{0,10}[a-z\"]"),
        hide_parameters in prop::collection::vec(".{0,4}", 0..3),
        defaults in prop::collection::btree_map(".{0,4}", default_value(), 0..3),
        backwards in any::<bool>(),
        read_only in any::<Option<bool>>(),
    ) -> ToolOverride {
        let mut defaults: Vec<_> =
            defaults.into_iter().map(|(name, value)| (name, ToolDefault::new(value))).collect();
        if backwards {
            defaults.reverse();
        }
        ToolOverride { name: None, description, hide_parameters, defaults, read_only }
    }
}

/// Generates changes to tools. Each tool has another new name, because two tools cannot have the same one.
fn tools() -> impl Strategy<Value = std::collections::BTreeMap<String, ToolOverride>> {
    prop::collection::btree_map(".{0,6}[a-z\"]", (tool(), any::<bool>()), 0..3).prop_map(|tools| {
        let named = tools.into_iter().enumerate().map(|(number, (tool, (change, is_renamed)))| {
            let name = is_renamed.then(|| format!("tool_{number}"));
            (tool, ToolOverride { name, ..change })
        });
        named.collect()
    })
}

prop_compose! {
    fn server()(
        transport in transport(),
        (enabled, parallel, trust_annotations) in any::<(bool, bool, bool)>(),
        prefix in prop::option::of("[a-z_\"]{0,5}"),
        (allow, deny, always_load) in (patterns(), patterns(), patterns()),
        defer in prop_oneof![
            Just(None),
            Just(Some(DeferPolicy::Never)),
            Just(Some(DeferPolicy::Automatic)),
            Just(Some(DeferPolicy::Always)),
        ],
        (start_timeout, call_timeout) in (0.1..1_800.0, 0.1..86_400.0),
        timeouts in prop::collection::btree_map("[a-z*]{1,5}", 0.1..86_400.0, 0..4),
        backwards in any::<bool>(),
        run in prop_oneof![
            Just((None, None)),
            Just((Some(StartPolicy::Eager), None)),
            Just((Some(StartPolicy::Lazy), Some(IdleTimeout::Never))),
            (0.1..604_800.0).prop_map(|idle| (None, Some(IdleTimeout::After(idle)))),
        ],
        tools in tools(),
    ) -> Server {
        let mut timeouts: Vec<(String, f64)> = timeouts.into_iter().collect();
        if backwards {
            timeouts.reverse();
        }
        Server {
            enabled, parallel, prefix, allow, deny, always_load, defer, start_timeout, call_timeout,
            timeouts,
            start: run.0,
            idle: run.1,
            tools,
            trust_annotations,
            ..Server::new(transport)
        }
    }
}

proptest! {
    #[test]
    fn any_server_survives_a_round_trip(name in "[^\\p{Cc}]{0,20}[a-z]", server in server()) {
        // Skips names that cleaning would change, because the config rejects them.
        prop_assume!(toolcrib_text::clean::one_line(&name) == name);
        check_round_trip(&name, &server);
    }
}
