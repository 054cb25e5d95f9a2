//! Child processes that outlive the server, like those that launchers such as `npx` leave behind.
//!
//! One child stays in the server's process group and keeps the server's stdout open. The other has its own session, so
//! that a signal to the process group does not reach it.

use std::io;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// How long the children run. This is longer than any test, but short enough that the children of a failed test do not
/// run for hours.
const SECONDS: &str = "600";

/// Two processes that the server has started. They are grandchildren of the process that started the server.
pub(crate) struct Grandchildren {
    group: Child,
    session: Child,
}

impl Grandchildren {
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
