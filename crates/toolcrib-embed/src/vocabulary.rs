//! The vocabulary: which row of the table each piece has.
//!
//! There are three kinds of entries: `issue` is the beginning of a word, `##s` the continuation of a word, and
//! `pull request` a phrase of two words. A lookup does not allocate: keys are hashed and compared by their
//! parts. Rejected: a `HashMap`, because it would have to own every key, and thirty thousand small allocations
//! would dominate the startup time.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::Error;

/// The key of a lookup.
#[derive(Clone, Copy)]
pub(crate) enum PieceKey<'a> {
    /// The beginning of a word.
    Word(&'a [u8]),
    /// A later piece of a word.
    Continuation(&'a [u8]),
    /// Two adjacent words.
    Phrase(&'a [u8], &'a [u8]),
}

impl<'a> PieceKey<'a> {
    /// Returns the key of a vocabulary entry.
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

    fn matches(self, entry: &str) -> bool {
        match (self, PieceKey::of(entry)) {
            (Self::Word(a), PieceKey::Word(b))
            | (Self::Continuation(a), PieceKey::Continuation(b)) => a == b,
            (Self::Phrase(a, b), PieceKey::Phrase(c, d)) => a == c && b == d,
            _ => false,
        }
    }
}

/// A slot of the hash table: the upper half of the hash, and the row. The row of a free slot is [`FREE`].
#[derive(Clone, Copy)]
struct HashSlot {
    tag: u32,
    row: u32,
}

const FREE: u32 = u32::MAX;

/// The entries, and a hash table from entry to row.
#[derive(Clone)]
pub(crate) struct PieceVocabulary {
    /// All entries, joined by newlines.
    text: Cow<'static, str>,
    /// The offset of each entry in `text`, and one more offset, at which the next entry would begin.
    starts: Vec<u32>,
    slots: Vec<HashSlot>,
    /// Length of the longest beginning or continuation of a word, in bytes. Longer pieces are not looked up.
    longest_piece: usize,
    has_phrases: bool,
}

impl PieceVocabulary {
    /// Parses a vocabulary with one entry per line and one line for each of the `rows`.
    pub(crate) fn parse(text: Cow<'static, str>, rows: usize) -> Result<Self, Error> {
        let entries = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        if entries != rows {
            return Err(Error::VocabularyLength { entries, rows });
        }
        // The hash table is at most half full, so that a miss needs few probes.
        let free = HashSlot { tag: 0, row: FREE };
        let mut vocabulary = Self {
            text: Cow::Borrowed(""),
            starts: Vec::with_capacity(rows + 1),
            slots: vec![free; (rows * 2).next_power_of_two()],
            longest_piece: 0,
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
        let key = PieceKey::of(self.entry(row));
        let hash = key.hash();
        let mut at = self.slot(hash);
        while self.slots[at].row != FREE {
            if self.slots[at].tag == tag(hash) && key.matches(self.entry(self.slots[at].row)) {
                return Err(Error::DuplicateEntry { entry: self.entry(row).to_owned() });
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        match key {
            PieceKey::Word(piece) | PieceKey::Continuation(piece) => {
                self.longest_piece = self.longest_piece.max(piece.len());
            }
            PieceKey::Phrase(..) => self.has_phrases = true,
        }
        self.slots[at] = HashSlot { tag: tag(hash), row };
        Ok(())
    }

    /// Returns the row of `key`, or `None` if the vocabulary does not contain it.
    pub(crate) fn get(&self, key: PieceKey<'_>) -> Option<u32> {
        let hash = key.hash();
        let mut at = self.slot(hash);
        loop {
            let slot = self.slots[at];
            if slot.row == FREE {
                return None;
            }
            if slot.tag == tag(hash) && key.matches(self.entry(slot.row)) {
                return Some(slot.row);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Returns the vocabulary entry of a row.
    pub(crate) fn entry(&self, row: u32) -> &str {
        let row = row as usize;
        &self.text[self.starts[row] as usize..self.starts[row + 1] as usize - 1]
    }

    /// Returns the length of the longest beginning or continuation of a word, in bytes.
    pub(crate) fn longest_piece(&self) -> usize {
        self.longest_piece
    }

    /// Whether any entry is a phrase.
    pub(crate) fn has_phrases(&self) -> bool {
        self.has_phrases
    }

    fn slot(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }
}

/// Returns the upper half of a hash, which a slot stores for comparison. The lower bits of the hash choose the slot.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_kinds_of_entries_are_kept_apart() {
        let vocabulary =
            PieceVocabulary::parse("pull\n##pull\nrequest\npull request\n#".into(), 5).unwrap();
        assert_eq!(vocabulary.get(PieceKey::Word(b"pull")), Some(0));
        assert_eq!(vocabulary.get(PieceKey::Continuation(b"pull")), Some(1));
        assert_eq!(vocabulary.get(PieceKey::Continuation(b"request")), None);
        assert_eq!(vocabulary.get(PieceKey::Phrase(b"pull", b"request")), Some(3));
        assert_eq!(vocabulary.get(PieceKey::Phrase(b"request", b"pull")), None);
        assert_eq!(vocabulary.get(PieceKey::Word(b"pull request")), None);
        assert_eq!(vocabulary.entry(3), "pull request");
        assert_eq!((vocabulary.longest_piece(), vocabulary.has_phrases()), (7, true));
    }

    #[test]
    fn every_entry_of_a_large_vocabulary_is_found_and_nothing_else() {
        let entries: Vec<String> = (0..5_000).map(|n| format!("w{n}")).collect();
        let vocabulary = PieceVocabulary::parse(entries.join("\n").into(), 5_000).unwrap();
        for (row, entry) in entries.iter().enumerate() {
            assert_eq!(vocabulary.get(PieceKey::Word(entry.as_bytes())), Some(row as u32));
            assert_eq!(vocabulary.get(PieceKey::Continuation(entry.as_bytes())), None);
        }
        assert!(!vocabulary.has_phrases());
    }

    #[test]
    fn a_wrong_number_of_entries_or_a_duplicate_is_rejected() {
        assert_eq!(
            PieceVocabulary::parse("a\nb".into(), 3).err().unwrap(),
            Error::VocabularyLength { entries: 2, rows: 3 }
        );
        assert_eq!(
            PieceVocabulary::parse("a\nb\na".into(), 3).err().unwrap(),
            Error::DuplicateEntry { entry: "a".into() }
        );
    }
}
