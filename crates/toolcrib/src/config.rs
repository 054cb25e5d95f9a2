//! Settings, from a file of ours or from one that another system's users have already written.
//!
//! The name of the file says what it is written in. Ours is TOML. YAML and JSON (with comments) are
//! some other system's: `--preset` says whose, or the file itself does.

pub(crate) mod choices;
pub(crate) mod gateway;
pub(crate) mod location;
pub(crate) mod yaml;

use std::path::Path;

use serde_json::Value;
use toolcrib_core::{Error, Preset, Settings};
use toolcrib_server::HttpSettings;

use crate::args::Source;
use crate::output::{Failure, remark};
use location::{Location, note_unused};

/// The sections of our file that the engine does not read.
const OTHERS: [&str; 5] = {
    let [servers, profiles, gateway] = toolcrib_mcp::config::SECTIONS;
    [servers, profiles, gateway, HttpSettings::SECTION, toolcrib_proxy::Config::SECTION]
};

/// The engine's settings in our file, over this preset or over the one that the file names.
fn engine_settings(preset: Option<Preset>, text: &str) -> Result<Settings, Error> {
    match preset {
        Some(preset) => preset.with_shared_toml(text, &OTHERS),
        None => Settings::from_shared_toml(text, &OTHERS),
    }
}

/// A folder of vectors that a config names begins at the folder of the config, not at the working folder, which may hold
/// anybody's files.
fn anchored(mut settings: Settings, config: &Path) -> Settings {
    let folder =
        std::path::absolute(config).ok().and_then(|path| path.parent().map(Path::to_owned));
    if let (Some(named), Some(folder)) = (&settings.rank.embedding_model, folder)
        && named.is_relative()
        && !named.starts_with("~")
    {
        settings.rank.embedding_model = Some(folder.join(named));
    }
    settings
}

/// The settings for a command. What was not taken as it stands is remarked on.
pub(crate) fn settings(source: &Source) -> Result<Settings, Failure> {
    let location = Location::find(source.config.as_deref())?;
    note_unused(location.as_ref());
    let Some(location) = location else {
        return Ok(source.preset.unwrap_or_default().settings());
    };
    let (text, warning) = location.read()?;
    if let Some(warning) = warning {
        remark(&format!("warning: {warning}"));
    }
    let path = location.path();
    let place = format!("`{}`", path.display());
    let failed = |error: Error| Failure::input(&place, &error, error.hint());
    let Some(config) = foreign(path, &text)? else {
        let settings = engine_settings(source.preset, &text).map_err(failed)?;
        return Ok(anchored(settings, path));
    };
    let preset = source.preset.or_else(|| {
        let preset = Preset::of_config(&config)?;
        remark(&format!("note: {place} is read as {preset}'s configuration"));
        Some(preset)
    });
    let preset = preset.ok_or_else(|| {
        Failure::input(
            &place,
            &"no system's configuration that we know",
            "say whose it is with `--preset everruns`, `hermes`, `opencode` or `claude-code`; \
             settings of ours are TOML, in a `.toml` file",
        )
    })?;
    let configured = preset.configured(&config).map_err(failed)?;
    for warning in &configured.warnings {
        remark(&format!("warning: {place}: {warning}"));
    }
    Ok(configured.settings)
}

/// What a file in YAML or JSON says; `None` for one of ours.
fn foreign(path: &Path, text: &str) -> Result<Option<Value>, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let read = match extension.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => yaml::parse(text).map_err(|error| (error.to_string(), error.hint())),
        "json" | "jsonc" => {
            jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
                .map_err(|error| {
                    let hint = "the file must be JSON; comments and trailing commas are fine";
                    (error.to_string(), hint)
                })
        }
        _ => return Ok(None),
    };
    read.map(Some)
        .map_err(|(problem, hint)| Failure::input(format!("`{}`", path.display()), &problem, hint))
}
