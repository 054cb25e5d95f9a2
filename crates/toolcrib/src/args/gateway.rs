//! The arguments of the commands that run, check and control gateways.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use toolcrib_server::config::parse_listen_address;

use super::{Overrides, VectorArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    /// The config: Toolcrib's own TOML file, or a config file of another client, such as Claude Code. Default:
    /// `toolcrib/toolcrib.toml` in the user's config folder. A file in the working folder is used only if it is named
    /// here
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// Expose only the servers and tools of this profile in the config
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Start servers for this client only, instead of sharing those of the background gateway
    #[arg(long)]
    pub(crate) own: bool,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on. Default: `http.listen` in the config, else 127.0.0.1:4180. `:4180` and
    /// `localhost:4180` mean 127.0.0.1:4180, which only this machine can reach. On any address that is not loopback,
    /// clients must send a token
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The upstream for Chat Completions and Responses. Default: `proxy.openai`, else `https://api.openai.com`
    #[arg(long, value_name = "URL")]
    pub(crate) openai: Option<String>,
    /// The upstream for Messages. Default: `proxy.anthropic`, else `https://api.anthropic.com`
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic: Option<String>,
    /// The upstream for Gemini. Default: `proxy.gemini`, else `https://generativelanguage.googleapis.com`
    #[arg(long, value_name = "URL")]
    pub(crate) gemini: Option<String>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LoginArgs {
    /// The server, by its name in the config
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PsArgs {
    /// Show only the background gateway for this config. Default: all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StopArgs {
    /// Stop only the background gateway for this config. Default: all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestartArgs {
    /// The server, by its name in the config
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Restart it only in the background gateway for this config. Default: in all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BackgroundArgs {
    /// The name of the socket
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,
    /// Start the background gateway in a process of its own, and exit
    #[arg(long)]
    pub(crate) detach: bool,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    parse_listen_address(text).map_err(|error| format!("{}\nhint: {}", error.problem, error.hint))
}
