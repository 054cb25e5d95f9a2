//! The needs of a request: "Find the invoice of May. Convert it to PDF. Mail it to Ann." wants three tools.
//!
//! One vector of a long request is the mean of what it asks for, and near to none of it. So each need gets
//! a vector of its own, and a tool counts as near when it is near to one of them. Sentences are needs; a
//! long sentence is parted at commas and at the words that join clauses. A request that has one need by
//! that says best as a whole what it is about; its clauses, of two words even, only tell which hits serve
//! something else.

/// A sentence with more words than this is parted.
const LONG_SENTENCE_WORDS: usize = 20;
/// What is shorter, in words, is no need of its own.
const MIN_NEED_WORDS: usize = 3;
/// Words that a clause of a long sentence has at least; what is shorter joins the next.
const MIN_CLAUSE_WORDS: usize = 5;
/// The same where a request is one need otherwise: "mail it".
const MIN_SHORT_CLAUSE_WORDS: usize = 2;
/// Needs that are looked at; each costs a comparison with every candidate.
const MAX_NEEDS: usize = 8;
/// Words that begin a clause.
const CONJUNCTIONS: [&str; 6] = ["and", "then", "also", "additionally", "finally", "plus"];

/// The needs of a request, where it has several; none otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) texts: Vec<String>,
    /// Whether each is a sentence or a long clause, and says more by itself than the whole does.
    pub(super) independent: bool,
}

pub(super) fn split(text: &str) -> Needs {
    let mut texts = Vec::new();
    for sentence in sentences(text) {
        if word_count(sentence) > LONG_SENTENCE_WORDS {
            clauses(sentence, MIN_CLAUSE_WORDS, &mut texts);
        } else {
            texts.push(sentence.to_owned());
        }
    }
    texts.retain(|need| word_count(need) >= MIN_NEED_WORDS);
    let independent = texts.len() > 1;
    if !independent {
        texts.clear();
        sentences(text).for_each(|sentence| clauses(sentence, MIN_SHORT_CLAUSE_WORDS, &mut texts));
        texts.retain(|need| word_count(need) >= MIN_SHORT_CLAUSE_WORDS);
    }
    if texts.len() < 2 {
        return Needs::default();
    }
    texts.truncate(MAX_NEEDS);
    Needs { texts, independent }
}

fn word_count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// A full stop within a number or a name ends nothing: it is the blank after it that does.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut before = ' ';
    text.split_inclusive(move |c: char| {
        let ended = c == '\n' || c.is_whitespace() && matches!(before, '.' | '!' | '?' | ';');
        before = c;
        ended
    })
    .map(str::trim)
    .filter(|sentence| !sentence.is_empty())
}

/// Parts a sentence into clauses of at least so many words.
fn clauses(sentence: &str, least: usize, needs: &mut Vec<String>) {
    let first = needs.len();
    let mut clause = String::new();
    let mut words = 0;
    for word in sentence.split_whitespace() {
        let joins = CONJUNCTIONS.iter().any(|joining| word.eq_ignore_ascii_case(joining));
        if joins && words >= least {
            needs.push(std::mem::take(&mut clause));
            words = 0;
        }
        if joins {
            continue;
        }
        if !clause.is_empty() {
            clause.push(' ');
        }
        clause.push_str(word);
        words += 1;
        if word.ends_with([',', ':']) && words >= least {
            needs.push(std::mem::take(&mut clause));
            words = 0;
        }
    }
    // A short end belongs to the clause before it.
    if words < least && needs.len() > first {
        let last = needs.len() - 1;
        needs[last].push(' ');
        needs[last].push_str(&clause);
    } else {
        needs.push(clause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn independent_needs(text: &str) -> Vec<String> {
        let needs = split(text);
        assert!(needs.independent, "{needs:?}");
        needs.texts
    }

    #[test]
    fn one_need_is_not_parted() {
        for text in ["", "list open issues", "What is 3.5 % of 1,200? Thanks!", "black and white"] {
            assert_eq!(split(text), Needs::default(), "{text}");
        }
    }

    #[test]
    fn the_clauses_of_a_short_request_are_needs_that_do_not_stand_apart() {
        for (text, needs) in [
            (
                "find the invoice, convert it to PDF and mail it",
                &["find the invoice,", "convert it to PDF", "mail it"][..],
            ),
            ("find it. mail it.", &["find it.", "mail it."]),
            ("book a flight and a hotel", &["book a flight", "a hotel"]),
            ("list users, please", &[]),
        ] {
            let texts = needs.iter().map(|need| (*need).to_owned()).collect();
            assert_eq!(split(text), Needs { texts, independent: false }, "{text}");
        }
    }

    #[test]
    fn sentences_are_needs() {
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
    fn a_long_sentence_is_parted_where_clauses_join() {
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
    fn there_is_a_bound() {
        assert_eq!(split(&"read the next page. ".repeat(50)).texts.len(), MAX_NEEDS);
    }
}
