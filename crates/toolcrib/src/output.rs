//! Printing, and the failures that end a command.
//!
//! A command builds one typed report. With `--json` the report is the document on standard output; otherwise the
//! command formats it as text. Notes and warnings go to standard error.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::process::ExitCode;

use serde::Serialize;
use thiserror::Error;
use toolcrib_eval::files::FileError;
use toolcrib_text::clean::clean;

use crate::terminal;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A catalog, a config or a dataset cannot be used.
    #[error("{subject}: {problem}")]
    Input { subject: String, problem: String, hint: String },
    /// A file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Write { path: String, source: io::Error },
    /// The command has already printed what is wrong.
    #[error("already reported")]
    AlreadyReported,
    /// The process that reads standard output has closed the pipe.
    #[error("standard output is closed")]
    OutputClosed,
}

impl Failure {
    pub(crate) fn input(
        subject: impl Into<String>,
        problem: &impl ToString,
        hint: impl Into<String>,
    ) -> Self {
        Self::Input { subject: subject.into(), problem: problem.to_string(), hint: hint.into() }
    }

    pub(crate) fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::Input { hint, .. } => hint.clone(),
            Self::Write { .. } => "check the path and its permissions".into(),
            Self::AlreadyReported | Self::OutputClosed => String::new(),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Write { path: "standard output".into(), source },
        }
    }
}

pub(crate) struct Output {
    json: bool,
    out: BufWriter<io::Stdout>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, out: BufWriter::new(io::stdout()) }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes the report as one line of JSON.
    pub(crate) fn document(&mut self, report: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(report)
            .map_err(|error| Failure::input("report", &error, "this is a bug; report it"))?;
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Writes JSON text that is already complete. Unlike a line of text, it is not cleaned, because in JSON strings all
    /// control characters are escaped.
    pub(crate) fn raw(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Writes a line of text.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        // The text is cleaned here, because it may contain file names and query words, which are untrusted.
        Ok(writeln!(self.out, "{}", clean(text).0)?)
    }

    /// Writes text that is wrapped between words if standard output has a known width.
    pub(crate) fn wrapped(&mut self, text: &str) -> Result<(), Failure> {
        match terminal::stdout_width() {
            Some(width) => self.line(&terminal::wrap(text, width)),
            None => self.line(text),
        }
    }

    /// Writes a text that is part of this program, such as a script or a page of the documentation, without changes.
    pub(crate) fn own_text(&mut self, text: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(text)?)
    }

    /// Writes a line of a diff after its sign. Removed lines are red and added lines are green if standard output
    /// may have colours.
    pub(crate) fn diff_line(&mut self, sign: &str, text: &str) -> Result<(), Failure> {
        let colour = match sign {
            "-" => "31",
            "+" => "32",
            _ => "",
        };
        let text = clean(text).0;
        if colour.is_empty() || !terminal::has_colours(io::stdout().is_terminal()) {
            return Ok(writeln!(self.out, "{sign}{text}")?);
        }
        Ok(writeln!(self.out, "\x1b[{colour}m{sign}{text}\x1b[0m")?)
    }

    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        // This moves the cursor to the top left and erases everything below it.
        Ok(write!(self.out, "\x1b[H\x1b[J")?)
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Prints a line to standard error, so that it is not mixed with output that is piped to another program. Write errors
/// are ignored.
pub(crate) fn print_stderr(text: &str) {
    let _ = writeln!(io::stderr(), "{}", wrapped_for_stderr(&clean(text).0));
}

fn wrapped_for_stderr(text: &str) -> String {
    terminal::stderr_width().map_or_else(|| text.to_owned(), |width| terminal::wrap(text, width))
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    error: &'a str,
    hint: &'a str,
}

/// Prints a failure and returns exit code 2.
pub(crate) fn report_failure(failure: &Failure, json: bool) -> ExitCode {
    report(&failure.to_string(), &failure.hint(), json)
}

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
    let tip = lines.find_map(|line| {
        // clap writes `tip: `, and our own parsers of values write `hint: `.
        let tip = line.strip_prefix("tip: ").or_else(|| line.strip_prefix("hint: "));
        tip.or_else(|| line.strip_prefix('[')?.strip_suffix(']'))
    });
    let tip = tip.map(str::to_owned);
    let hint = match (error.kind(), tip) {
        (ErrorKind::UnknownArgument, Some(tip)) if tip.contains("similar argument") => &tip.clone(),
        (ErrorKind::UnknownArgument, _) if !problem.contains("'-") => {
            "put quotes around a query of several words"
        }
        (ErrorKind::UnknownArgument, _) => {
            "`--help` lists the options; to search for a word with a leading `-`, put `--` before the query"
        }
        (_, Some(tip)) => &tip.clone(),
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand, _) => {
            "start with `toolcrib demo` or `toolcrib connect`; `toolcrib --help` lists all commands"
        }
        _ => "see `toolcrib --help`, or `toolcrib COMMAND --help`",
    };
    let problem = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        "no command given".to_owned()
    } else {
        problem
    };
    report(&problem, hint, std::env::args_os().any(|arg| arg == "--json"))
}

fn report(error: &str, hint: &str, json: bool) -> ExitCode {
    let (error, hint) = (&*clean(error).0, &*clean(hint).0);
    if json {
        let document = serde_json::to_string(&ErrorDocument { error, hint }).unwrap_or_default();
        let _ = writeln!(io::stdout(), "{document}");
    }
    let text = wrapped_for_stderr(&format!("error: {error}\nhint: {hint}"));
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(2)
}
