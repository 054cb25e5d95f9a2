//! The preset for the plugin opencode-tool-search. The plugin replaces descriptions with a mark (a short fixed text),
//! keeps parameters, and has two search tools.
//!
//! The plugin was inspired by a fork of opencode that hides deferred tools until they are found. The fork's
//! configuration, under the key `toolSearch`, can also be read. It becomes `disclosure = "append"` without a listing.

use serde_json::Value;

use super::config::{ConfigReader, brief, join};
use crate::disclosure::{DisclosureSetting, Guidance};
use crate::listing::ListingForm;
use crate::policy::{Activation, ActivationMode, Glob, Rules};
use crate::rank::{Bm25Settings, RankSettings, RankerKind};
use crate::reply::ReplyFormat;
use crate::settings::{MAX_MARK_CHARS, SearchInput, SearchSettings, Settings, is_mark};
use crate::tool::DeferPolicy;

const LIMIT: usize = 5;
/// Our maximum for `searchLimit`. The plugin itself has no maximum.
const MAX_SEARCH_LIMIT: usize = 50;
const K1: f64 = 0.9;
const B: f64 = 0.4;
const PLUGIN: &str = "opencode-tool-search";
/// The options of the plugin.
const KNOWN: [&str; 4] = ["alwaysLoad", "searchLimit", "bm25", "deferDescription"];

pub(super) fn settings() -> Settings {
    Settings {
        keeps_hot_tools: false,
        disclosure: DisclosureSetting::Terse,
        mark: "[d]".into(),
        guidance: Guidance::Provider,
        activation: Activation { mode: ActivationMode::On, ..Activation::default() },
        rank: RankSettings {
            ranker: RankerKind::Bm25,
            bm25: Bm25Settings { k1: K1 as f32, b: B as f32, parameters: false, substring: false },
            ..RankSettings::default()
        },
        search: SearchSettings {
            // In the plugin, the default limit is also the maximum, so the model cannot raise it.
            limit: LIMIT,
            max_limit: LIMIT,
            cutoff: 0.0,
            reply_tokens: 100_000,
            format: ReplyFormat::Markdown,
            input: SearchInput::Query,
            regex: true,
            known_last: false,
            ..SearchSettings::default()
        },
        ..Settings::default()
    }
}

pub(super) fn read(config: &mut ConfigReader<'_>) -> Settings {
    let root = config.root;
    if let Some(own) = root.get("toolSearch") {
        return read_fork(config, own);
    }
    // The configuration may be the complete file, its `plugin` entry, or the plugin's options alone.
    match root {
        Value::Array(_) if is_plugin(root) && !is_other_plugin(root.get(1)) => {
            read_plugin(config, "", root)
        }
        Value::Array(_) => read_plugins(config, "", root),
        Value::Object(map) => match map.get("plugin") {
            None if map.is_empty() || KNOWN.iter().any(|key| map.contains_key(*key)) => {
                read_options(config, "", root)
            }
            None => read_plugins(config, "plugin", &Value::Null),
            Some(plugins) => read_plugins(config, "plugin", plugins),
        },
        other => {
            let value = brief(other);
            config.warn("", format!("{value} is not a configuration; using the defaults"));
            settings()
        }
    }
}

/// Reads a list of plugins, which may contain opencode-tool-search.
fn read_plugins<'a>(config: &mut ConfigReader<'a>, path: &str, plugins: &'a Value) -> Settings {
    let mut entries = plugins.as_array().into_iter().flatten().enumerate();
    if let Some((at, entry)) = entries.find(|(_, entry)| is_plugin(entry)) {
        if let Some((at, _)) = entries.next().filter(|(_, next)| next.is_object()) {
            let problem =
                format!("options are written with the name, [\"{PLUGIN}\", {{…}}]; ignored");
            config.warn(&join(path, &at.to_string()), problem);
        }
        return read_plugin(config, &join(path, &at.to_string()), entry);
    }
    config.warn(path, format!("`{PLUGIN}` is not listed, so tool search is off"));
    let mut settings = settings();
    settings.activation.mode = ActivationMode::Off;
    settings
}

fn is_plugin(entry: &Value) -> bool {
    let name = entry.get(0).unwrap_or(entry).as_str();
    // The name may be a package name, with or without a version, or a path. A prefix is not enough, because the name of
    // the fork starts with the same text.
    let is_plugin_name = |part: &str| {
        let part = part.split('@').next().unwrap_or_default();
        let bare = [".ts", ".js", ".mjs", ".git"].iter().find_map(|end| part.strip_suffix(end));
        bare.unwrap_or(part) == PLUGIN
    };
    name.is_some_and(|name| name.split('/').any(is_plugin_name))
}

/// Whether the entry after this plugin's name in a list is another plugin. If there is such an entry and it is not a
/// plugin, it contains this plugin's options.
fn is_other_plugin(next: Option<&Value>) -> bool {
    next.is_some_and(|next| next.is_string() || next.is_array())
}

/// Reads an entry of the form `"opencode-tool-search"` or `["opencode-tool-search", {options}]`.
fn read_plugin<'a>(config: &mut ConfigReader<'a>, path: &str, entry: &'a Value) -> Settings {
    match entry.get(1) {
        Some(options) => read_options(config, &join(path, "1"), options),
        None => settings(),
    }
}

fn read_options<'a>(config: &mut ConfigReader<'a>, path: &str, options: &'a Value) -> Settings {
    let mut settings = settings();
    let keys = config.object(path, options, &KNOWN);
    let get = |key: &str| keys.get(key).copied();
    let names = config.strings(&join(path, "alwaysLoad"), get("alwaysLoad"));
    settings.rules = Rules::default().never_defer(names);
    let limit =
        config.whole(&join(path, "searchLimit"), get("searchLimit"), LIMIT, 1..=MAX_SEARCH_LIMIT);
    (settings.search.limit, settings.search.max_limit) = (limit, limit);
    if let Some(bm25) = get("bm25") {
        let path = join(path, "bm25");
        let keys = config.object(&path, bm25, &["k1", "b"]);
        let get = |key: &str| keys.get(key).copied();
        settings.rank.bm25.k1 = config.number(&join(&path, "k1"), get("k1"), K1, 0.5..=2.0) as f32;
        settings.rank.bm25.b = config.number(&join(&path, "b"), get("b"), B, 0.0..=1.0) as f32;
    }
    match get("deferDescription") {
        None => {}
        Some(Value::String(mark)) if is_mark(mark) => settings.mark.clone_from(mark),
        Some(Value::String(mark)) => {
            let (value, used) = (brief(&Value::from(&**mark)), &settings.mark);
            let problem =
                format!("{value} is not 1 to {MAX_MARK_CHARS} plain characters; using `{used}`");
            config.warn(&join(path, "deferDescription"), problem);
        }
        Some(other) => {
            let (value, mark) = (brief(other), &settings.mark);
            let problem = format!("{value} is not a string; using `{mark}`");
            config.warn(&join(path, "deferDescription"), problem);
        }
    }
    settings
}

fn read_fork<'a>(config: &mut ConfigReader<'a>, own: &'a Value) -> Settings {
    let mut settings = settings();
    settings.disclosure = DisclosureSetting::Append;
    settings.listing.form = ListingForm::None;
    let keys = config.object("toolSearch", own, &["enabled", "alwaysLoad"]);
    if !config.flag("toolSearch.enabled", keys.get("enabled").copied(), true) {
        settings.activation.mode = ActivationMode::Off;
    }
    let names = config.strings("toolSearch.alwaysLoad", keys.get("alwaysLoad").copied());
    settings.rules = Rules::default().never_defer(names);
    let servers = config.root.get("mcp").and_then(Value::as_object).into_iter().flatten();
    for (name, server) in servers {
        let at = format!("mcp.{name}.deferLoading");
        if !config.flag(&at, server.get("deferLoading"), true) {
            settings.rules.servers.push((Glob::new(name), DeferPolicy::Never));
        }
    }
    settings
}
