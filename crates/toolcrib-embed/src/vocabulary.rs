//! Which row of the table a piece of text has.
//!
//! Entries are of three kinds, told apart by how they are written: `issue` is the beginning of a word,
//! `##s` the continuation of one, `pull request` a phrase of two words. A lookup puts nothing together
//! and allocates nothing: a key is hashed and compared by its parts. The table of hashes is our own,
//! since a map of the standard library would have to own every entry, and thirty thousand small
//! allocations are most of a start.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::Error;

/// What is looked up.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// The beginning of a word.
    Word(&'a [u8]),
    /// A later piece of it.
    Continuation(&'a [u8]),
    /// Two words beside each other.
    Phrase(&'a [u8], &'a [u8]),
}

impl<'a> Key<'a> {
    /// The key under which an entry is found.
    fn of(entry: &'a str) -> Self {
        if let Some(rest) = entry.strip_prefix("##") {
            Self::Continuation(rest.as_bytes())
        } else if let Some((left, right)) = entry.split_once(' ') {
            Self::Phrase(left.as_bytes(), right.as_bytes())
        } else {
            Self::Word(entry.as_bytes())
        }
    }

    fn hash(self) -> u64 {
        let mut hasher = FxHasher::default();
        match self {
            Self::Word(word) => hasher.write(word),
            Self::Continuation(piece) => {
                hasher.write_u8(b'#');
                hasher.write(piece);
            }
            Self::Phrase(left, right) => {
                hasher.write(left);
                hasher.write_u8(b' ');
                hasher.write(right);
            }
        }
        hasher.finish()
    }

    fn is(self, entry: &str) -> bool {
        match (self, Key::of(entry)) {
            (Self::Word(a), Key::Word(b)) | (Self::Continuation(a), Key::Continuation(b)) => a == b,
            (Self::Phrase(a, b), Key::Phrase(c, d)) => a == c && b == d,
            _ => false,
        }
    }
}

/// A place in the table of hashes: half of a hash, and the row. A free place has [`FREE`] for a row.
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    row: u32,
}

const FREE: u32 = u32::MAX;

/// The entries, and where to find them.
#[derive(Clone)]
pub(crate) struct Vocabulary {
    /// Joined by newlines.
    text: Cow<'static, str>,
    /// Where each entry begins, and where one after the last would.
    starts: Vec<u32>,
    slots: Vec<Slot>,
    /// Bytes of the longest beginning or continuation: no longer piece is worth a lookup.
    longest: usize,
    has_phrases: bool,
}

impl Vocabulary {
    /// One entry a line, and a line for each of `rows`.
    pub(crate) fn parse(text: Cow<'static, str>, rows: usize) -> Result<Self, Error> {
        let entries = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        if entries != rows {
            return Err(Error::VocabularyLength { entries, rows });
        }
        // At most half full, so that a miss ends soon.
        let free = Slot { tag: 0, row: FREE };
        let mut vocabulary = Self {
            text: Cow::Borrowed(""),
            starts: Vec::with_capacity(rows + 1),
            slots: vec![free; (rows * 2).next_power_of_two()],
            longest: 0,
            has_phrases: false,
        };
        let mut start = 0;
        for entry in text.split('\n') {
            vocabulary.starts.push(start as u32);
            start += entry.len() + 1;
        }
        vocabulary.starts.push(start as u32);
        vocabulary.text = text;
        for row in 0..rows as u32 {
            vocabulary.insert(row)?;
        }
        Ok(vocabulary)
    }

    fn insert(&mut self, row: u32) -> Result<(), Error> {
        let key = Key::of(self.entry(row));
        let hash = key.hash();
        let mut at = self.slot(hash);
        while self.slots[at].row != FREE {
            if self.slots[at].tag == tag(hash) && key.is(self.entry(self.slots[at].row)) {
                return Err(Error::Twice { entry: self.entry(row).to_owned() });
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        match key {
            Key::Word(piece) | Key::Continuation(piece) => {
                self.longest = self.longest.max(piece.len());
            }
            Key::Phrase(..) => self.has_phrases = true,
        }
        self.slots[at] = Slot { tag: tag(hash), row };
        Ok(())
    }

    /// The row of `key`.
    pub(crate) fn get(&self, key: Key<'_>) -> Option<u32> {
        let hash = key.hash();
        let mut at = self.slot(hash);
        loop {
            let slot = self.slots[at];
            if slot.row == FREE {
                return None;
            }
            if slot.tag == tag(hash) && key.is(self.entry(slot.row)) {
                return Some(slot.row);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// How an entry is written.
    pub(crate) fn entry(&self, row: u32) -> &str {
        let row = row as usize;
        &self.text[self.starts[row] as usize..self.starts[row + 1] as usize - 1]
    }

    /// Bytes of the longest beginning or continuation of a word.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Whether there are phrases to look for.
    pub(crate) fn has_phrases(&self) -> bool {
        self.has_phrases
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }
}

/// The half of a hash that does not choose the slot.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_do_not_meet() {
        let vocabulary =
            Vocabulary::parse("pull\n##pull\nrequest\npull request\n#".into(), 5).unwrap();
        assert_eq!(vocabulary.get(Key::Word(b"pull")), Some(0));
        assert_eq!(vocabulary.get(Key::Continuation(b"pull")), Some(1));
        assert_eq!(vocabulary.get(Key::Continuation(b"request")), None);
        assert_eq!(vocabulary.get(Key::Phrase(b"pull", b"request")), Some(3));
        assert_eq!(vocabulary.get(Key::Phrase(b"request", b"pull")), None);
        assert_eq!(vocabulary.get(Key::Word(b"pull request")), None);
        assert_eq!(vocabulary.entry(3), "pull request");
        assert_eq!((vocabulary.longest(), vocabulary.has_phrases()), (7, true));
    }

    #[test]
    fn every_entry_of_a_large_vocabulary_is_found_and_nothing_else() {
        let entries: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
        let vocabulary = Vocabulary::parse(entries.join("\n").into(), 5_000).unwrap();
        for (row, entry) in entries.iter().enumerate() {
            assert_eq!(vocabulary.get(Key::Word(entry.as_bytes())), Some(row as u32));
            assert_eq!(vocabulary.get(Key::Continuation(entry.as_bytes())), None);
        }
        assert!(!vocabulary.has_phrases());
    }

    #[test]
    fn entries_and_rows_must_match_and_no_entry_be_twice() {
        assert_eq!(
            Vocabulary::parse("a\nb".into(), 3).err().unwrap(),
            Error::VocabularyLength { entries: 2, rows: 3 }
        );
        assert_eq!(
            Vocabulary::parse("a\nb\na".into(), 3).err().unwrap(),
            Error::Twice { entry: "a".into() }
        );
    }
}
