//! The run that is being read: what separators part, and where its humps are.
//!
//! Whether `GitHub` is one word or two is not known before its end, so both readings are kept: the
//! humps lie one behind the other, and the whole is their bytes.

use std::ops::ControlFlow;

/// Characters of a run; a name has fewer, and what is longer is a key or a picture in base64.
const LONGEST_RUN: usize = 256;
/// Characters of a hump; what is longer is a hash or a key, and its rest says nothing.
const LONGEST: usize = 64;
/// Bytes of the longest run.
pub(crate) const MOST_BYTES: usize = LONGEST_RUN * 4;

/// A run. It lives on the stack and is used again for the next: a query has a dozen of them.
pub(crate) struct Run {
    bytes: [u8; MOST_BYTES],
    len: usize,
    /// Where each hump ends, in bytes.
    ends: [u16; LONGEST_RUN],
    humps: usize,
    /// Characters of the run, those included that its humps did not take.
    read: usize,
    /// Characters of the hump that has no end yet.
    chars: usize,
}

impl Run {
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; MOST_BYTES],
        len: 0,
        ends: [0; LONGEST_RUN],
        humps: 0,
        read: 0,
        chars: 0,
    };

    /// All humps as one word.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether the whole is something else than its only hump.
    pub(crate) fn has_humps(&self) -> bool {
        self.humps > 1
    }

    /// Each hump, in order; one at least, and none of them empty.
    pub(crate) fn humps(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends[..self.humps].iter().map(move |end| {
            let end = usize::from(*end);
            let hump = &self.bytes[start..end];
            start = end;
            hump
        })
    }

    /// One more character, if there is room for it.
    pub(crate) fn push(&mut self, c: char) {
        if self.read == LONGEST_RUN {
            return;
        }
        self.read += 1;
        if self.chars < LONGEST {
            self.len += c.encode_utf8(&mut self.bytes[self.len..]).len();
            self.chars += 1;
        }
    }

    /// Ends a hump, if there is one.
    pub(crate) fn part(&mut self) {
        if self.chars > 0 {
            self.ends[self.humps] = self.len as u16;
            self.humps += 1;
            self.chars = 0;
        }
    }

    /// Hands the run over, if there is one, and begins the next.
    pub(crate) fn end(
        &mut self,
        visit: &mut impl FnMut(&Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.part();
        if self.humps == 0 {
            return ControlFlow::Continue(());
        }
        let flow = visit(self);
        self.len = 0;
        self.humps = 0;
        self.read = 0;
        flow
    }
}
