//! Everything that is printed, and how a command ends.
//!
//! A command builds one typed answer. With `--json` that answer is the document on standard output;
//! without, the text a command makes of it. Remarks go to standard error.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use serde::Serialize;
use thiserror::Error;
use toolcrib_eval::files::FileError;
use toolcrib_text::clean::clean;

/// Why a command cannot answer.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A catalog, settings or a set cannot be used.
    #[error("{place}: {problem}")]
    Input { place: String, problem: String, hint: String },
    /// A file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Write { path: String, source: io::Error },
    /// The answer says what is wrong itself.
    #[error("told already")]
    Told,
    /// Nobody reads standard output any more.
    #[error("standard output is closed")]
    Closed,
}

impl Failure {
    pub(crate) fn input(
        place: impl Into<String>,
        problem: &impl ToString,
        hint: impl Into<String>,
    ) -> Self {
        Self::Input { place: place.into(), problem: problem.to_string(), hint: hint.into() }
    }

    pub(crate) fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::Input { hint, .. } => hint.clone(),
            Self::Write { .. } => "check the path and its permissions".into(),
            Self::Told | Self::Closed => String::new(),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Write { path: "standard output".into(), source },
        }
    }
}

/// Standard output, and remarks on standard error.
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

    /// The answer as the one document.
    pub(crate) fn document(&mut self, answer: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(answer)
            .map_err(|error| Failure::input("answer", &error, "this is a bug; report it"))?;
        Ok(writeln!(self.out, "{text}")?)
    }

    /// A line of text.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        // Names of files and words of queries are strangers' text too.
        Ok(writeln!(self.out, "{}", clean(text).0)?)
    }

    /// Clears the terminal, for what is shown anew.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        // The cursor goes home, and what is below it is wiped.
        Ok(write!(self.out, "\x1b[H\x1b[J")?)
    }

    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// A remark, out of the way of what is piped on. Nobody listening is no failure.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}", clean(text).0);
}

#[derive(Serialize)]
struct Failed<'a> {
    error: &'a str,
    hint: &'a str,
}

/// Says what is wrong, and ends with 2.
pub(crate) fn failed(failure: &Failure, json: bool) -> ExitCode {
    say(&failure.to_string(), &failure.hint(), json)
}

/// Says what is wrong with the command line, in our own form; help and version are answers.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
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
        line.strip_prefix("tip: ").or_else(|| line.strip_prefix('[')?.strip_suffix(']'))
    });
    let tip = tip.map(str::to_owned);
    let hint = match (error.kind(), tip) {
        (ErrorKind::UnknownArgument, Some(tip)) if tip.contains("similar argument") => &tip.clone(),
        (ErrorKind::UnknownArgument, _) if !problem.contains("'-") => {
            "quote a query of several words"
        }
        (ErrorKind::UnknownArgument, _) => {
            "`--` ends the options: `toolcrib search -- '-word other'`; `--help` lists them"
        }
        (_, Some(tip)) => &tip.clone(),
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand, _) => {
            "`toolcrib demo` shows what it does, `toolcrib import` finds your MCP servers; `--help` lists all"
        }
        _ => "see `toolcrib --help`, or `--help` after a command",
    };
    let problem = if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        "no command".to_owned()
    } else {
        problem
    };
    say(&problem, hint, std::env::args_os().any(|arg| arg == "--json"))
}

fn say(error: &str, hint: &str, json: bool) -> ExitCode {
    let (error, hint) = (&*clean(error).0, &*clean(hint).0);
    if json {
        let document = serde_json::to_string(&Failed { error, hint }).unwrap_or_default();
        let _ = writeln!(io::stdout(), "{document}");
    }
    let _ = writeln!(io::stderr(), "error: {error}\nhint: {hint}");
    ExitCode::from(2)
}
