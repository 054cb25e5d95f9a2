//! Tests of parsing `toolcrib.toml`: every key, and the errors.

use toolcrib_core::{DeferPolicy, Preset, SettingsReader};
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::{
    DeferToClients, GatewayLimits, GatewaySettings, HttpVariant, IdleTimeout, OAuth, Profile,
    Server, ToolDefault, ToolOverride, Transport, UnsupportedTasks,
};
use toolcrib_server::HttpSettings;
use toolcrib_server::config::TlsFiles;

use crate::{
    IGNORED_SECTIONS, http_server, in_folder, read_file, read_file_over, stdio_server, texts,
};

const ALL: &str = r#"
preset = "hermes"

[activation]
tools = 7

[servers.files]
command = "npx"
args = ["-y", "files-server", "${HOME}"]
env = { KEY = "value" }
cwd = "/srv"
enabled = false
prefix = ""
allow = ["read_*"]
deny = ["*delete*"]
defer = "never"
always_load = ["read_file"]
start_timeout = 5
call_timeout = 2.5
timeouts = { "slow_*" = 600, "a*" = 1 }
parallel = false
trust_annotations = false

[servers.files.tools.read_file]
name = "read"
description = "Reads a file."
hide_parameters = ["token"]
defaults = { token = "${TOKEN}", limit = 5 }
read_only = false

[servers."my server"]
url = "https://example.com/sse"
transport = "sse"
headers = { Authorization = "Bearer ${TOKEN}" }
oauth = { client_id = "id", client_secret = "s", scopes = ["read"], trusted_hosts = ["sso.corp"] }

[profiles.work]
servers = ["files"]
allow = ["files/*"]
deny = ["*write*"]

[gateway]
description_chars = 1000
server_instructions_chars = 10000
add_found = true
defer_to_clients = true
wait = 0
first_list_wait = 3
background_wait = 1.5
background_idle = "10m"
background_check = 5
clean_results = true
unsupported_tasks = "reject"
profile = "work"

[gateway.limits]
pages = 3

[http]
listen = "127.0.0.1:9000"
token = "t"
admin_token = "a"
allowed_hosts = ["crib.example.com"]
allowed_origins = ["https://app.example.com"]
connections = 100
connections_per_address = 10
header_timeout = 1
idle_timeout = 2
body_timeout = 3
body_bytes = 4
tls = { certificate = "/a.pem", key = "/b.pem" }

[proxy]
rounds = 3
"#;

#[test]
fn every_key_is_read() {
    let oauth = OAuth {
        client_id: Some("id".into()),
        client_secret: Some("s".into()),
        scopes: texts(&["read"]),
        trusted_hosts: texts(&["sso.corp"]),
    };
    let files = stdio_server("npx", &["-y", "files-server", "${HOME}"], &[("KEY", "value")]);
    let changed = ToolOverride {
        name: Some("read".into()),
        description: Some("Reads a file.".into()),
        hide_parameters: texts(&["token"]),
        defaults: vec![
            ("token".into(), ToolDefault::new("${TOKEN}".into())),
            ("limit".into(), ToolDefault::new(5.into())),
        ],
        read_only: Some(false),
    };
    let files = Server {
        tools: [("read_file".to_owned(), changed)].into(),
        trust_annotations: false,
        enabled: false,
        prefix: Some(String::new()),
        allow: texts(&["read_*"]),
        deny: texts(&["*delete*"]),
        defer: Some(DeferPolicy::Never),
        always_load: texts(&["read_file"]),
        start_timeout: 5.0,
        call_timeout: 2.5,
        timeouts: vec![("slow_*".into(), 600.0), ("a*".into(), 1.0)],
        parallel: false,
        ..in_folder(files, "/srv")
    };
    let headers = [("Authorization", "Bearer ${TOKEN}")];
    let mut settings = Preset::Hermes.settings();
    settings.activation.tools = 7;
    let profile = Profile {
        servers: texts(&["files"]),
        allow: texts(&["files/*"]),
        deny: texts(&["*write*"]),
    };
    let mut remote = http_server("https://example.com/sse", &headers, oauth);
    if let Transport::Http { variant, .. } = &mut remote.transport {
        *variant = HttpVariant::Sse;
    }
    let expected = GatewayConfig {
        settings,
        servers: [("files".to_owned(), files), ("my server".to_owned(), remote)].into(),
        profiles: [("work".to_owned(), profile)].into(),
        gateway: GatewaySettings {
            description_chars: 1_000,
            server_instructions_chars: 10_000,
            add_found: true,
            defer_to_clients: DeferToClients::All,
            wait: 0.0,
            first_list_wait: 3.0,
            clean_results: true,
            unsupported_tasks: UnsupportedTasks::Reject,
            profile: Some("work".into()),
            background_wait: 1.5,
            background_idle: IdleTimeout::After(600.0),
            background_check: 5.0,
            limits: GatewayLimits { pages: 3, ..GatewayLimits::default() },
        },
    };
    let http = HttpSettings {
        listen: "127.0.0.1:9000".parse().unwrap(),
        token: Some("t".into()),
        admin_token: Some("a".into()),
        allowed_hosts: texts(&["crib.example.com"]),
        allowed_origins: texts(&["https://app.example.com"]),
        connections: Some(100),
        connections_per_address: Some(10),
        header_timeout: 1,
        idle_timeout: 2,
        body_timeout: 3,
        body_bytes: 4,
        tls: Some(TlsFiles { certificate: "/a.pem".into(), key: "/b.pem".into() }),
    };
    let read = read_file(ALL).unwrap();
    assert!(read.0 == expected);
    assert_eq!(read.1, http);
    // The engine parses the same text and ignores the tables in `IGNORED_SECTIONS`.
    assert_eq!(
        SettingsReader::new().ignoring(&IGNORED_SECTIONS).read(ALL).unwrap(),
        expected.settings
    );
    let mut over = Preset::Everruns.settings();
    over.activation.tools = 7;
    assert_eq!(read_file_over(Some(Preset::Everruns), ALL).unwrap().0.settings, over);
    assert_eq!(GatewayConfig::from_toml("").unwrap(), GatewayConfig::default());
}

/// Config files that contain a mistake, each with the expected error.
const MISTAKES: &[(&str, &str)] = &[
    (
        "[servers.a]\n\ncomand = 'x'",
        "unknown field `comand`, expected one of `command`, `args`, `env`, `cwd`, `url`, `transport`, `headers`, `oauth`, `enabled`, `prefix`, `allow`, `deny`, `defer`, `always_load`, `start_timeout`, `call_timeout`, `timeouts`, `parallel`, `start`, `idle`, `share`, `trust_annotations`, `tools` at line 3, column 1",
    ),
    (
        "[servers.a]\nenabled = true",
        "`servers.a` has neither `command` nor `url` at line 1, column 10",
    ),
    (
        "[servers.a]\ncommand = 'x'\nurl = 'http://x'",
        "`servers.a.url` cannot be combined with `command` at line 3, column 1",
    ),
    (
        "[servers.a]\nurl = 'http://x'\nargs = []",
        "`servers.a.args` cannot be combined with `url` at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\nheaders = {}",
        "`servers.a.headers` cannot be combined with `command` at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\ntransport = 'sse'",
        "`servers.a.transport` cannot be combined with `command` at line 3, column 1",
    ),
    ("[servers.a]\ncommand = ' '", "`servers.a.command` is empty at line 2, column 1"),
    ("[servers.a]\ncommand = '--help'", "`servers.a.command` begins with `-` at line 2, column 1"),
    (
        "[servers.a]\ncommand = \"a\\u0000b\"",
        "`servers.a.command` contains a NUL character at line 2, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\nenv = { 'A=B' = '' }",
        "`servers.a.env` has an invalid variable name at line 3, column 1",
    ),
    ("[servers.a]\nurl = '-x'", "`servers.a.url` begins with `-` at line 2, column 1"),
    (
        "[servers.a]\nurl = 'file:///etc/passwd'",
        "`servers.a.url` is not an http or https address at line 2, column 1",
    ),
    ("[servers.a]\nurl = 'https:///x'", "`servers.a.url` names no host at line 2, column 1"),
    (
        "[servers.a]\nurl = 'http://u:p@x'",
        "`servers.a.url` has a user name or password in it at line 2, column 1",
    ),
    (
        "[servers.a]\nurl = 'http://x'\n[servers.a.headers]\nOk = '1'\nX = \"a\\nb\"",
        "`servers.a.headers.X` contains a line break at line 5, column 1",
    ),
    (
        "[servers.'']\ncommand = 'x'",
        "`servers.` is not a valid name for a server at line 1, column 10",
    ),
    (
        "[servers.\"a\\u0007\"]\ncommand = 'x'",
        "`servers.a\u{7}` is not a valid name for a server at line 1, column 10",
    ),
    (
        "[servers.a]\ncommand = 'x'\nstart_timeout = 0",
        "`servers.a.start_timeout` is out of range at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\nstart_timeout = 1801",
        "`servers.a.start_timeout` is out of range at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\ncall_timeout = nan",
        "`servers.a.call_timeout` is out of range at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\ntimeouts = { b = 86401 }",
        "`servers.a.timeouts.b` is out of range at line 3, column 14",
    ),
    (
        "[servers.a]\ncommand = 'x'\nallow = ['']",
        "`servers.a.allow` has a pattern that cannot match any tool at line 3, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\ndefer = 'sometimes'",
        "unknown variant, expected one of `never`, `automatic`, `always` at line 3, column 9",
    ),
    (
        "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\nname = 'a b'",
        "`servers.a.tools.t.name` is not a valid name for a tool at line 4, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\nname = 'Tool_Search'",
        "`servers.a.tools.t.name` is the name of one of Toolcrib's own tools at line 4, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\nname = 'x'\n[servers.a.tools.u]\nname = 'x'",
        "`servers.a.tools.u.name` is also the name of another tool at line 6, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\ndescription = ' '",
        "`servers.a.tools.t.description` is empty at line 4, column 1",
    ),
    (
        "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\ndefaults = { a = 2026-01-01, b = nan }",
        "`servers.a.tools.t.defaults.a` has no JSON equivalent at line 4, column 14",
    ),
    ("[servers.a]\ncommand = 5", "invalid type: integer, expected a string at line 2, column 11"),
    ("[servers.a]\ncommand = 'x'\n[servers.a]", "duplicate key at line 3, column 10"),
    ("[servers.a]\ncommand = 'x", "invalid literal string, expected `'` at line 2, column 13"),
    (
        "[profiles.p]\nalow = []",
        "unknown field `alow`, expected one of `servers`, `allow`, `deny` at line 2, column 1",
    ),
    (
        "[profiles.p]\ndeny = [' ']",
        "`profiles.p.deny` has a pattern that cannot match any tool at line 2, column 1",
    ),
    (
        "[servers.s]\ncommand = 'x'\nidle = '9000000000h'",
        "`servers.s.idle` is out of range at line 3, column 1",
    ),
    (
        "[servers.s]\ncommand = 'x'\nidle = 'soon'",
        "invalid value: string, expected a number of seconds, a duration such as \"15m\", \"90s\" or \"1h30m\", or \"never\" at line 3, column 8",
    ),
    (
        "[servers.s]\ncommand = 'x'\nstart = 'eager'\nidle = 60",
        "`servers.s.idle` cannot be combined with `start = \"eager\"` at line 4, column 1",
    ),
    (
        "[servers.s]\ncommand = 'x'\nstart = 'later'",
        "unknown variant, expected `lazy` or `eager` at line 3, column 9",
    ),
    ("[gateway]\nprofile = 'p'", "`gateway.profile` names no profile at line 2, column 1"),
    ("[gateway]\nwait = -1", "`gateway.wait` is out of range at line 2, column 1"),
    (
        "[gateway]\nbackground_check = 0.5",
        "`gateway.background_check` is out of range at line 2, column 1",
    ),
    (
        "[gateway]\nserver_instructions_chars = 10001",
        "`gateway.server_instructions_chars` is out of range at line 2, column 1",
    ),
    (
        "[gateway]\nfirst_list_wait = -1",
        "`gateway.first_list_wait` is out of range at line 2, column 1",
    ),
    ("[gateway.limits]\npages = 0", "`gateway.limits.pages` is out of range at line 2, column 1"),
    (
        "[http]\nlisten = 'here'",
        "not an address with a port: write it as in 127.0.0.1:4180 at line 2, column 10",
    ),
    ("[http]\ntoken = ''", "`http.token` is empty at line 2, column 1"),
    (
        "[search]\nlimt = 1",
        "unknown field `limt`, expected one of `limit`, `max_limit`, `cutoff`, `refuse`, `reply_tokens`, `names`, `form`, `input`, `regex`, `among`, `schemas`, `known_last`, `must_in_name` at line 2, column 1",
    ),
    ("[search]\nlimit = 0", "`search.limit` is out of range"),
];

#[test]
fn an_error_has_its_position_and_a_hint() {
    for (text, expected) in MISTAKES {
        let error = read_file(text).unwrap_err();
        assert_eq!(error.to_string(), *expected, "{text}");
        assert!(!error.hint.is_empty());
    }
    let long = format!("[servers.{}]\ncommand = 'x'", "a".repeat(129));
    assert!(GatewayConfig::from_toml(&long).is_err());
    let longest = format!("[servers.{}]\ncommand = 'x'", "a".repeat(128));
    assert!(GatewayConfig::from_toml(&longest).is_ok());
    assert_eq!(
        GatewayConfig::from_toml(&" ".repeat((4 << 20) + 1)).unwrap_err().problem,
        "the file is larger than 4 MiB"
    );
}

/// A URL that contains a variable can be validated only after expansion.
#[test]
fn a_url_may_contain_a_variable() {
    let text = "[servers.a]\nurl = '${BASE}/mcp'";
    let config = GatewayConfig::from_toml(text).unwrap();
    let server = &config.servers["a"];
    let expanded = server.expanded("a", &|_| Some("https://example.com".into())).unwrap();
    assert!(expanded == http_server("https://example.com/mcp", &[], OAuth::default()));
    let error = server.expanded("a", &|_| Some("ftp://example.com".into())).unwrap_err();
    assert_eq!(error.to_string(), "server `a`: `url` is not an http or https address");
    let error = server.expanded("a", &|_| Some("https://u:${X}@example.com".into())).unwrap_err();
    assert_eq!(error.to_string(), "server `a`: `url` has a user name or password in it");
}
