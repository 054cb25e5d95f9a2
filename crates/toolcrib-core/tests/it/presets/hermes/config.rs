//! Tests of reading Hermes' own configuration.

use serde_json::{Value, json};
use toolcrib_core::policy::{ActivationMode, ActivationReason};
use toolcrib_core::{Crib, Preset, Settings};

use super::activation::thousands;
use super::{crib, session, show};
use crate::presets::{configured, warnings};
use crate::support::{Chat, catalog};

#[test]
fn the_configuration_has_four_keys_and_these_defaults() {
    let written = json!({"tools": {"tool_search": {
        "enabled": "auto",
        "threshold_pct": 10,
        "search_default_limit": 5,
        "max_search_limit": 20
    }}});
    assert_eq!(configured(Preset::Hermes, &written), Preset::Hermes.settings());
    let empty = json!({"tools": {"tool_search": {}}});
    assert_eq!(configured(Preset::Hermes, &empty), Preset::Hermes.settings());
}

#[test]
fn the_four_keys_are_taken_as_written() {
    let written = json!({"tools": {"tool_search": {
        "enabled": "on",
        "threshold_pct": 2.5,
        "search_default_limit": "7",
        "max_search_limit": 50
    }}});
    let settings = configured(Preset::Hermes, &written);
    let activation = settings.activation;
    assert_eq!((activation.mode, activation.context_percent), (ActivationMode::On, 2.5));
    assert_eq!((settings.search.limit, settings.search.max_limit), (7, 50));
}

#[test]
fn on_activates_with_one_deferrable_tool_and_not_with_none() {
    let one = crib(&session()[..3]);
    let shown = show(&mut Chat::new(&one), Some(1_000_000));
    assert_eq!(shown.decision.reason, ActivationReason::On);
    assert!(
        shown.tokens_after > shown.tokens_before,
        "few tools are deferred even if that costs tokens"
    );
    let none = crib(&session()[..2]);
    let shown = show(&mut Chat::new(&none), Some(1_000_000));
    assert_eq!(shown.decision.reason, ActivationReason::NothingToDefer);
    assert!(shown.passes_through());
}

#[test]
fn off_disables_deferral_at_any_size() {
    let off = configured(Preset::Hermes, &json!({"tools": {"tool_search": {"enabled": "off"}}}));
    let crib = Crib::new(catalog(&thousands(20, 0)), off);
    let shown = show(&mut Chat::new(&crib), Some(10_000));
    assert_eq!(shown.decision.reason, ActivationReason::Off);
    assert!(shown.passes_through());
}

#[test]
fn the_older_flag_means_auto_or_off() {
    for (flag, mode) in [
        (json!(true), ActivationMode::Auto),
        (json!("on"), ActivationMode::Auto),
        (json!(false), ActivationMode::Off),
    ] {
        let settings = configured(Preset::Hermes, &json!({"tools": {"tool_search": flag}}));
        assert_eq!(settings.activation.mode, mode, "{flag}");
    }
}

#[test]
fn enabled_is_also_understood_as_a_flag() {
    for (written, mode) in [
        (json!(true), ActivationMode::On),
        (json!("yes"), ActivationMode::On),
        (json!(1), ActivationMode::On),
        (json!(false), ActivationMode::Off),
        (json!("NO"), ActivationMode::Off),
        (json!(0), ActivationMode::Off),
        (json!(" Auto "), ActivationMode::Auto),
    ] {
        let config = json!({"tools": {"tool_search": {"enabled": written}}});
        assert_eq!(configured(Preset::Hermes, &config).activation.mode, mode, "{written}");
    }
}

#[test]
fn a_threshold_of_zero_percent_is_always() {
    let zero = json!({"tools": {"tool_search": {"threshold_pct": 0}}});
    let crib = Crib::new(catalog(&session()), configured(Preset::Hermes, &zero));
    assert!(!show(&mut Chat::new(&crib), Some(1_000_000)).passes_through());
}

/// Reads a configuration with a single key. Returns the settings and the warnings.
fn read_key(key: &str, value: &Value) -> (Settings, Vec<String>) {
    let config = json!({"tools": {"tool_search": {key: value}}});
    let read = Preset::Hermes.configured(&config).unwrap();
    (read.settings, warnings(Preset::Hermes, &config))
}

#[test]
fn a_percentage_out_of_range_is_clamped() {
    for (value, mode, used, warning) in [
        (json!(150), ActivationMode::Auto, 100.0, "150 is not within 0 to 100; using 100"),
        (json!(-1), ActivationMode::On, 0.0, "-1 is not within 0 to 100; using 0"),
        (json!("ten"), ActivationMode::Auto, 10.0, "\"ten\" is not a number; using 10"),
        (json!(null), ActivationMode::Auto, 10.0, "null is not a number; using 10"),
    ] {
        let (settings, warnings) = read_key("threshold_pct", &value);
        let activation = settings.activation;
        assert_eq!((activation.mode, activation.context_percent), (mode, used));
        assert_eq!(warnings, [format!("`tools.tool_search.threshold_pct`: {warning}")]);
    }
}

#[test]
fn the_upper_bound_is_clamped_to_one_and_fifty() {
    for (value, used, warning) in [
        (json!(51), 50, "51 is not within 1 to 50; using 50"),
        (json!(0), 1, "0 is not within 1 to 50; using 1"),
        (json!([]), 20, "[] is not a number; using 20"),
    ] {
        let (settings, warnings) = read_key("max_search_limit", &value);
        assert_eq!(settings.search.max_limit, used);
        assert_eq!(warnings, [format!("`tools.tool_search.max_search_limit`: {warning}")]);
    }
}

#[test]
fn the_default_limit_is_clamped_to_the_upper_bound() {
    for (value, used, warning) in [
        (json!(21), 20, "21 is not within 1 to 20; using 20"),
        (json!(-3), 1, "-3 is not within 1 to 20; using 1"),
        (json!({}), 5, "{} is not a number; using 5"),
    ] {
        let (settings, warnings) = read_key("search_default_limit", &value);
        assert_eq!(settings.search.limit, used);
        assert_eq!(warnings, [format!("`tools.tool_search.search_default_limit`: {warning}")]);
    }
    let (settings, warnings) = read_key("max_search_limit", &json!(3));
    assert_eq!(
        (settings.search.limit, warnings),
        (3, vec![]),
        "the default limit is lowered to the maximum"
    );
}

#[test]
fn a_mode_that_does_not_exist_is_auto() {
    let (settings, warnings) = read_key("enabled", &json!("sometimes"));
    assert_eq!(settings, Preset::Hermes.settings());
    assert_eq!(
        warnings,
        [
            "`tools.tool_search.enabled`: \"sometimes\" is not one of `auto`, `on`, `off`; using `auto`"
        ]
    );
}

#[test]
fn a_value_that_is_neither_a_flag_nor_a_table_means_auto() {
    for (config, warning) in [
        (json!({"tools": {"tool_search": [1]}}), "[1] is not a boolean; using `auto`"),
        (json!({"tools": {}}), "missing; using the defaults"),
        (json!(null), "missing; using the defaults"),
    ] {
        let read = Preset::Hermes.configured(&config).unwrap();
        assert_eq!(read.settings, Preset::Hermes.settings());
        let warned = warnings(Preset::Hermes, &config);
        assert_eq!(warned, [format!("`tools.tool_search`: {warning}")]);
    }
}

#[test]
fn a_key_of_another_version_is_ignored_with_a_warning() {
    let (settings, warnings) = read_key("listing", &json!("auto"));
    assert_eq!(settings, Preset::Hermes.settings());
    assert_eq!(
        warnings,
        [
            "`tools.tool_search.listing`: unknown and ignored; the known keys are `enabled`, `threshold_pct`, \
          `search_default_limit`, `max_search_limit`"
        ]
    );
}

#[test]
fn its_configuration_is_recognised_by_its_key() {
    assert_eq!(Preset::of_config(&json!({"tools": {"tool_search": true}})), Some(Preset::Hermes));
}
