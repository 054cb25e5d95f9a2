//! `toolcrib completions`: a script that completes commands, options and values in a shell.
//!
//! The script is generated from the arguments, so it lists every preset, mode and client that this build knows.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory as _};

use crate::args::{Args, CompletionsArgs};
use crate::commands::man;
use crate::documentation::PAGES;
use crate::output::{Failure, Output};

pub(crate) fn run(args: &CompletionsArgs, output: &mut Output) -> Result<bool, Failure> {
    let commands = PossibleValuesParser::new(man::visible_commands());
    // The parser does not restrict these arguments to known values, so that a misspelled one gets our own error.
    let mut root = without_hidden_commands(&Args::command()).mut_subcommand("man", |man| {
        man.mut_arg("command", |command| command.value_parser(commands))
    });
    let topics = PossibleValuesParser::new(PAGES.map(|page| page.topic));
    root = root
        .mut_subcommand("docs", |docs| docs.mut_arg("topic", |topic| topic.value_parser(topics)));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "toolcrib", &mut script);
    output.own_text(&script)?;
    Ok(true)
}

/// Returns the command with only the subcommands that the help lists. The generators would complete hidden ones, too.
fn without_hidden_commands(root: &Command) -> Command {
    let visible: Vec<Command> =
        root.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    Command::new("toolcrib").version(env!("CARGO_PKG_VERSION")).subcommands(visible)
}
