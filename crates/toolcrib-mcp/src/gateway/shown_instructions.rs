//! Which servers' instructions one session has received, so that it receives each of them once.

use parking_lot::Mutex;
use std::collections::HashMap;

/// The servers whose instructions a session has received, each with a hash of the text. If a server changes its
/// instructions, the session receives them again.
#[derive(Debug, Default)]
pub(super) struct ShownInstructions(Mutex<HashMap<String, blake3::Hash>>);

impl ShownInstructions {
    /// Records that the instructions of a server are shown. Returns whether they are new for the session.
    pub(super) fn record(&self, server: &str, text: &str) -> bool {
        let hash = blake3::hash(text.as_bytes());
        self.0.lock().insert(server.to_owned(), hash) != Some(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_receives_each_text_of_a_server_once() {
        let shown = ShownInstructions::default();
        assert!(shown.record("files", "one") && shown.record("notes", "one"));
        assert!(!shown.record("files", "one") && !shown.record("notes", "one"));
        assert!(shown.record("files", "two") && !shown.record("files", "two"));
    }
}
