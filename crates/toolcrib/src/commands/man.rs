//! `toolcrib man`: the man pages, generated from the arguments.
//!
//! Packages install the pages that `--out` writes.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use toolcrib_text::nearest_spelling;

use crate::args::{Args, ManArgs};
use crate::output::{Failure, Output};

pub(crate) fn run(args: &ManArgs, output: &mut Output) -> Result<bool, Failure> {
    if let Some(folder) = &args.out {
        let failed = |source| Failure::Write { path: folder.display().to_string(), source };
        fs::create_dir_all(folder).and_then(|()| write_pages(folder)).map_err(failed)?;
        return Ok(true);
    }
    let root = documented_command();
    let command = match &args.command {
        Some(name) => find(&root, name)?.clone(),
        None => root,
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    output.own_text(&page)?;
    Ok(true)
}

fn write_pages(folder: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(documented_command(), folder)
}

/// Returns the command with all its subcommands. `help` is left out, because a page about it would say nothing.
fn documented_command() -> Command {
    let mut root = Args::command().disable_help_subcommand(true);
    root.build();
    root
}

/// Returns the names of the commands that the help lists.
pub(crate) fn visible_commands() -> Vec<String> {
    let root = documented_command();
    let visible = root.get_subcommands().filter(|command| !command.is_hide_set());
    visible.map(|command| command.get_name().to_owned()).collect()
}

fn find<'c>(root: &'c Command, name: &str) -> Result<&'c Command, Failure> {
    let visible = visible_commands();
    let found = root.find_subcommand(name).filter(|_| visible.iter().any(|known| known == name));
    found.ok_or_else(|| {
        let hint = match nearest_spelling(name, visible.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "`toolcrib --help` lists all commands".to_owned(),
        };
        Failure::input(format!("`{name}`"), &"not a command", hint)
    })
}
