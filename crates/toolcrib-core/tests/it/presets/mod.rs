//! The behaviour of other systems: one test for each row of the tables in docs/presets.

mod claude_code;
mod everruns;
mod everruns_050;
mod hermes;
mod opencode;

use toolcrib_core::{Crib, Preset, Settings};

use crate::support::catalog;

/// An engine with the preset of a system.
fn crib(preset: Preset, tools: &[serde_json::Value]) -> Crib {
    Crib::new(catalog(tools), preset.settings())
}

/// The settings from a system's own configuration, which must be accepted without warnings.
fn configured(preset: Preset, config: &serde_json::Value) -> Settings {
    let configured = preset.configured(config).unwrap();
    assert_eq!(configured.warnings, []);
    configured.settings
}

/// The warnings about a system's configuration.
fn warnings(preset: Preset, config: &serde_json::Value) -> Vec<String> {
    preset.configured(config).unwrap().warnings.iter().map(ToString::to_string).collect()
}
