//! The arguments of the commands that describe Toolcrib: completion scripts, man pages and documentation.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_complete::Shell;

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell that the script is for
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// The command whose page is printed. Default: the page of `toolcrib`
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Option<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
