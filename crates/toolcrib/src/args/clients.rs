//! The arguments of the commands that read or change the files of clients.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use toolcrib_mcp::config::ClientKind;

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Import only from the files of this client
    #[arg(long, value_name = "CLIENT", value_parser = client())]
    pub(crate) from: Option<ClientKind>,
    /// Also import the servers that files in the working folder define, such as `.mcp.json`. The authors of these
    /// files choose which programs run; none of their servers replaces one of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// Write the config to this file, readable only by you. If the file exists, new servers are added to it. Default:
    /// print the config, with `***` in place of secrets
    #[arg(long, value_name = "F")]
    pub(crate) write: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct ConnectArgs {
    /// The clients to connect. Default: all clients whose files are found
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<ClientKind>,
    /// Set the client's base URL to the proxy of `toolcrib serve` instead. No servers are moved
    #[arg(long, conflicts_with = "http")]
    pub(crate) proxy: bool,
    /// Let the clients use a running `toolcrib serve` instead of starting `toolcrib mcp`
    #[arg(long)]
    pub(crate) http: bool,
    /// Change the files without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// The config that the servers are added to. Default: `toolcrib/toolcrib.toml` in the user's config folder
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DisconnectArgs {
    /// The clients to disconnect. Default: all connected clients
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<ClientKind>,
    /// Change the files without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Returns a parser for the name of a client.
fn client() -> impl TypedValueParser<Value = ClientKind> {
    let names = ClientKind::ALL.map(ClientKind::name);
    PossibleValuesParser::new(names)
        .map(|name| ClientKind::from_name(&name).unwrap_or(ClientKind::Other))
}
