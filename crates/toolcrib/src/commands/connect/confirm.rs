//! Asks the user before files are changed.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::output::{Failure, Output};

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

fn not_a_terminal() -> Failure {
    Failure::input(
        "nothing was changed",
        &"standard input is not a terminal, so the question cannot be answered",
        "run the command again with `--yes`",
    )
}

/// Fails before the plan is made if the report is JSON and the question cannot be answered. Otherwise, the JSON
/// document would be missing: it is printed only after the answer.
pub(super) fn check(yes: bool, json: bool) -> Result<(), Failure> {
    if yes || !json || io::stdin().is_terminal() { Ok(()) } else { Err(not_a_terminal()) }
}

/// Asks whether to change this number of files. The question goes to standard error, because standard output may be a
/// document.
pub(super) fn ask(yes: bool, files: usize, output: &mut Output) -> Result<Answer, Failure> {
    output.finish()?;
    if yes {
        return Ok(Answer::Yes);
    }
    if !io::stdin().is_terminal() {
        return Err(not_a_terminal());
    }
    let question = if files == 1 {
        "Change this file?".to_owned()
    } else {
        format!("Change these {files} files?")
    };
    let mut err = io::stderr();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let is_yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
    Ok(if read.is_ok() && is_yes { Answer::Yes } else { Answer::No })
}
