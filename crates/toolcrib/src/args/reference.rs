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
pub(crate) struct DocsArgs {
    /// The page to print, such as `settings` or `presets/hermes`. Default: the list of all topics
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
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
