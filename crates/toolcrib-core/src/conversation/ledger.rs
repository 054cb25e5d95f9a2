//! What one conversation has been shown, in order.
//!
//! The ledger is why a loaded tool stays loaded, why it is not sent twice, and why a changed schema
//! *is* sent again. It is bounded; what falls out of it costs one more search and nothing else.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::tool::{Fingerprint, Tool};

/// One schema that was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The tool's name.
    pub name: String,
    /// The definition that was shown; `None` where only the name is known, from a transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// The bounded, ordered record of reveals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    reveals: VecDeque<Reveal>,
    cap: usize,
    /// Whether the conversation has deferred: it belongs to what must travel with it.
    deferred: bool,
}

/// The exported form. The version is there so that a later one can be told apart.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exported {
    version: u32,
    #[serde(default)]
    deferred: bool,
    reveals: Vec<Reveal>,
}

const VERSION: u32 = 1;

impl Ledger {
    /// An empty ledger that keeps the last `cap` reveals.
    pub fn new(cap: usize) -> Self {
        Self { reveals: VecDeque::new(), cap, deferred: false }
    }

    /// Whether the conversation has deferred tools.
    pub fn deferred(&self) -> bool {
        self.deferred
    }

    /// Records that it has.
    pub fn set_deferred(&mut self) {
        self.deferred = true;
    }

    /// Records that a tool's schema was shown. A tool keeps its place in the order; the oldest makes
    /// room for a new one.
    pub fn reveal(&mut self, tool: &Tool) {
        let fingerprint = Some(tool.fingerprint());
        if let Some(known) = self.reveals.iter_mut().find(|r| r.name == tool.name()) {
            known.fingerprint = fingerprint;
            return;
        }
        self.push(Reveal { name: tool.name().to_owned(), fingerprint });
    }

    /// Records that a tool's schema was shown, and makes it the newest.
    pub(crate) fn renew(&mut self, tool: &Tool) {
        self.reveals.retain(|reveal| reveal.name != tool.name());
        self.reveal(tool);
    }

    fn push(&mut self, reveal: Reveal) {
        if self.cap == 0 {
            return;
        }
        if self.reveals.len() == self.cap {
            self.reveals.pop_front();
        }
        self.reveals.push_back(reveal);
    }

    /// Whether the model has been shown this tool as it is now.
    pub fn has(&self, tool: &Tool) -> bool {
        let known = self.reveals.iter().find(|reveal| reveal.name == tool.name());
        known.is_some_and(|reveal| {
            reveal.fingerprint.is_none_or(|known| known == tool.fingerprint())
        })
    }

    /// Whether a tool of this name was shown, as it is now or as it was.
    pub fn has_name(&self, name: &str) -> bool {
        self.reveals.iter().any(|reveal| reveal.name == name)
    }

    /// The reveals, oldest first.
    pub fn reveals(&self) -> impl ExactSizeIterator<Item = &Reveal> {
        self.reveals.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.reveals.len()
    }

    /// Whether nothing was revealed.
    pub fn is_empty(&self) -> bool {
        self.reveals.is_empty()
    }

    /// The ledger as JSON, to be stored and given to [`import`](Self::import) elsewhere.
    pub fn export(&self) -> String {
        let reveals = self.reveals.iter().cloned().collect();
        let exported = Exported { version: VERSION, deferred: self.deferred, reveals };
        serde_json::to_string(&exported).unwrap_or_default()
    }

    /// Reads an exported ledger; only the newest `cap` reveals are kept.
    pub fn import(text: &str, cap: usize) -> Result<Self, Error> {
        let exported: Exported = serde_json::from_str(text)
            .map_err(|error| Error::Ledger { problem: error.to_string() })?;
        if exported.version != VERSION {
            let problem = format!("version {}, this program reads {VERSION}", exported.version);
            return Err(Error::Ledger { problem });
        }
        let mut ledger = Self { deferred: exported.deferred, ..Self::new(cap) };
        for reveal in exported.reveals {
            if !ledger.has_name(&reveal.name) {
                ledger.push(reveal);
            }
        }
        Ok(ledger)
    }

    /// Rebuilds the ledger of a resumed conversation from what the transcript shows: the texts of
    /// our own replies and the names of the tools that were called, in order.
    ///
    /// A tool that has changed since is found out when it is called: the transcript tells its name,
    /// not its definition.
    pub fn from_transcript<'a>(
        entries: impl IntoIterator<Item = TranscriptEntry<'a>>,
        cap: usize,
    ) -> Self {
        let mut ledger = Self::new(cap);
        for entry in entries {
            let names = match entry {
                // Whoever was answered by our search tool had deferred tools.
                TranscriptEntry::Reply(text) => {
                    let names = crate::reply::names_in(text);
                    ledger.deferred |= names.is_some();
                    names.unwrap_or_default()
                }
                TranscriptEntry::Call(name) => vec![name.to_owned()],
            };
            for name in names {
                ledger.reveal_name(name);
            }
        }
        ledger
    }

    /// Rebuilds the ledger of a conversation that has deferred, from the names of the tools it was
    /// shown, in order. Each counts as shown the way it is now: a name tells no definition.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>, cap: usize) -> Self {
        let mut ledger = Self { deferred: true, ..Self::new(cap) };
        for name in names {
            ledger.reveal_name(name.to_owned());
        }
        ledger
    }

    fn reveal_name(&mut self, name: String) {
        if !self.has_name(&name) {
            self.push(Reveal { name, fingerprint: None });
        }
    }
}

/// A piece of a transcript that tells what was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptEntry<'a> {
    /// The text of a reply of ours, in any of its forms.
    Reply(&'a str),
    /// The name of a tool that was called.
    Call(&'a str),
}
