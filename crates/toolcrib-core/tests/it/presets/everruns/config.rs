//! Tests of reading everruns' own configuration.

use serde_json::json;
use toolcrib_core::disclosure::{DisclosureKind, DisclosureSetting};
use toolcrib_core::policy::ActivationMode;
use toolcrib_core::{Crib, Preset, Settings};

use super::{agent, is_stub, show};
use crate::presets::{configured, warnings};
use crate::support::{Chat, catalog};

#[test]
fn the_capability_alone_means_the_defaults() {
    let config = json!({"capabilities": ["tool_search"]});
    assert_eq!(Preset::of_config(&config), Some(Preset::Everruns));
    assert_eq!(configured(Preset::Everruns, &config), Preset::Everruns.settings());
    assert_eq!(Preset::Everruns.settings().activation.tools, 15);
}

#[test]
fn threshold_and_allowlist_can_be_configured() {
    let kept = ["read_file", "write_file", "edit_file", "list_directory", "grep_files", "bash"];
    let config = json!({"capabilities": {"tool_search": {"threshold": 20, "never_defer": kept}}});
    assert_eq!(Preset::of_config(&config), Some(Preset::Everruns));
    let toml = format!("preset = 'everruns'\n[activation]\ntools = 20\n[defer]\nnever = {kept:?}");
    assert_eq!(configured(Preset::Everruns, &config), Settings::from_toml(&toml).unwrap());
}

#[test]
fn a_threshold_of_zero_defers_from_the_first_tool_on() {
    let config = json!({"capabilities": {"tool_search": {"threshold": 0}}});
    let crib = Crib::new(catalog(&agent()[..1]), configured(Preset::Everruns, &config));
    assert!(is_stub(&show(&mut Chat::new(&crib)), "read_file"));
}

#[test]
fn the_automatic_capability_is_the_providers_search_or_else_this_one() {
    for config in [
        json!({"capabilities": ["auto_tool_search"]}),
        json!({"capabilities": {"auto_tool_search": {"threshold": 15}}}),
    ] {
        let mut settings = configured(Preset::Everruns, &config);
        assert_eq!(
            (settings.disclosure, settings.disclosure_kind()),
            (DisclosureSetting::Hosted, DisclosureKind::Reveal)
        );
        (settings.disclosure, settings.fallback) = (DisclosureSetting::Reveal, None);
        assert_eq!(settings, Preset::Everruns.settings());
    }
}

#[test]
fn an_invalid_threshold_falls_back_to_fifteen_with_a_warning() {
    for (bad, warning) in [
        (json!(-3), "-3 is not a whole number of 0 or more; using 15"),
        (json!(2.5), "2.5 is not a whole number of 0 or more; using 15"),
        (json!("20"), "\"20\" is not a whole number of 0 or more; using 15"),
    ] {
        let config = json!({"capabilities": {"tool_search": {"threshold": bad}}});
        let warning = format!("`capabilities.tool_search.threshold`: {warning}");
        assert_eq!(warnings(Preset::Everruns, &config), [warning]);
        let settings = Preset::Everruns.configured(&config).unwrap().settings;
        assert_eq!(settings, Preset::Everruns.settings());
    }
}

#[test]
fn an_invalid_allowlist_entry_is_ignored_with_a_warning() {
    let config = json!({"capabilities": {"tool_search": {"never_defer": ["bash", 7, null]}}});
    assert_eq!(
        warnings(Preset::Everruns, &config),
        [
            "`capabilities.tool_search.never_defer.1`: 7 is not a name; ignored",
            "`capabilities.tool_search.never_defer.2`: null is not a name; ignored",
        ]
    );
    let never = Preset::Everruns.configured(&config).unwrap().settings.rules.never;
    assert_eq!(never.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bash"]);
    let config = json!({"capabilities": {"tool_search": {"never_defer": "bash"}}});
    assert_eq!(
        warnings(Preset::Everruns, &config),
        ["`capabilities.tool_search.never_defer`: \"bash\" is not a list of names; ignored"]
    );
}

#[test]
fn an_unknown_key_or_a_config_that_is_no_object_causes_a_warning() {
    let config = json!({"capabilities": {"tool_search": {"treshold": 20}}});
    assert_eq!(
        warnings(Preset::Everruns, &config),
        [
            "`capabilities.tool_search.treshold`: unknown and ignored; the known keys are `threshold`, \
             `never_defer`"
        ]
    );
    let config = json!({"capabilities": {"tool_search": 20}});
    assert_eq!(
        warnings(Preset::Everruns, &config),
        ["`capabilities.tool_search`: 20 is not an object; using the defaults"]
    );
}

#[test]
fn without_the_capability_tool_search_is_off() {
    for (config, told) in [
        (
            json!({"capabilities": ["web"]}),
            "`capabilities`: `tool_search` is not listed, so tool search is off",
        ),
        (json!({}), "`capabilities`: missing, so tool search is off"),
    ] {
        assert_eq!(warnings(Preset::Everruns, &config), [told]);
        let settings = Preset::Everruns.configured(&config).unwrap().settings;
        assert_eq!(settings.activation.mode, ActivationMode::Off);
    }
}
