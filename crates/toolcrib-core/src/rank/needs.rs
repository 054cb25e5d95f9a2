//! Splits a request into needs: "Find the invoice of May. Convert it to PDF. Mail it to Ann." needs three tools.
//!
//! The vector of a long request is the average of everything that it asks for, and is not similar to any single part.
//! So each need gets its own vector, and a tool is similar to the request if it is similar to one of the needs. Each
//! sentence is a need, and a long sentence is split at commas and conjunctions. If the result is a single need, the
//! request is split into shorter clauses of at least two words, which are used only for the coverage bonus.

use std::ops::Range;

/// A sentence with more words than this is split into clauses.
const LONG_SENTENCE_WORDS: usize = 20;
/// Minimum number of words in an independent need. A shorter sentence is not a need.
const MIN_NEED_WORDS: usize = 3;
/// Minimum number of words in a clause of a long sentence. A shorter clause is joined with the next one.
const MIN_CLAUSE_WORDS: usize = 5;
/// Minimum number of words in a clause of a request with a single need. An example with two words is "mail it".
const MIN_SHORT_CLAUSE_WORDS: usize = 2;
/// Maximum number of needs. There is a maximum because each need is compared with every candidate.
const MAX_NEEDS: usize = 8;
/// Words that begin a clause.
const CONJUNCTIONS: [&str; 6] = ["and", "then", "also", "additionally", "finally", "plus"];

/// The needs of a request. Empty if the request cannot be split.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Where each need is in the text of the request, in bytes.
    pub(super) ranges: Vec<Range<usize>>,
    /// Whether the needs are sentences or clauses of long sentences. If so, each need describes the tool that it asks
    /// for better than the entire request does. Otherwise the needs are short clauses.
    pub(super) independent: bool,
}

pub(super) fn split(text: &str) -> Needs {
    let mut ranges = Vec::new();
    for sentence in sentences(text) {
        if word_count(&text[sentence.clone()]) > LONG_SENTENCE_WORDS {
            clauses(text, sentence, MIN_CLAUSE_WORDS, &mut ranges);
        } else {
            ranges.push(sentence);
        }
    }
    ranges.retain(|need| word_count(&text[need.clone()]) >= MIN_NEED_WORDS);
    let independent = ranges.len() > 1;
    if !independent {
        ranges.clear();
        let least = MIN_SHORT_CLAUSE_WORDS;
        sentences(text).for_each(|sentence| clauses(text, sentence, least, &mut ranges));
        ranges.retain(|need| word_count(&text[need.clone()]) >= MIN_SHORT_CLAUSE_WORDS);
    }
    if ranges.len() < 2 {
        return Needs::default();
    }
    ranges.truncate(MAX_NEEDS);
    Needs { ranges, independent }
}

fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Splits at line breaks, and at punctuation that ends a sentence and is followed by white space. Numbers and names
/// that contain a full stop are not split.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut before = ' ';
    let mut end = 0;
    text.split_inclusive(move |c: char| {
        let ended = c == '\n' || c.is_whitespace() && matches!(before, '.' | '!' | '?' | ';');
        before = c;
        ended
    })
    .map(move |sentence| {
        end += sentence.len();
        let start = end - sentence.trim_start().len();
        start..start + sentence.trim().len()
    })
    .filter(|sentence| !sentence.is_empty())
}

/// Splits a sentence into clauses of at least `least` words, and adds them to `needs`. A conjunction between two clauses
/// belongs to neither.
fn clauses(text: &str, sentence: Range<usize>, least: usize, needs: &mut Vec<Range<usize>>) {
    let first = needs.len();
    // The current clause, and its number of words without conjunctions.
    let mut clause: Option<Range<usize>> = None;
    let mut words = 0;
    for word in text[sentence.clone()].split_whitespace() {
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        let end = start + word.len();
        let joins = CONJUNCTIONS.iter().any(|joining| word.eq_ignore_ascii_case(joining));
        if joins {
            if words >= least {
                needs.extend(clause.take());
                words = 0;
            }
            continue;
        }
        clause = Some(clause.map_or(start, |clause| clause.start)..end);
        words += 1;
        if word.ends_with([',', ':']) && words >= least {
            needs.extend(clause.take());
            words = 0;
        }
    }
    let Some(clause) = clause else { return };
    // If the last clause is too short, it is joined with the one before it.
    match needs[first..].last_mut() {
        Some(last) if words < least => last.end = clause.end,
        _ => needs.push(clause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, needs: &Needs) -> Vec<String> {
        needs.ranges.iter().map(|range| text[range.clone()].to_owned()).collect()
    }

    fn independent_needs(text: &str) -> Vec<String> {
        let needs = split(text);
        assert!(needs.independent, "{needs:?}");
        texts(text, &needs)
    }

    #[test]
    fn a_single_need_is_not_split() {
        for text in ["", "list open issues", "What is 3.5 % of 1,200? Thanks!", "black and white"] {
            assert_eq!(split(text), Needs::default(), "{text}");
        }
    }

    #[test]
    fn the_clauses_of_a_short_request_are_not_independent() {
        for (text, needs) in [
            (
                "find the invoice, convert it to PDF and mail it",
                &["find the invoice,", "convert it to PDF", "mail it"][..],
            ),
            ("find it. mail it.", &["find it.", "mail it."]),
            ("book a flight and a hotel", &["book a flight", "a hotel"]),
            ("list users, please", &[]),
        ] {
            let found = split(text);
            assert_eq!(
                (texts(text, &found), found.independent),
                (needs.iter().map(|need| (*need).to_owned()).collect(), false),
                "{text}"
            );
        }
    }

    #[test]
    fn each_sentence_is_a_need() {
        assert_eq!(
            independent_needs(
                "Find the invoice of May. Convert it to PDF\nMail it to v1.2@acme.io; then log off"
            ),
            [
                "Find the invoice of May.",
                "Convert it to PDF",
                "Mail it to v1.2@acme.io;",
                "then log off"
            ]
        );
    }

    #[test]
    fn a_long_sentence_is_split_into_clauses() {
        let text = "I am planning a trip to Lisbon next month, so find a cheap flight from Oslo and \
                    then book a hotel near the old town for four nights, please do";
        assert_eq!(
            independent_needs(text),
            [
                "I am planning a trip to Lisbon next month,",
                "so find a cheap flight from Oslo",
                "book a hotel near the old town for four nights, please do",
            ]
        );
    }

    #[test]
    fn the_number_of_needs_is_limited() {
        assert_eq!(split(&"read the next page. ".repeat(50)).ranges.len(), MAX_NEEDS);
    }
}
