//! A tiny encoder with pseudo-random weights, for tests.

use std::borrow::Cow;

use super::Encoder;

pub(super) const ENTRIES: [&str; 20] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "send", "##ing", "##s", "message", "file", "read", "a",
    "b", "##b", "##c", ".", "_", "搜", "索", "caf", "##e",
];
const LAYERS: usize = 1;
const HIDDEN: usize = 32;
const HEADS: usize = 2;
const FFN: usize = 64;
pub(super) const POSITIONS: usize = 40;
pub(super) const GENERAL_TYPES: [&str; 2] = ["search", "shell"];
pub(super) const PROTOTYPES: usize = 3;

/// Appends sections of pseudo-random numbers to a file.
struct Writer {
    file: Vec<u8>,
    state: u64,
}

impl Writer {
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 24
    }

    fn pad(&mut self) {
        self.file.resize(self.file.len().next_multiple_of(64), 0);
    }

    fn codes(&mut self, count: usize) {
        for _ in 0..count {
            let code = self.next() as u8;
            self.file.push(code);
        }
        self.pad();
    }

    /// Appends floats around `centre`.
    fn floats(&mut self, counts: &[(usize, f32)]) {
        for (count, centre) in counts {
            for _ in 0..*count {
                let number = centre + (self.next() % 1000) as f32 / 20_000.0;
                self.file.extend(number.to_le_bytes());
            }
        }
        self.pad();
    }

    fn matrix(&mut self, inputs: usize, outputs: usize) {
        self.floats(&[(outputs, 0.0)]);
        self.floats(&[(outputs, -0.02)]);
        self.codes(inputs * outputs);
    }
}

pub(super) fn bytes() -> Vec<u8> {
    let text = ENTRIES.join("\n");
    let names = GENERAL_TYPES.join("\n");
    let types = GENERAL_TYPES.len();
    let mut writer = Writer { file: b"TCRIBEN2".to_vec(), state: 0x9e37_79b9_7f4a_7c15 };
    let words = [ENTRIES.len(), POSITIONS, text.len()];
    let general = [types, names.len(), PROTOTYPES];
    for number in [LAYERS, HIDDEN, HEADS, FFN].into_iter().chain(words).chain(general) {
        writer.file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    writer.file.extend([7; 16]);
    writer.pad();
    writer.file.extend(text.as_bytes());
    writer.pad();
    let norm = [(HIDDEN, 1.0), (HIDDEN, 0.0)];
    writer.floats(&[(ENTRIES.len(), 0.0)]);
    writer.floats(&[(POSITIONS * HIDDEN, -0.02)]);
    writer.floats(&norm);
    for _ in 0..LAYERS {
        writer.matrix(HIDDEN, 3 * HIDDEN);
        writer.matrix(HIDDEN, HIDDEN);
        writer.floats(&norm);
        writer.matrix(HIDDEN, FFN);
        writer.matrix(FFN, HIDDEN);
        writer.floats(&norm);
    }
    writer.codes(ENTRIES.len() * HIDDEN);
    writer.file.extend(names.as_bytes());
    writer.pad();
    writer.floats(&[(types * (HIDDEN + 1), 0.1)]);
    writer.floats(&[(types * (HIDDEN + 1), -0.1)]);
    writer.floats(&[(types * PROTOTYPES, 0.1)]);
    writer.codes(PROTOTYPES * HIDDEN);
    writer.file
}

pub(super) fn encoder() -> Encoder {
    Encoder::parse(Cow::Owned(bytes())).unwrap()
}
