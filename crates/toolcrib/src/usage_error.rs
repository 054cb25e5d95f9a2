//! Wrong usage of the command line, in the format of our own errors, with a hint that fits the command.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use toolcrib_text::nearest_spelling;

use crate::args::Args;
use crate::output::report;

/// Prints a usage error from clap in the format of our own errors. `--help` and `--version` are not errors and exit
/// with success.
pub(crate) fn report_usage_error(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = write!(io::stdout(), "{error}");
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let problem = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let listed: Vec<&str> = lines.clone().take_while(|line| line.starts_with('<')).collect();
    let problem =
        if listed.is_empty() { problem } else { format!("{problem} {}", listed.join(" ")) };
    let hint = usage_hint(error, &problem, &lines.collect::<Vec<_>>());
    let problem = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        "no command given".to_owned()
    } else {
        problem
    };
    report(&problem, &hint, std::env::args_os().any(|arg| arg == "--json"))
}

/// Returns what the user can do about a usage error. `lines` is the rest of clap's message.
fn usage_hint(error: &clap::Error, problem: &str, lines: &[&str]) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // The command, if it is a real one. clap reports an unknown one as a subcommand.
    let typed = std::env::args().nth(1).unwrap_or_default();
    let command = Args::command().find_subcommand(&typed).map(|known| known.get_name().to_owned());
    let help = match &command {
        Some(command) => format!("`toolcrib {command} --help` shows what it takes"),
        None => "`toolcrib --help` lists all commands".to_owned(),
    };
    let with_prefix = |prefix| lines.iter().find_map(|line| line.strip_prefix(prefix));
    // Our own parsers of values write `hint: `. Their hints are better than the tips of clap.
    let (own, tip) = (with_prefix("hint: "), with_prefix("tip: "));
    let possible = lines.iter().find_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let unknown = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let command = Args::command();
            let known = command.get_subcommands().filter(|known| !known.is_hide_set());
            match nearest_spelling(unknown, known.map(clap::Command::get_name)) {
                Some(nearest) => format!("did you mean `toolcrib {nearest}`?"),
                None => help,
            }
        }
        ErrorKind::UnknownArgument => match (tip, command.as_deref()) {
            (_, Some("call")) if problem.contains("'--") => {
                "write the arguments of the tool as KEY=VALUE, without `--`".to_owned()
            }
            (Some(tip), _) if tip.contains("similar argument") => tip.to_owned(),
            (_, Some("search" | "explain")) if problem.contains("'-") => {
                "`--help` lists the options; to search for a word with a leading `-`, put `--` before the query"
                    .to_owned()
            }
            (_, Some("search" | "explain")) => {
                "put quotes around a query of several words".to_owned()
            }
            _ => help,
        },
        ErrorKind::InvalidValue => {
            let value = context(ContextKind::InvalidValue).unwrap_or_default();
            let values = possible.map(|list| list.trim_start_matches("possible values: "));
            let known = values.into_iter().flat_map(|list| list.split(", "));
            match nearest_spelling(value, known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => own.or(possible).or(tip).map_or(help, str::to_owned),
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "start with `toolcrib demo` or `toolcrib connect`; `toolcrib --help` lists all commands"
                .to_owned()
        }
        _ => own.or(tip).or(possible).map_or(help, str::to_owned),
    }
}
