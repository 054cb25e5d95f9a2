//! Tests of the encoder with tiny weights: untrusted texts, ranges and files, and equal bits on all kernels.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::synthetic::{self, ENTRIES, GENERAL_TYPES, POSITIONS, PROTOTYPES};
use super::*;
use crate::LinearProbe;

static ENCODER: LazyLock<Encoder> = LazyLock::new(synthetic::encoder);

/// Returns the tokens of a text as `entry@bytes`.
fn tokens(text: &str) -> Vec<String> {
    let spelled = |token: Token| format!("{}@{}", ENTRIES[token.id as usize], &text[token.range]);
    ENCODER.tokens(text, 40).into_iter().map(spelled).collect()
}

fn parse(bytes: Vec<u8>) -> Result<Encoder, Error> {
    Encoder::parse(Cow::Owned(bytes))
}

/// Returns the file with the number at position `at` of its header replaced.
fn with_header(at: usize, number: u32) -> Vec<u8> {
    let mut file = synthetic::bytes();
    file[8 + at * 4..][..4].copy_from_slice(&number.to_le_bytes());
    file
}

#[test]
fn words_are_split_into_the_longest_pieces() {
    assert_eq!(tokens("sending Files."), ["send@send", "##ing@ing", "file@File", "##s@s", ".@."]);
    assert_eq!(tokens("read_file"), ["read@read", "_@_", "file@file"]);
    assert_eq!(tokens("ab abx\ta"), ["a@a", "##b@b", "[UNK]@abx", "a@a"]);
}

#[test]
fn accents_and_control_characters_are_dropped() {
    assert_eq!(tokens("CAFÉ"), ["caf@CAF", "##e@É"]);
    assert_eq!(tokens("cafe\u{301} a"), ["caf@caf", "##e@e", "a@a"]);
    assert_eq!(tokens("re\u{0}a\u{200d}d"), ["read@re\u{0}a\u{200d}d"]);
    assert_eq!(tokens("re\u{b}ad\u{a0}a"), ["read@re\u{b}ad", "a@a"]);
}

#[test]
fn each_ideograph_is_a_word() {
    assert_eq!(tokens("a搜索b"), ["a@a", "搜@搜", "索@索", "b@b"]);
}

#[test]
fn special_tokens_in_the_text_have_no_special_meaning() {
    assert!(!tokens("[SEP] [CLS]").iter().any(|token| token.starts_with("[SEP]@")));
}

#[test]
fn a_word_of_more_than_100_characters_is_unknown() {
    let word = "a".to_owned() + &"b".repeat(99);
    let known = ENCODER.tokens(&word, usize::MAX);
    assert_eq!(known.len(), POSITIONS - SPECIAL);
    let longer = word + "b a";
    assert_eq!(tokens(&longer), [&format!("[UNK]@{}", &longer[..101]), "a@a"]);
}

#[test]
fn the_text_is_cut_to_the_maximum_number_of_tokens() {
    let text = "read a file. ".repeat(1_000_000);
    for (max, tokens) in [(0, 2), (2, 2), (3, 3), (10, 10), (usize::MAX, POSITIONS)] {
        let encoded = ENCODER.embed(&text, max, &[]);
        assert_eq!((encoded.tokens, encoded.unknown), (tokens, 0));
    }
    assert_eq!(ENCODER.embed(&" ".repeat(1 << 24), 10, &[]).tokens, 2);
    assert_eq!(ENCODER.embed(&"x".repeat(1 << 24), 10, &[]).unknown, 1);
}

#[test]
fn a_part_without_tokens_has_no_vector() {
    let reversed = Range { start: 9, end: 5 };
    let parts = [0..4, 5..9, 0..0, 6..9, 9..100, 100..200, reversed];
    let encoded = ENCODER.embed("read file", 10, &parts);
    let present: Vec<bool> = encoded.parts.iter().map(Option::is_some).collect();
    assert_eq!(present, [true, true, false, false, false, false, false]);
    assert_ne!(encoded.parts[0], encoded.parts[1]);
    // The second word is cut off.
    let encoded = ENCODER.embed("read file", 3, &parts);
    assert!(encoded.parts[0].is_some() && encoded.parts[1].is_none());
}

#[test]
fn vectors_have_the_dimensions_of_the_index() {
    let mut index = ENCODER.new_index();
    index.push(&ENCODER.embed("read", 10, &[]).whole.quantised());
    let query = ENCODER.embed("read", 10, &[]).whole.quantised();
    assert!((index.dot(0, &query) - 1.0).abs() < 0.02);
    assert_eq!((ENCODER.dims(), ENCODER.id()), (32, &[7; 16]));
}

#[test]
fn a_file_of_another_length_is_rejected() {
    let whole = synthetic::bytes();
    for length in 0..whole.len() {
        let error = parse(whole[..length].to_vec()).unwrap_err();
        let needed = whole.len() as u64;
        let expected = match length {
            ..64 => Error::NotAnEncoder,
            _ => Error::EncoderLength { needed, found: length as u64 },
        };
        assert_eq!(error, expected, "truncated to {length}");
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert!(matches!(parse(longer), Err(Error::EncoderLength { .. })));
}

#[test]
fn unsupported_sizes_are_rejected() {
    for (at, number) in [(0, 0), (0, 65), (1, 0), (1, 24), (1, 8192), (2, 0), (2, 3), (2, u32::MAX)]
        .into_iter()
        .chain([(3, 0), (3, 40), (3, u32::MAX), (4, 0), (4, u32::MAX), (5, 1), (6, u32::MAX)])
        .chain([(7, 65), (7, u32::MAX), (8, 4097), (8, u32::MAX), (9, 16_385), (9, u32::MAX)])
        // Prototypes without types of general tools.
        .chain([(7, 0)])
    {
        let error = parse(with_header(at, number)).unwrap_err();
        assert!(matches!(error, Error::EncoderShape { .. }), "{at}, {number}: {error}");
    }
}

#[test]
fn the_vocabulary_must_have_the_special_tokens_and_the_right_length() {
    let mut file = synthetic::bytes();
    let at = file.windows(5).position(|bytes| bytes == b"[SEP]").unwrap();
    file[at + 1] = b'X';
    assert_eq!(parse(file.clone()).unwrap_err(), Error::MissingEntry { entry: "[SEP]" });
    file[at] = b'\n';
    assert_eq!(parse(file.clone()).unwrap_err(), Error::VocabularyLength { entries: 21, rows: 20 });
    file[at] = 0xff;
    assert!(matches!(parse(file).unwrap_err(), Error::VocabularyNotUtf8 { .. }));
}

#[test]
fn numbers_must_be_finite() {
    let mut file = synthetic::bytes();
    let scales = 64 + ENTRIES.join("\n").len().next_multiple_of(64);
    file[scales + 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(parse(file).unwrap_err(), Error::NotFinite { part: "word scales", index: 1 });
}

#[test]
fn the_types_of_general_tools_have_names_and_classifiers() {
    let names: Vec<&str> =
        ENCODER.general_types().as_slice().iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, GENERAL_TYPES);
    let vector = ENCODER.embed("read", 10, &[]).whole.quantised();
    let requests = ENCODER.general_types().request_probabilities(&vector);
    assert_eq!(requests.len(), GENERAL_TYPES.len());
    for (one, with_prototypes) in ENCODER.general_types().as_slice().iter().zip(requests) {
        let probability = |probe: &LinearProbe| probe.probability(vector.dot(probe.direction()));
        assert!(probability(&one.request) > probability(&one.tool));
        assert_eq!(one.prototype_weights.len(), PROTOTYPES);
        assert!(with_prototypes > probability(&one.request), "their weights are positive");
    }
}

#[test]
fn a_file_may_have_no_prototypes_and_no_types() {
    let section = |bytes: usize| bytes.next_multiple_of(64);
    let prototypes = section(2 * PROTOTYPES * 4) + section(PROTOTYPES * 32);
    let mut file = with_header(9, 0);
    file.truncate(file.len() - prototypes);
    let types = parse(file.clone()).unwrap();
    assert_eq!(types.general_types().as_slice().len(), 2);
    assert!(types.general_types().as_slice().iter().all(|one| one.prototype_weights.is_empty()));

    // A file without types ends after the word embeddings.
    file[8 + 7 * 4..][..4].copy_from_slice(&0_u32.to_le_bytes());
    file.truncate(file.len() - 64 - 2 * section(2 * 33 * 4));
    assert!(parse(file).unwrap().general_types().as_slice().is_empty());
}

#[test]
fn each_type_of_general_tool_must_have_a_name() {
    let mut file = synthetic::bytes();
    let at = file.windows(6).rposition(|bytes| bytes == b"search").unwrap();
    for (offset, byte) in [(6, b' '), (0, b'\n'), (0, 0x1b), (0, 0xff)] {
        let before = std::mem::replace(&mut file[at + offset], byte);
        assert!(matches!(parse(file.clone()).unwrap_err(), Error::EncoderShape { .. }));
        file[at + offset] = before;
    }
}

/// Generates texts of known words mixed with arbitrary text.
fn text() -> impl Strategy<Value = String> {
    let known = prop_oneof![Just("sending"), Just("Message."), Just("read_file"), Just("搜索")];
    let part = prop_oneof![known.prop_map(str::to_owned), any::<String>(), "\\PC{0,8}"];
    proptest::collection::vec(part, 0..12).prop_map(|parts| parts.join(" "))
}

fn is_normalised(vector: &Vector) -> bool {
    vector.is_zero() || (vector.dot(vector) - 1.0).abs() < 1e-4
}

proptest! {
    #[test]
    fn every_kernel_gives_the_same_vectors_for_any_input(
        text in text(),
        max_tokens in 0_usize..50,
        ranges in proptest::collection::vec((0_usize..80, 0_usize..80), 0..6),
    ) {
        let ranges: Vec<Range<usize>> = ranges.into_iter().map(|(start, end)| start..end).collect();
        let encoded = ENCODER.embed(&text, max_tokens, &ranges);
        prop_assert_eq!(encoded.tokens, ENCODER.tokens(&text, max_tokens).len() + 2);
        prop_assert_eq!(encoded.parts.len(), ranges.len());
        for vector in encoded.parts.iter().flatten().chain([&encoded.whole]) {
            prop_assert!(is_normalised(vector) && !vector.is_zero());
        }
        for (kernel, encoder) in ENCODER.with_each_kernel() {
            prop_assert_eq!(&encoder.embed(&text, max_tokens, &ranges), &encoded, "{}", kernel);
        }
    }

    #[test]
    fn tokens_cover_increasing_ranges_of_the_text(text in text(), max_tokens in 0_usize..50) {
        let mut before = 0..0;
        for token in ENCODER.tokens(&text, max_tokens) {
            prop_assert!(text.get(token.range.clone()).is_some_and(|bytes| !bytes.is_empty()));
            prop_assert!(token.range.start >= before.start && token.range.end >= before.end);
            prop_assert!((token.id as usize) < ENTRIES.len());
            before = token.range;
        }
    }

    #[test]
    fn a_damaged_file_is_rejected_or_works(
        at in 0..synthetic::bytes().len(),
        damage in proptest::collection::vec(any::<u8>(), 1..99),
    ) {
        let mut file = synthetic::bytes();
        for (byte, damage) in file[at..].iter_mut().zip(damage) {
            *byte = damage;
        }
        if let Ok(encoder) = parse(file) {
            prop_assert!(is_normalised(&encoder.embed("sends a message", 40, &[]).whole));
        }
    }

    #[test]
    fn a_damaged_header_is_rejected_or_works(header in any::<[u8; 36]>(), at in 0_usize..36) {
        let mut file = synthetic::bytes();
        file[8 + at..44].copy_from_slice(&header[at..]);
        if let Ok(encoder) = parse(file) {
            encoder.embed("sends a message", 40, &[]);
        }
    }

    #[test]
    fn bytes_without_the_magic_are_rejected(bytes in any::<Vec<u8>>()) {
        prop_assert_eq!(parse(bytes).unwrap_err(), Error::NotAnEncoder);
    }
}
