//! Tests of the behaviour of other systems: one test for each row of the tables in docs/presets.

mod claude_code;
mod everruns;
mod everruns_050;
mod hermes;
mod opencode;

use toolcrib_core::{Crib, Preset, Settings};

use crate::support::catalog;

/// A crib with the settings of a preset.
fn crib(preset: Preset, tools: &[serde_json::Value]) -> Crib {
    Crib::new(catalog(tools), preset.settings())
}

/// The settings that a preset reads from a system's own configuration. The configuration must cause no warnings.
fn configured(preset: Preset, config: &serde_json::Value) -> Settings {
    let configured = preset.configured(config).unwrap();
    assert_eq!(configured.warnings, []);
    configured.settings
}

/// The warnings that a preset gives about a system's own configuration.
fn warnings(preset: Preset, config: &serde_json::Value) -> Vec<String> {
    preset.configured(config).unwrap().warnings.iter().map(ToString::to_string).collect()
}
