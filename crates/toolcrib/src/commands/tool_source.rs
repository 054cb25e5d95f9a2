//! Which tools a command looks at: those of the files that `--catalog` names, those of the configured servers, or the
//! sample catalog.
//!
//! The tools of configured servers come from the lists that the gateway saved when it last connected to each server, so
//! that no server needs to be started. If nothing is saved yet, for example right after `toolcrib import`, the servers
//! are asked once. Rejected: asking every server without saved lists each time. A single broken server would then delay
//! every search by its start timeout.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use toolcrib_core::{
    CallOutcome, Conversation, Crib, Scope, TokenCounter, Tool, ToolId, TurnContext,
};
use toolcrib_mcp::{ConfiguredTools, GatewayConfig};

use super::gateway::ask_servers::{UnansweredServer, ask_servers};
use super::gateway::environment;
use crate::args::{Overrides, SourceArgs, VectorArgs};
use crate::config::location::{Location, note_unused_config};
use crate::config::network::{self, LoadedConfig};
use crate::deep::Embedding;
use crate::load;
use crate::output::{Failure, print_stderr};

/// The tools that a command looks at.
pub(super) struct ToolSource {
    pub(super) crib: Arc<Crib>,
    /// The tools that clients may see. These are all tools, unless the config has a profile that limits them.
    pub(super) scope: Scope,
    pub(super) origin: ToolOrigin,
}

/// Where the tools come from.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum ToolOrigin {
    Catalog,
    Sample,
    Config {
        file: PathBuf,
        /// The servers that have never answered, so that their tools are missing.
        unlisted_servers: Vec<String>,
    },
}

impl ToolSource {
    /// Loads the tools. `vectors` is `None` for commands that do not rank.
    pub(super) fn load(
        source: &SourceArgs,
        vectors: Option<&VectorArgs>,
        counter: Arc<dyn TokenCounter>,
    ) -> Result<Self, Failure> {
        if let Some(config) = configured(source)? {
            return Self::of_config(source, config, vectors, counter);
        }
        let crib = match vectors {
            Some(vectors) => load::crib_with_vectors(source, vectors)?,
            None => load::crib(source)?,
        };
        let crib = Arc::new(crib.with_counter(counter));
        let origin =
            if source.catalog.is_empty() { ToolOrigin::Sample } else { ToolOrigin::Catalog };
        Ok(Self { scope: Scope::all(crib.catalog()), crib, origin })
    }

    fn of_config(
        source: &SourceArgs,
        config: LoadedConfig,
        vectors: Option<&VectorArgs>,
        counter: Arc<dyn TokenCounter>,
    ) -> Result<Self, Failure> {
        for warning in &config.warnings {
            print_stderr(&format!("warning: {warning}"));
        }
        let file = config.location.as_ref().map(|location| location.path().to_owned());
        let config = match vectors {
            Some(vectors) => config.with_vectors(vectors, None, Embedding::BeforeRanking)?,
            None => config,
        };
        let gateway = config.sections.gateway;
        let tools = Self::configured_tools(source, gateway, counter)?;
        let origin = ToolOrigin::Config {
            file: file.unwrap_or_default(),
            unlisted_servers: tools.unlisted_servers,
        };
        Ok(Self { crib: tools.crib, scope: tools.scope, origin })
    }

    fn configured_tools(
        source: &SourceArgs,
        config: GatewayConfig,
        counter: Arc<dyn TokenCounter>,
    ) -> Result<ConfiguredTools, Failure> {
        let profile = source.profile.as_deref();
        let unknown_profile = unknown_profile(profile, &config);
        if !source.refresh {
            let saved = ConfiguredTools::from_saved_lists(
                config.clone(),
                &environment(),
                profile,
                &counter,
            );
            let Some(saved) = saved else { return Err(unknown_profile) };
            if !saved.listed_servers.is_empty() || saved.unlisted_servers.is_empty() {
                note_unlisted(&saved.unlisted_servers);
                return Ok(saved);
            }
            print_stderr(&format!(
                "note: asking {} for their tools, which are saved for the next time",
                servers(saved.unlisted_servers.len())
            ));
        }
        let (tools, unanswered) = ask_servers(config, profile, counter)?;
        warn_unanswered(&unanswered);
        tools.ok_or(unknown_profile)
    }
}

/// Returns the config, if the command uses configured servers. It does so if neither `--catalog` nor `--sample` is
/// given and the config has servers.
fn configured(source: &SourceArgs) -> Result<Option<LoadedConfig>, Failure> {
    if source.sample || !source.catalog.is_empty() {
        return Ok(None);
    }
    let location = Location::find(source.config.as_deref())?;
    let Some(location) = location else {
        let needs_servers = source.refresh || source.profile.is_some();
        return if needs_servers { Err(no_servers()) } else { Ok(None) };
    };
    let overrides = Overrides { preset: source.preset, ..Overrides::default() };
    let is_toml = location.path().extension().is_some_and(|ending| ending == "toml");
    let config = match network::load(Some(&location), &overrides) {
        // The file may contain only settings of another system. If not, reading them reports the error.
        Err(_) if !is_toml && !source.refresh && source.profile.is_none() => return Ok(None),
        loaded => loaded?,
    };
    if !config.sections.gateway.servers.is_empty() {
        note_unused_config(Some(&location));
        return Ok(Some(config));
    }
    if std::io::stdout().is_terminal() {
        let file = location.path().display();
        print_stderr(&format!("note: `{file}` has no servers"));
    }
    Ok(None)
}

fn note_unlisted(unlisted: &[String]) {
    if unlisted.is_empty() {
        return;
    }
    let names: Vec<String> = unlisted.iter().map(|name| format!("`{name}`")).collect();
    let pronoun = if names.len() == 1 { "it has" } else { "they have" };
    print_stderr(&format!(
        "note: the tools of {} are missing, because {pronoun} never answered; `toolcrib doctor` shows why",
        names.join(", ")
    ));
}

/// Prints a warning for each server that did not answer.
pub(super) fn warn_unanswered(unanswered: &[UnansweredServer]) {
    for UnansweredServer { name, reason } in unanswered {
        print_stderr(&format!("warning: `{name}`: {reason}; run `toolcrib doctor` for details"));
    }
}

/// Returns the failure of a command that needs servers, if there is no config.
pub(super) fn no_servers() -> Failure {
    Failure::input(
        "config",
        &"there is no config, so there are no servers",
        "`toolcrib connect` imports the servers of your clients, or name a file with `--config F`",
    )
}

/// Returns the failure for a profile that is not in the config.
pub(super) fn unknown_profile(profile: Option<&str>, config: &GatewayConfig) -> Failure {
    let problem = match profile {
        Some(_) => "the config has no such profile",
        None => "the config has no such profile, but `gateway.profile` names it",
    };
    let known: Vec<&str> = config.profiles.keys().map(String::as_str).collect();
    let hint = match &known[..] {
        [] => "the config has no profiles; they are written `[profiles.NAME]`".to_owned(),
        known => format!("the config has these profiles: {}", known.join(", ")),
    };
    Failure::input(format!("profile `{}`", profile.unwrap_or("gateway.profile")), &problem, hint)
}

/// Maximum number of tools that are named in a hint.
const MAX_NAMED: usize = 8;

/// Explains why a name is not the name of one tool: it may be the name of a server, or of tools of several servers. Returns
/// what is wrong, and a hint.
fn explain_missing(crib: &Crib, scope: &Scope, name: &str) -> Option<(String, String)> {
    let tools = || scope.ids().map(|id| crib.catalog().tool(id));
    let listed = |tools: Vec<&str>| tools[..tools.len().min(MAX_NAMED)].join(", ");
    let of_server: Vec<&str> =
        tools().filter(|tool| tool.server() == Some(name)).map(Tool::name).collect();
    if !of_server.is_empty() {
        let hint = format!("its tools are {}", listed(of_server));
        return Some(("the name belongs to a server".to_owned(), hint));
    }
    let same_name: Vec<&str> =
        tools().filter(|tool| tool.name_without_server() == name).map(Tool::name).collect();
    if same_name.len() < 2 {
        return None;
    }
    let hint = format!("write one of {}", listed(same_name));
    Some(("several servers have a tool of this name".to_owned(), hint))
}

/// Finds the tool with this name, in any spelling that a model's call may use.
pub(super) fn find_tool(crib: &Crib, scope: &Scope, name: &str) -> Result<ToolId, Failure> {
    let input = serde_json::json!({ "name": name }).to_string();
    let describe = crib.settings().own_names.describe;
    match crib.handle(&TurnContext::new(scope), &mut Conversation::new(), describe, &input) {
        CallOutcome::Answer(reply) => {
            let id = reply.loaded.first().and_then(|name| crib.catalog().find(name));
            id.ok_or_else(|| {
                let hint = "`toolcrib tools` lists the names";
                Failure::input(format!("`{name}`"), &"no such tool", hint)
            })
        }
        CallOutcome::Refused(refusal) => {
            let (problem, hint) = explain_missing(crib, scope, name).unwrap_or_else(|| {
                let hint = match &refusal.nearest[..] {
                    [] => "`toolcrib tools` lists the names".to_owned(),
                    names => format!("did you mean {}?", names.join(", ")),
                };
                (refusal.message.clone(), hint)
            });
            Err(Failure::input(format!("`{name}`"), &problem, hint))
        }
        CallOutcome::Run(_) => {
            let hint = "this is a bug; report it";
            Err(Failure::input(format!("`{name}`"), &"cannot be described", hint))
        }
    }
}

pub(super) fn servers(count: usize) -> String {
    if count == 1 { "1 server".into() } else { format!("{count} servers") }
}
