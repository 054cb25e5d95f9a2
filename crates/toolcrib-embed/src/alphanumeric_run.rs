//! A run of letters and digits, and where its camel-case parts end.
//!
//! Whether `GitHub` is one word or two is known only after the vocabulary was consulted, so a run keeps both
//! readings: the bytes of its parts are stored one after another, and together they are the one-word reading.

use std::ops::ControlFlow;

/// Maximum number of characters of a run. Names are shorter; longer runs are keys or base64.
const MAX_RUN_CHARS: usize = 256;
/// Maximum number of characters of a part. Longer parts are hashes or keys, whose end carries no meaning.
const MAX_PART_CHARS: usize = 64;
/// Maximum size of a run, in bytes of UTF-8.
pub(crate) const MAX_RUN_BYTES: usize = MAX_RUN_CHARS * 4;

/// A run of letters and digits. It lives on the stack and is reused for the next run of the text.
pub(crate) struct AlphanumericRun {
    bytes: [u8; MAX_RUN_BYTES],
    len: usize,
    /// Where each part ends, in bytes.
    part_ends: [u16; MAX_RUN_CHARS],
    /// Number of finished parts.
    parts: usize,
    /// Number of characters of the run so far, including those that were dropped because a part was too long.
    run_chars: usize,
    /// Number of characters of the unfinished part.
    part_chars: usize,
}

impl AlphanumericRun {
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; MAX_RUN_BYTES],
        len: 0,
        part_ends: [0; MAX_RUN_CHARS],
        parts: 0,
        run_chars: 0,
        part_chars: 0,
    };

    /// Returns all parts joined into one word.
    pub(crate) fn as_one_word(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether the run has more than one part.
    pub(crate) fn is_compound(&self) -> bool {
        self.parts > 1
    }

    /// Returns the parts in order. A finished run has at least one part, and no part is empty.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.part_ends[..self.parts].iter().map(move |end| {
            let end = usize::from(*end);
            let part = &self.bytes[start..end];
            start = end;
            part
        })
    }

    /// Appends a character, unless the run or the part is full.
    pub(crate) fn push(&mut self, c: char) {
        if self.run_chars == MAX_RUN_CHARS {
            return;
        }
        self.run_chars += 1;
        if self.part_chars < MAX_PART_CHARS {
            self.len += c.encode_utf8(&mut self.bytes[self.len..]).len();
            self.part_chars += 1;
        }
    }

    /// Ends the current part, unless it is empty.
    pub(crate) fn end_part(&mut self) {
        if self.part_chars > 0 {
            self.part_ends[self.parts] = self.len as u16;
            self.parts += 1;
            self.part_chars = 0;
        }
    }

    /// Passes the run to `visit`, unless the run is empty, and then clears the run.
    pub(crate) fn finish(
        &mut self,
        visit: &mut impl FnMut(&Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.end_part();
        if self.parts == 0 {
            return ControlFlow::Continue(());
        }
        let flow = visit(self);
        self.len = 0;
        self.parts = 0;
        self.run_chars = 0;
        flow
    }
}
