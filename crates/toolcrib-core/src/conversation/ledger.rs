//! The record of the schemas that the model was shown in a conversation, in order.
//!
//! With this record, a loaded tool stays loaded, its schema is not sent twice, and a changed schema is sent again. The
//! record is bounded. If an entry is forgotten, the only cost is that the model must search for the tool again.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::tool::{Fingerprint, Tool};

/// One schema that was shown to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The tool's name.
    pub name: String,
    /// The fingerprint of the definition that was shown. It is `None` if only the name is known, because the ledger was
    /// rebuilt from a transcript or from names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// A bounded, ordered record of reveals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    reveals: VecDeque<Reveal>,
    capacity: usize,
    /// Whether tools were deferred at any point in the conversation, not counting tools with the policy `always`. This
    /// flag is exported together with the reveals.
    deferred: bool,
}

/// The exported form of a ledger, with a version number.
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
    /// An empty ledger that keeps the last `capacity` reveals.
    pub fn new(capacity: usize) -> Self {
        Self { reveals: VecDeque::new(), capacity, deferred: false }
    }

    /// Whether tools were deferred at any point in the conversation, not counting tools with the policy `always`.
    pub fn deferred(&self) -> bool {
        self.deferred
    }

    /// Records that tools were deferred in this conversation.
    pub fn set_deferred(&mut self) {
        self.deferred = true;
    }

    /// Records that a tool's schema was shown. A tool that is already recorded keeps its position. A new tool replaces
    /// the oldest one if the ledger is full.
    pub fn reveal(&mut self, tool: &Tool) {
        let fingerprint = Some(tool.fingerprint());
        if let Some(known) = self.reveals.iter_mut().find(|r| r.name == tool.name()) {
            known.fingerprint = fingerprint;
            return;
        }
        self.push(Reveal { name: tool.name().to_owned(), fingerprint });
    }

    /// Records that a tool's schema was shown, and makes that reveal the newest.
    pub(crate) fn renew(&mut self, tool: &Tool) {
        self.reveals.retain(|reveal| reveal.name != tool.name());
        self.reveal(tool);
    }

    fn push(&mut self, reveal: Reveal) {
        if self.capacity == 0 {
            return;
        }
        if self.reveals.len() == self.capacity {
            self.reveals.pop_front();
        }
        self.reveals.push_back(reveal);
    }

    /// Whether the model was shown the current definition of this tool. A reveal without a fingerprint is assumed to be
    /// of the current definition.
    pub fn has(&self, tool: &Tool) -> bool {
        let known = self.reveals.iter().find(|reveal| reveal.name == tool.name());
        known.is_some_and(|reveal| {
            reveal.fingerprint.is_none_or(|known| known == tool.fingerprint())
        })
    }

    /// Whether any definition of a tool with this name was shown.
    pub fn has_name(&self, name: &str) -> bool {
        self.reveals.iter().any(|reveal| reveal.name == name)
    }

    /// The reveals, oldest first.
    pub fn reveals(&self) -> impl ExactSizeIterator<Item = &Reveal> {
        self.reveals.iter()
    }

    /// The number of reveals.
    pub fn len(&self) -> usize {
        self.reveals.len()
    }

    /// Whether there are no reveals.
    pub fn is_empty(&self) -> bool {
        self.reveals.is_empty()
    }

    /// The ledger as JSON, for [`import`](Self::import).
    pub fn export(&self) -> String {
        let reveals = self.reveals.iter().cloned().collect();
        let exported = Exported { version: VERSION, deferred: self.deferred, reveals };
        serde_json::to_string(&exported).unwrap_or_default()
    }

    /// Reads an exported ledger. Only the newest `capacity` reveals are kept.
    pub fn import(text: &str, capacity: usize) -> Result<Self, Error> {
        let exported: Exported = serde_json::from_str(text)
            .map_err(|error| Error::Ledger { problem: error.to_string() })?;
        if exported.version != VERSION {
            let problem = format!("version {}, this program reads {VERSION}", exported.version);
            return Err(Error::Ledger { problem });
        }
        let mut ledger = Self { deferred: exported.deferred, ..Self::new(capacity) };
        for reveal in exported.reveals {
            if !ledger.has_name(&reveal.name) {
                ledger.push(reveal);
            }
        }
        Ok(ledger)
    }

    /// Rebuilds the ledger of a resumed conversation from its transcript: the texts of our own replies and the names of
    /// the called tools, in order.
    ///
    /// The transcript contains names but no definitions, so the ledger cannot tell whether a tool has changed in the
    /// meantime.
    pub fn from_transcript<'a>(
        entries: impl IntoIterator<Item = TranscriptEntry<'a>>,
        capacity: usize,
    ) -> Self {
        let mut ledger = Self::new(capacity);
        for entry in entries {
            let names = match entry {
                // If our search tool has replied, tools were deferred.
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

    /// Rebuilds the ledger of a conversation in which tools were deferred. `names` are the tools that the model was
    /// shown, in order. A name does not identify a version of the definition, so the current definitions count as
    /// shown.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>, capacity: usize) -> Self {
        let mut ledger = Self { deferred: true, ..Self::new(capacity) };
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

/// An entry of a transcript from which a ledger is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptEntry<'a> {
    /// The text of one of our replies, in any format.
    Reply(&'a str),
    /// The name of a tool that was called.
    Call(&'a str),
}
