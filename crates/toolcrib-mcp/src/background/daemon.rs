//! Starts a process that outlives the client that started it.
//!
//! Clients end `toolcrib mcp` in different ways: some close its input, others signal its process group or all processes
//! below it. The background gateway must survive all of these. So `toolcrib mcp` starts a process that starts the
//! background gateway and exits, and the background gateway begins a session of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};

use close_fds::CloseFdsBuilder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

/// The first descriptor after the three standard ones.
const FIRST_OTHER_DESCRIPTOR: i32 = 3;
/// The limit on open files that a background gateway sets for itself, if the system allows it.
const MAX_FILES: u64 = 8_192;

/// Maximum length of what a background process reports, in bytes.
const MAX_REPORT_BYTES: u64 = 4_096;
/// The report of a process that listens.
const LISTENING: &str = "listening";
/// The report of a process that found another one in its place.
const NOT_FIRST: &str = "not first";

/// How the start of a background process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Startup {
    /// The process listens on its socket.
    Listening,
    /// Another process listens, or has not ended yet.
    NotFirst,
    /// The process ended, for this reason if it reported one.
    Ended(Option<String>),
}

/// Runs a command that starts a background process and exits, and waits until the background process has reported how
/// its start ended, or has ended itself. Standard error of both is appended to `log`. Blocks.
pub fn run_starter(command: &[OsString], log: File) -> io::Result<Startup> {
    let mut starter = in_background(command)?.stdout(Stdio::piped()).stderr(log).spawn()?;
    let mut report = Vec::new();
    // The background process inherits the pipe, so this ends when it has closed its side.
    if let Some(output) = starter.stdout.take() {
        output.take(MAX_REPORT_BYTES).read_to_end(&mut report)?;
    }
    let status = starter.wait()?;
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    Ok(match String::from_utf8_lossy(&report).trim_end() {
        LISTENING => Startup::Listening,
        NOT_FIRST => Startup::NotFirst,
        reason => Startup::Ended(Some(reason.to_owned()).filter(|reason| !reason.is_empty())),
    })
}

/// Reports to [`run_starter`] how the start of this process ended, and closes standard output.
pub fn report_startup(startup: &Startup) -> io::Result<()> {
    let report = match startup {
        Startup::Listening => LISTENING,
        Startup::NotFirst => NOT_FIRST,
        Startup::Ended(reason) => reason.as_deref().unwrap_or_default(),
    };
    let mut output = io::stdout().lock();
    writeln!(output, "{report}")?;
    output.flush()?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok(())
}

/// Starts a command as a background process, without waiting for it. It inherits standard output and standard error, and
/// no other open files of this process: the client may wait until these are closed.
pub fn start_detached(command: &[OsString]) -> io::Result<()> {
    CloseFdsBuilder::new().cloexecfrom(FIRST_OTHER_DESCRIPTOR);
    in_background(command)?.stdout(Stdio::inherit()).spawn().map(|_| ())
}

fn in_background(command: &[OsString]) -> io::Result<Command> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let mut command = Command::new(program);
    // The root folder, so that no other folder is kept in use.
    command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

/// Begins a session without a terminal, so that no signal of the client's terminal reaches this process. Also raises the
/// limit on open files, because this process holds the pipes of all servers.
pub fn become_daemon() {
    // This fails only if the process already leads a session.
    let _ = setsid();
    let files = getrlimit(Resource::Nofile);
    if files.current.is_some_and(|current| current < MAX_FILES) {
        let current = files.maximum.map_or(MAX_FILES, |maximum| maximum.min(MAX_FILES));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..files });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_reports_how_the_start_ended() {
        let ended = |reason: Option<&str>| Startup::Ended(reason.map(str::to_owned));
        for (script, expected) in [
            ("echo listening", Startup::Listening),
            // A background process writes the report after the starter has ended.
            ("(sleep 0.1; echo not first) &", Startup::NotFirst),
            ("(sleep 0.1; echo no space left) &", ended(Some("no space left"))),
            ("sleep 0.1 &", ended(None)),
        ] {
            let log = File::options().write(true).open("/dev/null").unwrap();
            let command = ["sh", "-c", script].map(OsString::from);
            assert_eq!(run_starter(&command, log).unwrap(), expected, "{script}");
        }
        let log = File::options().write(true).open("/dev/null").unwrap();
        assert!(run_starter(&["false".into()], log).is_err());
    }
}
