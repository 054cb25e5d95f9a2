//! Finds the related terms of each term in the vocabulary. This happens once, when the index is built.

use rustc_hash::FxHashMap;

use super::index::Term;
use super::query_plan::TermMatch;
use crate::text::related;

/// Minimum length, in bytes, of the prefix that two related terms have in common.
const MIN_COMMON_PREFIX_BYTES: usize = 5;

/// For each term, returns its synonyms in the vocabulary, followed by the terms with a common prefix.
pub(super) fn find_all(
    terms: &FxHashMap<Box<str>, Term>,
    sorted: &[(Box<str>, Term)],
) -> FxHashMap<Term, Box<[(Term, TermMatch)]>> {
    let mut all = FxHashMap::default();
    // In the sorted vocabulary, terms that start with the same bytes are adjacent.
    let same_root = |a: &(Box<str>, Term), b: &(Box<str>, Term)| {
        let root = |text: &str| text.as_bytes().first_chunk::<MIN_COMMON_PREFIX_BYTES>().copied();
        root(&a.0).is_some() && root(&a.0) == root(&b.0)
    };
    for family in sorted.chunk_by(same_root) {
        for (text, term) in family {
            let synonyms = related(text).iter().filter_map(|s| terms.get(s.as_str()));
            let mut list: Vec<(Term, TermMatch)> =
                synonyms.map(|s| (*s, TermMatch::Synonym)).collect();
            for (other, relative) in family {
                if are_relatives(text, other) && !list.iter().any(|(known, _)| known == relative) {
                    list.push((*relative, TermMatch::Prefix));
                }
            }
            if !list.is_empty() {
                all.insert(*term, list.into_boxed_slice());
            }
        }
    }
    all
}

/// Whether two terms are forms of one word that the stemmer does not map to the same stem. Such terms differ only in
/// their last letters, like `analysi` and `analyst`.
pub(super) fn are_relatives(a: &str, b: &str) -> bool {
    let plain = |text: &str| {
        text.len() >= MIN_COMMON_PREFIX_BYTES && text.bytes().all(|b| b.is_ascii_lowercase())
    };
    if a == b || !plain(a) || !plain(b) {
        return false;
    }
    let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    common >= MIN_COMMON_PREFIX_BYTES && long - common <= 7 && short - common <= 1
}

#[cfg(test)]
mod tests {
    use super::are_relatives;

    #[test]
    fn only_forms_of_one_word_are_relatives() {
        assert!(are_relatives("relat", "relationship") && are_relatives("convers", "convert"));
        for (a, b) in [
            ("issue", "issue"),
            ("convers", "conveyor"),
            ("form", "format"),
            ("contract", "contrast"),
        ] {
            assert!(!are_relatives(a, b), "{a} {b}");
        }
    }
}
