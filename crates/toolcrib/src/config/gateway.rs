//! The configuration of the network interfaces: our own file, or another client's file with its servers.

use std::path::Path;

use toolcrib_core::{Preset, Settings, policy};
use toolcrib_mcp::Config;
use toolcrib_mcp::config::foreign::{self, Place};
use toolcrib_mcp::config::{Client, Foreign};
use toolcrib_proxy::RequestedMode;
use toolcrib_server::{ConfigError, ConfigFile, HttpSettings};

use super::location::Location;
use super::{anchored, choices, engine_settings};
use crate::args::Overrides;
use crate::output::Failure;
use crate::vectors;

/// Everything that a file configures.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sections {
    /// The gateway, with the engine's settings.
    pub(crate) gateway: Config,
    /// The HTTP server.
    pub(crate) http: HttpSettings,
    /// The LLM proxy. Only `serve` needs it, so an error in it stops no other command.
    pub(crate) proxy: Result<toolcrib_proxy::Config, ConfigError>,
}

impl Sections {
    /// Reads a file of ours, with the engine's settings over this preset or over the one that it names.
    pub(crate) fn read(preset: Option<Preset>, text: &str) -> Result<Self, ConfigError> {
        let file = ConfigFile::parse(text)?;
        let settings = engine_settings(preset, text)
            .map_err(|error| ConfigError::new(error.to_string(), error.hint()))?;
        Ok(Self {
            gateway: Config::read(&file, settings)?,
            http: HttpSettings::read(&file)?,
            proxy: toolcrib_proxy::Config::read(&file),
        })
    }
}

/// A file that configures the gateway and nothing else.
impl From<Config> for Sections {
    fn from(gateway: Config) -> Self {
        let proxy = Ok(toolcrib_proxy::Config::default());
        Self { gateway, http: HttpSettings::default(), proxy }
    }
}

/// A configuration, and the remarks about it.
#[derive(Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) sections: Sections,
    /// The file it came from, to read it again when it changes.
    pub(crate) location: Option<Location>,
    /// What was not taken as it stands.
    pub(crate) warnings: Vec<String>,
}

impl Loaded {
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

    /// The same with the vector table that it names, or `named` instead, for a command that ranks.
    pub(crate) fn with_vectors(
        mut self,
        named: Option<&Path>,
        before: Option<&Settings>,
    ) -> Result<Self, Failure> {
        let settings = &mut self.sections.gateway.settings;
        *settings = vectors::loaded(std::mem::take(settings), named, before)?;
        Ok(self)
    }

    /// The config of the proxy, for the command that runs it.
    pub(crate) fn proxy(&self) -> Result<toolcrib_proxy::Config, Failure> {
        let place = self.location.as_ref().map_or(Path::new("config"), Location::path).display();
        let failed =
            |error: ConfigError| Failure::input(format!("`{place}`"), &error, error.hint.clone());
        self.sections.proxy.clone().map_err(failed)
    }
}

/// Loads a config file, or an empty config if there is none. Another client's file is read in that client's format.
///
/// What the command line says goes before what the file says.
pub(crate) fn load(location: Option<&Location>, overrides: &Overrides) -> Result<Loaded, Failure> {
    Ok(read(location, overrides.preset)?.with_overrides(overrides))
}

fn read(location: Option<&Location>, preset: Option<Preset>) -> Result<Loaded, Failure> {
    let Some(location) = location else {
        let config =
            Config { settings: preset.unwrap_or_default().settings(), ..Config::default() };
        return Ok(Loaded { sections: config.into(), location: None, warnings: Vec::new() });
    };
    let (text, warning) = location.read()?;
    let mut warnings: Vec<String> = warning.into_iter().collect();
    let path = location.path();
    let place = format!("`{}`", path.display());
    let failed = |error: ConfigError| Failure::input(&place, &error, error.hint.clone());
    let folder = std::env::current_dir().unwrap_or_default();
    let is_yaml = ["yaml", "yml"].iter().any(|ending| has_ending(path, ending));
    // Paths in another client's file begin at the folder of that file.
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let at = Place { file: &file, folder: &folder };
    let mut theirs = if is_yaml {
        // Hermes' file is the only one in YAML.
        let value = super::foreign(path, &text)?.filter(|value| value.get("mcp_servers").is_some());
        value.map(|value| foreign::read_value(Client::Hermes, &value, &at))
    } else {
        foreign::read(&text, &at).map_err(failed)?
    };
    if let Some(theirs) = &mut theirs {
        choices::apply(theirs, &file, &folder)?;
        warnings.extend(disabled(theirs));
    }
    let is_ours = theirs.is_none() && has_ending(path, "toml");
    if is_ours {
        let mut sections = Sections::read(preset, &text).map_err(failed)?;
        sections.gateway.settings = anchored(sections.gateway.settings, path);
        return Ok(Loaded { sections, location: Some(location.clone()), warnings });
    }
    let (settings, remarks) = engine(path, &text, preset, theirs.is_some())?;
    warnings.extend(remarks);
    let servers = theirs.map(|theirs| {
        warnings.extend(theirs.warnings);
        theirs.servers
    });
    let config = Config { settings, servers: servers.unwrap_or_default(), ..Config::default() };
    Ok(Loaded { sections: config.into(), location: Some(location.clone()), warnings })
}

/// Which servers of another client's file stay off, and why.
fn disabled(theirs: &Foreign) -> impl Iterator<Item = String> {
    theirs.disabled.iter().map(|(name, reason)| format!("`{name}` stays off: {reason}"))
}

/// The engine's settings of another system's file. Most files with servers have none: then ours hold.
fn engine(
    path: &Path,
    text: &str,
    preset: Option<Preset>,
    has_servers: bool,
) -> Result<(Settings, Vec<String>), Failure> {
    let config = super::foreign(path, text)?;
    let preset = preset.or_else(|| {
        let config = config.as_ref()?;
        let says = [
            "/env/ENABLE_TOOL_SEARCH",
            "/plugin",
            "/toolSearch",
            "/tools/tool_search",
            "/capabilities",
        ];
        let says = says.iter().any(|at| config.pointer(at).is_some());
        if says || !has_servers { Preset::of_config(config) } else { None }
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
            &"no client's configuration that we know",
            "our own is TOML, in a `.toml` file; others have `mcpServers`, `servers`, `mcp` or \
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

    fn loaded(name: &str, text: &str, preset: Option<Preset>) -> Result<Loaded, String> {
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
    fn our_file_has_settings_and_servers() {
        let text = "[activation]\ntools = 3\n[servers.time]\ncommand = 'uvx'\n";
        let config = loaded("ours.toml", text, None).unwrap().sections.gateway;
        assert_eq!(config, Config::from_toml(text).unwrap());
        assert_eq!((config.settings.activation.tools, config.servers.len()), (3, 1));
        let config = loaded("hermes.toml", "[servers.a]\nurl = 'http://a'", Some(Preset::Hermes));
        assert_eq!(config.unwrap().sections.gateway.settings, Preset::Hermes.settings());
    }

    #[test]
    fn another_clients_file_has_servers_and_our_settings() {
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
    fn what_a_file_says_about_tool_search_holds() {
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
    fn a_file_of_hermes_has_servers_and_settings() {
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
    fn a_broken_file_is_told_with_its_line() {
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
            ("none.json", "{}", "`FILE`: no client's configuration that we know; "),
        ] {
            let error = loaded(name, text, None).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
