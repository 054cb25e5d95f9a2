//! The needs of a request: "Find the invoice of May. Convert it to PDF. Mail it to Ann." wants three tools.
//!
//! One vector of a long request is the mean of what it asks for, and near to none of it. So each need gets
//! a vector of its own, and a tool counts as near when it is near to one of them. Sentences are needs; a
//! long sentence is parted at commas and at the words that join clauses.

/// A sentence with more words than this is parted.
const LONG: usize = 20;
/// What is shorter, in words, is no need of its own.
const SHORT: usize = 3;
/// Words a clause has at least; what is shorter joins the next.
const CLAUSE: usize = 5;
/// Needs that are looked at; each costs a comparison with every candidate.
const MOST: usize = 8;
/// Words that begin a clause.
const JOINING: [&str; 6] = ["and", "then", "also", "additionally", "finally", "plus"];

/// The needs of a request, where it has several; none otherwise.
pub(super) fn of(text: &str) -> Vec<String> {
    let mut needs = Vec::new();
    for sentence in sentences(text) {
        if sentence.split_whitespace().count() > LONG {
            clauses(sentence, &mut needs);
        } else {
            needs.push(sentence.to_owned());
        }
    }
    needs.retain(|need| need.split_whitespace().count() >= SHORT);
    if needs.len() < 2 {
        needs.clear();
    }
    needs.truncate(MOST);
    needs
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

fn clauses(sentence: &str, needs: &mut Vec<String>) {
    let first = needs.len();
    let mut clause = String::new();
    let mut words = 0;
    for word in sentence.split_whitespace() {
        let joins = JOINING.iter().any(|joining| word.eq_ignore_ascii_case(joining));
        if joins && words >= CLAUSE {
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
        if word.ends_with([',', ':']) && words >= CLAUSE {
            needs.push(std::mem::take(&mut clause));
            words = 0;
        }
    }
    // A short end belongs to the clause before it.
    if words < CLAUSE && needs.len() > first {
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

    #[test]
    fn one_sentence_is_one_need_and_needs_no_parting() {
        for text in ["", "list open issues", "What is 3.5 % of 1,200? Thanks!", "find it. mail it."]
        {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn sentences_are_needs() {
        assert_eq!(
            of("Find the invoice of May. Convert it to PDF\nMail it to v1.2@acme.io; then log off"),
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
            of(text),
            [
                "I am planning a trip to Lisbon next month,",
                "so find a cheap flight from Oslo",
                "book a hotel near the old town for four nights, please do",
            ]
        );
    }

    #[test]
    fn there_is_a_bound() {
        assert_eq!(of(&"read the next page. ".repeat(50)).len(), MOST);
    }
}
