//! Knowledge about English words: stems, stop words, synonyms.
//!
//! The lists are small. They were written for this project from general knowledge of software and everyday services,
//! not from any dataset. Each list was kept only because it improved the results in a leave-one-out evaluation over the
//! datasets.

use std::borrow::Cow;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use rustc_hash::{FxHashMap, FxHashSet};

/// Stop words, which are dropped from both the index and queries.
const STOP: &str = include_str!("stop.txt");
/// Words that only make a request polite. They are indexed, because a tool may be about them, but they are ignored in a
/// query.
const FILLER: &str = include_str!("filler.txt");
/// Common words that rarely distinguish tools. In a query, they have half the weight.
const COMMON: &str = include_str!("common.txt");
/// Groups of synonyms, one group per line.
const SYNONYMS: &str = include_str!("synonyms.txt");
/// Further words that occur in names. They are used to split compound names.
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

/// Maps a stem to the stems of its synonyms, sorted.
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

/// Whether a word is a stop word.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP_SET.contains(word)
}

/// Whether a stem is a filler word, such as a word of politeness.
pub(crate) fn is_filler(stem: &str) -> bool {
    FILLER_STEMS.contains(stem)
}

/// Whether a word is in the list of common words.
pub(crate) fn is_common(word: &str) -> bool {
    COMMON_SET.contains(word)
}

/// The stems of the synonyms of a stem.
pub(crate) fn related(stem: &str) -> &'static [String] {
    RELATED.get(stem).map_or(&[], Vec::as_slice)
}

/// The stem of a lower-case word. Numbers, words in other scripts and words of one or two letters are not stemmed.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    ENGLISH.stem(word)
}

/// Splits a compound name into words, such as `airqualityforecast` into `air`, `quality`, `forecast`.
///
/// The words must be in our lists and cover the entire name. If several splits are possible, the one with the fewest
/// words is used. Rejected: also using the words of the catalog, which would split a few more names, but then a hidden
/// tool could change how a visible one is found.
pub(crate) fn split_compound(word: &str) -> Vec<&str> {
    const LONGEST: usize = 14;
    let plausible = (7..=40).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    if !plausible || PART_SET.contains(word) {
        return Vec::new();
    }
    // For every end position: the minimum number of words that cover the text up to there, and where the last of these
    // words starts.
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
    fn inflected_forms_have_the_same_stem() {
        for (a, b) in [("issues", "issue"), ("creating", "create"), ("repositories", "repository")]
        {
            assert_eq!(stem(a), stem(b));
        }
        assert_eq!(stem("s3"), "s3");
        assert_eq!(stem("搜索"), "搜索");
    }

    #[test]
    fn verbs_have_their_synonyms() {
        let knows = |a: &str, b: &str| related(&stem(a)).contains(&stem(b).into_owned());
        assert!(knows("create", "add") && knows("make", "create"));
        assert!(knows("stop", "terminate") && knows("remove", "delete"));
        assert!(!knows("create", "delete"));
    }

    #[test]
    fn run_together_names_are_split_into_known_words() {
        assert_eq!(split_compound("airqualityforecast"), ["air", "quality", "forecast"]);
        assert_eq!(split_compound("weatherforecast"), ["weather", "forecast"]);
        for whole in ["weather", "xyzzyplugh", "calendar", "short"] {
            assert_eq!(split_compound(whole), [""; 0], "{whole}");
        }
    }

    #[test]
    fn the_lists_have_no_duplicates_and_no_upper_case() {
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
