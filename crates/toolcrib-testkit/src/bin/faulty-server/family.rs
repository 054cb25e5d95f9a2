//! Processes below the server, as launchers like `npx` leave them.
//!
//! One stays in the server's process group and holds its stdout open; the other has a session of
//! its own, out of reach of a signal to the group.

use std::io;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Longer than any test, short enough to clean up after a failed one.
const SECONDS: &str = "600";

/// The grandchildren of whoever started the server.
pub(crate) struct Family {
    group: Child,
    session: Child,
}

impl Family {
    pub(crate) fn start() -> io::Result<Self> {
        let group = Command::new("sleep")
            .arg(SECONDS)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let session = Command::new("setsid")
            .args(["sleep", SECONDS])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { group, session })
    }

    pub(crate) fn pids(&self) -> Value {
        json!({"own": std::process::id(), "group": self.group.id(), "session": self.session.id()})
    }
}
