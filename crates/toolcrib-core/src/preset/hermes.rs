//! The preset for Hermes' bridge: three tools replace the deferred tools, searches rank the deferred tools with plain
//! BM25, and a share of the context window is the threshold for activation.

use serde_json::Value;

use super::config::{ConfigReader, brief};
use crate::disclosure::{DisclosureSetting, Guidance};
use crate::listing::{ListingForm, ListingPlacement, ListingSettings};
use crate::policy::{Activation, ActivationMode, Rules};
use crate::rank::{Bm25Settings, RankSettings, RankerKind};
use crate::reply::ReplyFormat;
use crate::settings::{SearchInput, SearchSettings, SearchedTools, Settings};

/// The tools that are never deferred: the core list of hermes-agent 0.19.0, and `send_message`, which Hermes'
/// documentation counts among them. They are built into Hermes, so they belong to no server.
const CORE: [&str; 42] = [
    "/web_search",
    "/web_extract",
    "/terminal",
    "/process",
    "/read_terminal",
    "/close_terminal",
    "/read_file",
    "/write_file",
    "/patch",
    "/search_files",
    "/vision_analyze",
    "/image_generate",
    "/skills_list",
    "/skill_view",
    "/skill_manage",
    "/browser_*",
    "/text_to_speech",
    "/todo",
    "/memory",
    "/session_search",
    "/clarify",
    "/execute_code",
    "/delegate_task",
    "/cronjob",
    "/ha_list_entities",
    "/ha_get_state",
    "/ha_list_services",
    "/ha_call_service",
    "/kanban_show",
    "/kanban_list",
    "/kanban_complete",
    "/kanban_block",
    "/kanban_heartbeat",
    "/kanban_comment",
    "/kanban_create",
    "/kanban_link",
    "/kanban_unblock",
    "/kanban_attach",
    "/kanban_attach_url",
    "/kanban_attachments",
    "/computer_use",
    "/send_message",
];

const PERCENT: f64 = 10.0;
const LIMIT: usize = 5;
const MAX_LIMIT: usize = 20;

pub(super) fn settings() -> Settings {
    Settings {
        keeps_hot_tools: false,
        disclosure: DisclosureSetting::Bridge,
        guidance: Guidance::Short,
        rules: Rules::default().never_defer(CORE),
        activation: Activation {
            tools: 0,
            // This threshold applies if the context window is unknown.
            tokens: 20_000,
            context_percent: PERCENT,
            tokens_if_unknown: true,
            only_if_saving: false,
            sticky: false,
            ..Activation::default()
        },
        listing: ListingSettings {
            form: ListingForm::Count,
            placement: ListingPlacement::Fresh,
            ..ListingSettings::default()
        },
        rank: RankSettings {
            ranker: RankerKind::Bm25,
            bm25: Bm25Settings { k1: 1.5, b: 0.75, parameters: true, substring: true },
            ..RankSettings::default()
        },
        search: SearchSettings {
            limit: LIMIT,
            max_limit: MAX_LIMIT,
            cutoff: 0.0,
            // With a limit of 0 names, a reply without hits lists the servers and their sizes, as in Hermes.
            names: 0,
            format: ReplyFormat::Matches,
            input: SearchInput::Limit,
            searched: SearchedTools::Deferrable,
            schemas: false,
            known_last: false,
            ..SearchSettings::default()
        },
        ..Settings::default()
    }
}

pub(super) fn read(config: &mut ConfigReader<'_>) -> Settings {
    let mut settings = settings();
    config.quoted = true;
    let path = "tools.tool_search";
    let root = config.root;
    let Some(own) = root.pointer("/tools/tool_search") else {
        config.warn(path, "missing; using the defaults");
        return settings;
    };
    let Value::Object(_) = own else {
        // In the older form of the configuration, the value is a flag. `true` means `auto`, not `on`.
        settings.activation.mode = match flag(own) {
            Some(true) => ActivationMode::Auto,
            Some(false) => ActivationMode::Off,
            None => {
                config.warn(path, format!("{} is not a boolean; using `auto`", brief(own)));
                ActivationMode::Auto
            }
        };
        return settings;
    };
    let known = ["enabled", "threshold_pct", "search_default_limit", "max_search_limit"];
    let keys = config.object(path, own, &known);
    let get = |key: &str| keys.get(key).copied();
    if let Some(enabled) = get("enabled") {
        settings.activation.mode = mode(config, &format!("{path}.enabled"), enabled);
    }
    let at = |key: &str| format!("{path}.{key}");
    let percent = config.number(&at("threshold_pct"), get("threshold_pct"), PERCENT, 0.0..=100.0);
    settings.activation.context_percent = percent;
    // A threshold of zero means that tools are always deferred.
    if percent == 0.0 && settings.activation.mode == ActivationMode::Auto {
        settings.activation.mode = ActivationMode::On;
    }
    let most = config.whole(&at("max_search_limit"), get("max_search_limit"), MAX_LIMIT, 1..=50);
    settings.search.max_limit = most;
    settings.search.limit = config.whole(
        &at("search_default_limit"),
        get("search_default_limit"),
        LIMIT.min(most),
        1..=most,
    );
    settings
}

/// Reads whether tools are deferred always, never, or depending on the threshold.
fn mode(config: &mut ConfigReader<'_>, path: &str, enabled: &Value) -> ActivationMode {
    match flag(enabled) {
        Some(true) => ActivationMode::On,
        Some(false) => ActivationMode::Off,
        None => {
            let word = enabled.as_str().unwrap_or_default().trim();
            if !word.eq_ignore_ascii_case("auto") {
                let value = brief(enabled);
                let problem = format!("{value} is not one of `auto`, `on`, `off`; using `auto`");
                config.warn(path, problem);
            }
            ActivationMode::Auto
        }
    }
}

/// Reads a flag in the same way as Hermes' YAML parser, for which unquoted `on` and `yes` are true. Returns `None` if
/// the value is not a flag.
fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) if number.as_u64() == Some(1) => Some(true),
        Value::Number(number) if number.as_u64() == Some(0) => Some(false),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Some(true),
            "false" | "off" | "no" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
