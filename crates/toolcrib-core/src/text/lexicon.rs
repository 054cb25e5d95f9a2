//! What we know about English words: stems, words that say nothing, words that say the same.
//!
//! The lists are ours and small. They were written from general knowledge of software and everyday
//! services, not from any test set, and each must earn its place on sets left out in turn.

use std::borrow::Cow;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use rustc_hash::{FxHashMap, FxHashSet};

/// Words without content. Neither the index nor a query keeps them.
const STOP: &str = include_str!("stop.txt");
/// Words of politeness and request. A tool may be about them, a query is not.
const FILLER: &str = include_str!("filler.txt");
/// Everyday words that rarely tell tools apart. They count half in a query.
const COMMON: &str = include_str!("common.txt");
/// Words of one meaning, a group a line.
const SYNONYMS: &str = include_str!("synonyms.txt");
/// More words that names are made of, to take run-together ones apart.
const PARTS: &str = include_str!("parts.txt");

type WordSet = LazyLock<FxHashSet<&'static str>>;
static STOP_SET: WordSet = LazyLock::new(|| STOP.split_whitespace().collect());
static FILLER_STEMS: LazyLock<FxHashSet<Cow<'static, str>>> =
    LazyLock::new(|| FILLER.split_whitespace().map(stem).collect());
static PART_SET: WordSet = LazyLock::new(|| {
    let lists = [SYNONYMS, COMMON, PARTS];
    lists.iter().flat_map(|list| list.split_whitespace()).filter(|word| word.len() > 2).collect()
});
static COMMON_SET: WordSet = LazyLock::new(|| COMMON.split_whitespace().collect());

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::new(Algorithm::English));

/// Stem to the stems of its synonyms, sorted.
static RELATED: LazyLock<FxHashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut related: FxHashMap<String, Vec<String>> = FxHashMap::default();
    for group in SYNONYMS.lines() {
        let stems: Vec<String> =
            group.split_whitespace().map(|word| stem(word).into_owned()).collect();
        for a in &stems {
            let others = related.entry(a.clone()).or_default();
            others.extend(stems.iter().filter(|b| *b != a).cloned());
        }
    }
    for others in related.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    related
});

/// Whether a word has no content.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP_SET.contains(word)
}

/// Whether a stem only asks politely.
pub(crate) fn is_filler(stem: &str) -> bool {
    FILLER_STEMS.contains(stem)
}

/// Whether a word is an everyday one.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON_SET.contains(word)
}

/// The stems of the words that mean the same as this stem.
pub(crate) fn related(stem: &str) -> &'static [String] {
    RELATED.get(stem).map_or(&[], Vec::as_slice)
}

/// The stem of a folded word. Words of other scripts, numbers and the shortest words are their own.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    ENGLISH.stem(word)
}

/// The words a run-together name is made of: `airqualityforecast` is `air`, `quality`, `forecast`.
///
/// Only words we know take part, and only if they cover the whole: the fewest that do. The
/// catalog's own vocabulary would find a few more, but then a tool hidden from a caller could
/// change how a visible one is found.
pub(crate) fn split_compound(word: &str) -> Vec<&str> {
    const LONGEST: usize = 14;
    let plausible = (7..=40).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    if !plausible || PART_SET.contains(word) {
        return Vec::new();
    }
    // For every end, the fewest words that reach it and where the last of them begins.
    let mut best: Vec<Option<(u8, usize)>> = vec![None; word.len() + 1];
    best[0] = Some((0, 0));
    for end in 3..=word.len() {
        for start in end.saturating_sub(LONGEST)..=end - 3 {
            let Some((words, _)) = best[start] else { continue };
            let fewer = best[end].is_none_or(|(known, _)| words + 1 < known);
            if fewer && PART_SET.contains(&word[start..end]) {
                best[end] = Some((words + 1, start));
            }
        }
    }
    let mut parts = Vec::new();
    let mut end = word.len();
    while let Some((_, start)) = best[end].filter(|_| end > 0) {
        parts.push(&word[start..end]);
        end = start;
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet_in_its_stem() {
        for (a, b) in [("issues", "issue"), ("creating", "create"), ("repositories", "repository")]
        {
            assert_eq!(stem(a), stem(b));
        }
        assert_eq!(stem("s3"), "s3");
        assert_eq!(stem("搜索"), "搜索");
    }

    #[test]
    fn actions_know_their_synonyms() {
        let knows = |a: &str, b: &str| related(&stem(a)).contains(&stem(b).into_owned());
        assert!(knows("create", "add") && knows("make", "create"));
        assert!(knows("stop", "terminate") && knows("remove", "delete"));
        assert!(!knows("create", "delete"));
    }

    #[test]
    fn names_run_together_come_apart_into_words_we_know() {
        assert_eq!(split_compound("airqualityforecast"), ["air", "quality", "forecast"]);
        assert_eq!(split_compound("weatherforecast"), ["weather", "forecast"]);
        for whole in ["weather", "xyzzyplugh", "calendar", "short"] {
            assert_eq!(split_compound(whole), [""; 0], "{whole}");
        }
    }

    #[test]
    fn no_list_holds_a_word_twice_or_an_upper_case_one() {
        for list in [STOP, FILLER, COMMON, PARTS] {
            let words: Vec<&str> = list.split_whitespace().collect();
            let set: FxHashSet<&str> = words.iter().copied().collect();
            let twice: Vec<_> =
                set.iter().filter(|w| words.iter().filter(|o| o == w).count() > 1).collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
        assert!(SYNONYMS.chars().all(|c| !c.is_uppercase()));
    }
}
