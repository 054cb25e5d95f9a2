//! Settings of the engine, from Toolcrib's own config or from another system's.
//!
//! The file's extension tells its format. Toolcrib's own format is TOML. YAML and JSON (with comments) are formats of
//! other systems. `--preset` names the system; otherwise it is recognised by the keys of the file.

pub(crate) mod disabled_servers;
pub(crate) mod location;
pub(crate) mod network;

use std::path::Path;

use serde_json::Value;
use toolcrib_client_files::yaml;
use toolcrib_core::{Error, Preset, Settings, SettingsReader};
use toolcrib_server::HttpSettings;

use crate::args::SourceArgs;
use crate::output::{Failure, print_stderr};
use location::{Location, note_unused_config};

/// The sections of the config that the engine ignores.
const OTHER_SECTIONS: [&str; 5] = {
    let [servers, profiles, gateway] = toolcrib_mcp::config::SECTIONS;
    [servers, profiles, gateway, HttpSettings::SECTION, toolcrib_proxy::ProxyConfig::SECTION]
};

/// Reads the engine's settings from Toolcrib's own config. They override the settings of `preset`. If `preset` is
/// `None`, they override the settings of the preset that the file names.
fn engine_settings(preset: Option<Preset>, text: &str) -> Result<Settings, Error> {
    SettingsReader::new().over(preset).ignoring(&OTHER_SECTIONS).loading_vector_tables().read(text)
}

/// Resolves the path of a vector table against the folder of the config, if the path is relative. Rejected: the working
/// folder, because it may contain files of other people.
fn with_resolved_paths(mut settings: Settings, config: &Path) -> Settings {
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

/// Returns the settings for a command. Prints a warning for each key that is ignored.
pub(crate) fn settings(source: &SourceArgs) -> Result<Settings, Failure> {
    let location = Location::find(source.config.as_deref())?;
    note_unused_config(location.as_ref());
    let Some(location) = location else {
        return Ok(source.preset.unwrap_or_default().settings());
    };
    let (text, warning) = location.read()?;
    if let Some(warning) = warning {
        print_stderr(&format!("warning: {warning}"));
    }
    let path = location.path();
    let place = format!("`{}`", path.display());
    let failed = |error: Error| Failure::input(&place, &error, error.hint());
    let Some(config) = foreign(path, &text)? else {
        let settings = engine_settings(source.preset, &text).map_err(failed)?;
        return Ok(with_resolved_paths(settings, path));
    };
    let preset = source.preset.or_else(|| {
        let preset = Preset::of_config(&config)?;
        print_stderr(&format!("note: reading {place} as a configuration of {preset}"));
        Some(preset)
    });
    let preset = preset.ok_or_else(|| {
        Failure::input(
            &place,
            &"not a configuration of a known system",
            "name the system with `--preset everruns`, `hermes`, `opencode` or `claude-code`; \
             Toolcrib's own settings are in a `.toml` file",
        )
    })?;
    let configured = preset.configured(&config).map_err(failed)?;
    for warning in &configured.warnings {
        print_stderr(&format!("warning: {place}: {warning}"));
    }
    Ok(configured.settings)
}

/// Parses another system's file, in YAML or JSON. Returns `None` for a file with any other extension.
fn foreign(path: &Path, text: &str) -> Result<Option<Value>, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let read = match extension.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => yaml::parse(text).map_err(|error| (error.to_string(), error.hint())),
        "json" | "jsonc" => {
            jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
                .map_err(|error| {
                    let hint = "the file must be JSON; comments and trailing commas are allowed";
                    (error.to_string(), hint)
                })
        }
        _ => return Ok(None),
    };
    read.map(Some)
        .map_err(|(problem, hint)| Failure::input(format!("`{}`", path.display()), &problem, hint))
}
