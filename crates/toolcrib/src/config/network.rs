//! The configuration of the gateway, the HTTP server and the proxy. It is read from Toolcrib's own file, or from
//! another client's file that defines servers.

use std::path::Path;

use toolcrib_core::{Preset, Settings, policy};
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::import::{self, ImportSource};
use toolcrib_mcp::config::{ClientKind, ImportedConfig};
use toolcrib_proxy::RequestedMode;
use toolcrib_server::{ConfigError, ConfigFile, HttpSettings};

use super::location::Location;
use super::{disabled_servers, engine_settings, with_resolved_paths};
use crate::args::{Overrides, VectorArgs};
use crate::deep::Embedding;
use crate::output::Failure;
use crate::vectors;

/// Everything that a file configures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sections {
    /// The gateway, with the engine's settings.
    pub(crate) gateway: GatewayConfig,
    /// The HTTP server.
    pub(crate) http: HttpSettings,
    /// The LLM proxy. Only `serve` runs it, so an error in this section does not stop other commands.
    pub(crate) proxy: Result<toolcrib_proxy::ProxyConfig, ConfigError>,
}

impl Sections {
    /// Reads Toolcrib's own config. The engine's settings in the file override the settings of `preset`. If `preset` is
    /// `None`, they override the settings of the preset that the file names.
    pub(crate) fn read(preset: Option<Preset>, text: &str) -> Result<Self, ConfigError> {
        let file = ConfigFile::parse(text)?;
        let settings = engine_settings(preset, text)
            .map_err(|error| ConfigError::new(error.to_string(), error.hint()))?;
        Ok(Self {
            gateway: GatewayConfig::read(&file, settings)?,
            http: HttpSettings::read(&file)?,
            proxy: toolcrib_proxy::ProxyConfig::read(&file),
        })
    }
}

/// Converts a config that contains only the gateway's settings.
impl From<GatewayConfig> for Sections {
    fn from(gateway: GatewayConfig) -> Self {
        let proxy = Ok(toolcrib_proxy::ProxyConfig::default());
        Self { gateway, http: HttpSettings::default(), proxy }
    }
}

/// A configuration, and the warnings about it.
#[derive(Debug, PartialEq)]
pub(crate) struct LoadedConfig {
    pub(crate) sections: Sections,
    /// The file that the config was read from. It is watched for changes.
    pub(crate) location: Option<Location>,
    /// One warning for each key or server that is ignored or disabled.
    pub(crate) warnings: Vec<String>,
}

impl LoadedConfig {
    /// Applies the options of the command line.
    fn with_overrides(mut self, overrides: &Overrides) -> Self {
        let settings = &mut self.sections.gateway.settings;
        settings.context_window = overrides.context.or(settings.context_window);
        match overrides.mode {
            None => {}
            Some(RequestedMode::Off) => settings.activation.mode = policy::ActivationMode::Off,
            Some(RequestedMode::Defer(disclosure)) => {
                settings.disclosure = disclosure;
                if let Ok(proxy) = &mut self.sections.proxy {
                    proxy.mode = None;
                }
            }
        }
        self
    }

    /// Loads the vector table, which only commands that rank need. `arguments` are those of the command line, which
    /// override the config. `before` is the previous config's settings; if they already
    /// have the table, it is reused.
    pub(crate) fn with_vectors(
        mut self,
        arguments: &VectorArgs,
        before: Option<&Settings>,
        embedding: Embedding,
    ) -> Result<Self, Failure> {
        let settings = &mut self.sections.gateway.settings;
        *settings = vectors::load_vectors(std::mem::take(settings), arguments, before, embedding)?;
        Ok(self)
    }

    /// Returns the config of the proxy, or the error in it.
    pub(crate) fn proxy(&self) -> Result<toolcrib_proxy::ProxyConfig, Failure> {
        let place = self.location.as_ref().map_or(Path::new("config"), Location::path).display();
        let failed =
            |error: ConfigError| Failure::input(format!("`{place}`"), &error, error.hint.clone());
        self.sections.proxy.clone().map_err(failed)
    }
}

/// Loads a config file, or an empty config if there is none. Another client's file is read in that client's format.
/// Options of the command line override the file.
pub(crate) fn load(
    location: Option<&Location>,
    overrides: &Overrides,
) -> Result<LoadedConfig, Failure> {
    load_in(location, overrides, &std::env::current_dir().unwrap_or_default())
}

/// Like [`load`], for a client with this working folder.
pub(crate) fn load_in(
    location: Option<&Location>,
    overrides: &Overrides,
    folder: &Path,
) -> Result<LoadedConfig, Failure> {
    Ok(read(location, overrides.preset, folder)?.with_overrides(overrides))
}

fn read(
    location: Option<&Location>,
    preset: Option<Preset>,
    folder: &Path,
) -> Result<LoadedConfig, Failure> {
    let Some(location) = location else {
        let config = GatewayConfig {
            settings: preset.unwrap_or_default().settings(),
            ..GatewayConfig::default()
        };
        return Ok(LoadedConfig { sections: config.into(), location: None, warnings: Vec::new() });
    };
    let (text, warning) = location.read()?;
    let mut warnings: Vec<String> = warning.into_iter().collect();
    let path = location.path();
    let place = format!("`{}`", path.display());
    let failed = |error: ConfigError| Failure::input(&place, &error, error.hint.clone());
    let is_yaml = ["yaml", "yml"].iter().any(|ending| has_ending(path, ending));
    // Relative paths in another client's file are resolved against the folder of that file.
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let at = ImportSource { file: &file, folder };
    let mut theirs = if is_yaml {
        // Hermes and Goose are the only clients with a config in YAML.
        let clients = [(ClientKind::Hermes, "mcp_servers"), (ClientKind::Goose, "extensions")];
        let value = super::foreign(path, &text)?.unwrap_or_default();
        let client = clients.into_iter().find(|(_, key)| value.get(key).is_some());
        client.map(|(client, _)| import::read_value(client, &value, &at))
    } else {
        import::read(&text, &at).map_err(failed)?
    };
    if let Some(theirs) = &mut theirs {
        disabled_servers::apply(theirs, &file, folder)?;
        warnings.extend(disabled(theirs));
    }
    let is_ours = theirs.is_none() && has_ending(path, "toml");
    if is_ours {
        let mut sections = Sections::read(preset, &text).map_err(failed)?;
        sections.gateway.settings = with_resolved_paths(sections.gateway.settings, path);
        return Ok(LoadedConfig { sections, location: Some(location.clone()), warnings });
    }
    let (settings, remarks) = engine(path, &text, preset, theirs.is_some())?;
    warnings.extend(remarks);
    let servers = theirs.map(|theirs| {
        warnings.extend(theirs.warnings);
        theirs.servers
    });
    let config = GatewayConfig {
        settings,
        servers: servers.unwrap_or_default(),
        ..GatewayConfig::default()
    };
    Ok(LoadedConfig { sections: config.into(), location: Some(location.clone()), warnings })
}

/// Returns a warning for each disabled server of another client's file, with the reason.
fn disabled(theirs: &ImportedConfig) -> impl Iterator<Item = String> {
    theirs.disabled.iter().map(|(name, reason)| format!("`{name}` stays disabled: {reason}"))
}

/// Reads the engine's settings from another system's file. Most files that define servers contain no such settings;
/// then Toolcrib's defaults are used.
fn engine(
    path: &Path,
    text: &str,
    preset: Option<Preset>,
    has_servers: bool,
) -> Result<(Settings, Vec<String>), Failure> {
    let config = super::foreign(path, text)?;
    let preset = preset.or_else(|| {
        let config = config.as_ref()?;
        let keys = [
            "/env/ENABLE_TOOL_SEARCH",
            "/plugin",
            "/toolSearch",
            "/tools/tool_search",
            "/capabilities",
        ];
        let has_settings = keys.iter().any(|key| config.pointer(key).is_some());
        if has_settings || !has_servers { Preset::of_config(config) } else { None }
    });
    let place = format!("`{}`", path.display());
    match (preset, config) {
        (Some(preset), Some(config)) if ![Preset::Default, Preset::Words].contains(&preset) => {
            let configured = preset
                .configured(&config)
                .map_err(|error| Failure::input(&place, &error, error.hint()))?;
            let warnings = configured.warnings.iter().map(ToString::to_string).collect();
            Ok((configured.settings, warnings))
        }
        (Some(preset), _) => Ok((preset.settings(), vec![])),
        (None, _) if has_servers => Ok((Settings::default(), vec![])),
        (None, _) => Err(Failure::input(
            &place,
            &"not a configuration of a known client",
            "Toolcrib's own config is a `.toml` file; those of other clients have the key `mcpServers`, `servers`, `mcp` or \
             `mcp_servers`",
        )),
    }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn loaded(name: &str, text: &str, preset: Option<Preset>) -> Result<LoadedConfig, String> {
        let folder = std::env::temp_dir().join(format!("toolcrib-gateway-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let overrides = Overrides { preset, ..Overrides::default() };
        load(Some(&Location::Named(path.clone())), &overrides).map_err(|failure| {
            let text = format!("{failure}; {}", failure.hint());
            text.replace(&*path.to_string_lossy(), "FILE")
        })
    }

    #[test]
    fn our_own_config_has_settings_and_servers() {
        let text = "[activation]\ntools = 3\n[servers.time]\ncommand = 'uvx'\n";
        let config = loaded("ours.toml", text, None).unwrap().sections.gateway;
        assert_eq!(config, GatewayConfig::from_toml(text).unwrap());
        assert_eq!((config.settings.activation.tools, config.servers.len()), (3, 1));
        let config = loaded("hermes.toml", "[servers.a]\nurl = 'http://a'", Some(Preset::Hermes));
        assert_eq!(config.unwrap().sections.gateway.settings, Preset::Hermes.settings());
    }

    #[test]
    fn another_clients_file_gives_servers_with_default_settings() {
        for (name, text) in [
            ("one.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#),
            ("two.jsonc", r#"{"servers": {"a": {"command": "x"}},} // VS Code"#),
            ("three.json", r#"{"mcp": {"a": {"type": "local", "command": ["x"]}}}"#),
            ("four.toml", "[mcp_servers.a]\ncommand = 'x'"),
        ] {
            let config = loaded(name, text, None).unwrap().sections.gateway;
            assert_eq!(config.settings, Settings::default(), "{name}");
            assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["a"], "{name}");
        }
    }

    #[test]
    fn settings_of_tool_search_in_another_clients_file_are_used() {
        let text = r#"{"env": {"ENABLE_TOOL_SEARCH": "auto:5"}, "mcpServers": {}}"#;
        let config = loaded("claude.json", text, None).unwrap().sections.gateway;
        assert_ne!(config.settings, Preset::ClaudeCode.settings());
        assert_eq!(config.settings.disclosure, Preset::ClaudeCode.settings().disclosure);
        let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
        let config = loaded("as.json", text, Some(Preset::ClaudeCode)).unwrap().sections.gateway;
        assert_eq!(config.settings, Preset::ClaudeCode.settings());
        let text = "tools:\n  tool_search:\n    enabled: on\n";
        let config = loaded("hermes.yaml", text, None).unwrap().sections.gateway;
        assert!(config.servers.is_empty());
        assert_ne!(config.settings, Settings::default());
    }

    #[test]
    fn servers_and_settings_are_read_from_a_hermes_config() {
        let servers = "mcp_servers:\n  time:\n    command: uvx\n    args: [\"mcp-server-time\"]\n";
        let loaded_file = loaded("servers.yaml", servers, None).unwrap();
        let config = loaded_file.sections.gateway;
        assert_eq!((config.servers.len(), config.settings), (1, Settings::default()));
        let text = format!("{servers}tools:\n  tool_search:\n    enabled: auto\n");
        let config = loaded("both.yaml", &text, None).unwrap().sections.gateway;
        assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["time"]);
        assert_eq!(config.settings, Preset::Hermes.settings());
    }

    #[test]
    fn an_error_in_a_file_names_its_line() {
        for (name, text, expected) in [
            (
                "broken.json",
                "{\n\"mcpServers\": {]}",
                "`FILE`: not JSON: Unexpected token in object at line 2, column 16; ",
            ),
            (
                "broken.toml",
                "\n[servers.a]\ncomand = 'x'",
                "`FILE`: unknown field `comand`, expected one of ",
            ),
            ("none.json", "{}", "`FILE`: not a configuration of a known client; "),
        ] {
            let error = loaded(name, text, None).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
