//! Tests of the JSON schema of `toolcrib.toml`: it is generated from the types that read the file, and accepts and
//! rejects what they accept and reject.
//!
//! `UPDATE_DOCS=1` writes the generated schema to `docs/toolcrib.schema.json`.

mod generate;

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;
use toolcrib_mcp::GatewayConfig;
use toolcrib_proxy::ProxyConfig;
use toolcrib_server::{ConfigFile, HttpSettings};

use crate::docs::{pages, plain_literals, root};
use crate::{own_path, run_in, toolcrib};
use generate::generated;

fn validator() -> Validator {
    let text = fs::read_to_string(root().join("docs/toolcrib.schema.json")).unwrap();
    jsonschema::draft7::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// Returns the problems that the schema finds in a config, or an error of the TOML parser.
fn problems(validator: &Validator, config: &str) -> Vec<String> {
    match toml::from_str::<toml::Table>(config) {
        Ok(table) => {
            let value = serde_json::to_value(table).unwrap();
            validator
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

/// Reads a config as Toolcrib does, with all its sections.
fn read(config: &str) -> Result<(), String> {
    let file = ConfigFile::parse(config).map_err(|error| error.to_string())?;
    let settings = toolcrib_core::SettingsReader::new()
        .ignoring(&["servers", "profiles", "gateway", "http", "proxy"])
        .loading_vector_tables()
        .read(config)
        .map_err(|error| error.to_string())?;
    GatewayConfig::read(&file, settings).map_err(|error| error.to_string())?;
    HttpSettings::read(&file).map_err(|error| error.to_string())?;
    ProxyConfig::read(&file).map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn the_schema_in_the_repository_is_generated_from_the_types() {
    let path = root().join("docs/toolcrib.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&generated()).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/toolcrib.schema.json is outdated: set UPDATE_DOCS=1");
    assert!(
        toolcrib(&["docs", "schema"]).out == text,
        "the binary has another schema: build it again"
    );
}

#[test]
fn every_key_has_a_description_without_code() {
    fn check(path: &str, value: &Value) {
        let Value::Object(fields) = value else { return };
        if let Some(Value::Object(properties)) = fields.get("properties") {
            for (name, property) in properties {
                let text = property["description"].as_str();
                let text = text.unwrap_or_else(|| panic!("{path}.{name} has no description"));
                assert!(
                    text.ends_with('.') && !text.contains("[`") && !text.contains("::"),
                    "{path}.{name}: {text}"
                );
            }
        }
        fields.iter().for_each(|(key, value)| check(&format!("{path}.{key}"), value));
    }
    check("", &generated());
}

/// Returns the `toml` blocks of all pages, each with its page. Blocks that configure other programs are left out.
fn blocks_of_the_docs() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap().to_owned();
            let others = ["[dependencies]", "[mcp_servers", "model_provider"];
            if !others.iter().any(|key| block.contains(key)) {
                found.push((page.display().to_string(), block));
            }
        }
    }
    found
}

#[test]
fn every_example_is_valid() {
    let validator = validator();
    let blocks = blocks_of_the_docs();
    assert!(blocks.len() >= 15, "only {} blocks were found", blocks.len());
    for (page, block) in blocks {
        assert_eq!(problems(&validator, &block), [""; 0], "{page}:\n{block}");
        assert_eq!(read(&block), Ok(()), "{page}:\n{block}");
    }
}

/// Checks the string literals in the tests of all crates that are configs.
#[test]
fn every_config_in_the_tests_that_the_program_accepts_is_valid() {
    let validator = validator();
    let mut found = 0;
    for text in plain_literals(&root().join("crates"), &|path| is_in_tests(path)) {
        if text.contains(" = ") && read(&text).is_ok() {
            found += 1;
            assert_eq!(problems(&validator, &text), [""; 0], "{text}");
        }
    }
    assert!(found > 50, "only {found} configs were found");
}

fn is_in_tests(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn the_schema_and_the_program_agree() {
    let validator = validator();
    for (config, is_valid) in [
        ("", true),
        ("[servers.a]\ncommand = 'x'\nargs = ['--flag']\nenv = { A = '${A}' }\ncwd = '/tmp'", true),
        (
            "[servers.a]\nurl = 'https://a.example'\nheaders = { A = 'b' }\noauth = { scopes = [] }",
            true,
        ),
        (
            "[servers.a]\ncommand = 'x'\nstart_timeout = '1m30s'\ncall_timeout = 0.5\nidle = 'never'",
            true,
        ),
        ("[servers.a]\ncommand = 'x'\ntimeouts = { 'b_*' = '2m', c = 3 }\nidle = 90", true),
        (
            "[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\ndefaults = { a = 1, b = [true], c = { d = 'e' } }",
            true,
        ),
        ("[gateway]\ndefer_to_clients = false\nwait = '500ms'\nbackground_idle = 'never'", true),
        ("[gateway.limits]\nsession_idle = '2h'\ntools = 1", true),
        ("[http]\nlisten = ':4180'\nidle_timeout = '2m'", true),
        ("http.listen = 4180", true),
        ("http.listen = '[::1]:4180'", true),
        ("http.listen = 'localhost:4180'", true),
        ("preset = 'everruns@0.50'\ndisclosure = 'bridge'\n[activation]\nmode = false", true),
        ("[defer]\nnever = ['read_*']\nservers = { a = 'always' }\n[rank]\nby = 'words'", true),
        ("[[proxy.routes]]\nmodels = ['a*']\nurl = 'https://a'\napi = 'chat'\nmode = 'off'", true),
        (
            "[[proxy.callers]]\nname = 'a'\nkey = '${A}'\n[proxy.state]\nhours = '36h'\ntimeout_ms = '1s'",
            true,
        ),
        // Unknown keys, in every section and in nested tables:
        ("weather = 1", false),
        ("[server.a]\ncommand = 'x'", false),
        ("[servers.a]\ncomand = 'x'", false),
        ("[servers.a]\nurl = 'https://a'\noauth = { scope = [] }", false),
        ("[servers.a]\ncommand = 'x'\n[servers.a.tools.t]\nreadonly = true", false),
        ("[profiles.a]\nserver = []", false),
        ("[gateway]\nwait_time = 1", false),
        ("[gateway.limits]\nsesions = 1", false),
        ("[http]\nport = 1", false),
        ("[http]\ntls = { certificate = '/a', key = '/b', ca = '/c' }", false),
        ("[proxy]\nopen_ai = 'x'", false),
        ("[proxy.state]\ndays = 1", false),
        ("[[proxy.routes]]\nmodels = []\nurl = 'https://a'\nnative = { hostd = 'both' }", false),
        ("[activation]\ntool = 1", false),
        ("[rank.bm25]\nk2 = 1", false),
        // Missing keys:
        ("[servers.a]\nenabled = true", false),
        ("[servers.a]\ncommand = 'x'\nurl = 'https://a'", false),
        ("[[proxy.routes]]\nmodels = ['a']", false),
        ("[[proxy.callers]]\nname = 'a'", false),
        ("[http]\ntls = { key = '/b' }", false),
        // Wrong types and values:
        ("[servers.a]\ncommand = ['x']", false),
        ("[servers.a]\ncommand = 'x'\nargs = '--flag'", false),
        ("[servers.a]\ncommand = 'x'\nstart = 'eagr'", false),
        ("[servers.a]\ncommand = 'x'\nstart_timeout = '30'", false),
        ("[servers.a]\ncommand = 'x'\nidle = '1d'", false),
        ("[servers.a]\ncommand = 'x'\nidle = 'Never'", false),
        ("[servers.a]\ncommand = 'x'\ndefer = 'sometimes'", false),
        ("[gateway]\nwait = true", false),
        ("[gateway]\ndefer_to_clients = 'always'", false),
        ("[gateway.limits]\ntools = -1", false),
        ("http.listen = 'example.com:4180'", false),
        ("http.listen = 70000", false),
        ("disclosure = 'magic'", false),
        ("preset = 'unknown'", false),
        ("[proxy]\nmode = 'none'", false),
        ("[proxy]\ndeadline = '5 minutes'", false),
        ("[search]\nlimit = 'ten'", false),
    ] {
        let (found, read) = (problems(&validator, config), read(config));
        assert_eq!(
            (found.is_empty(), read.is_ok()),
            (is_valid, is_valid),
            "{config}\n{found:?}\n{read:?}"
        );
    }
}

#[test]
fn a_new_config_names_the_schema_next_to_it_and_an_existing_one_stays_as_it_is() {
    let folder = own_path("home");
    let _ = fs::remove_dir_all(&folder);
    crate::file("home/.cursor/mcp.json", r#"{"mcpServers": {"files": {"command": "npx"}}}"#);
    let run = run_in(&folder, &folder, &["import", "--write", "new/toolcrib.toml"], "");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let config = fs::read_to_string(folder.join("new/toolcrib.toml")).unwrap();
    assert_eq!(
        config,
        "#:schema ./toolcrib.schema.json\n# Written by `toolcrib import` and `toolcrib connect`. `toolcrib docs gateway-config` lists every key.\n\n\
         [servers.files]\ncommand = \"npx\"\n"
    );
    let schema = fs::read_to_string(folder.join("new/toolcrib.schema.json")).unwrap();
    assert_eq!(schema, toolcrib(&["docs", "schema"]).out);
    assert_eq!(problems(&validator(), &config), [""; 0]);

    crate::file("home/old/toolcrib.toml", "# mine\n");
    let run = run_in(&folder, &folder, &["import", "--write", "old/toolcrib.toml"], "");
    assert_eq!(run.code, 0);
    let config = fs::read_to_string(folder.join("old/toolcrib.toml")).unwrap();
    assert_eq!(config, "# mine\n\n[servers.files]\ncommand = \"npx\"\n");
    assert!(!folder.join("old/toolcrib.schema.json").exists());

    crate::file("home/other/toolcrib.schema.json", "{\"title\": \"something else\"}");
    let run = run_in(&folder, &folder, &["import", "--write", "other/toolcrib.toml"], "");
    assert_eq!(run.code, 0);
    let schema = fs::read_to_string(folder.join("other/toolcrib.schema.json")).unwrap();
    assert_eq!(schema, "{\"title\": \"something else\"}");
    let config = fs::read_to_string(folder.join("other/toolcrib.toml")).unwrap();
    assert!(config.starts_with("# Written by"), "{config}");
}
