//! Hashes settings, so that a change that requires a new disclosure is noticed.
//!
//! Every struct is destructured without `..`, so code with a new field does not compile until the field is hashed here.
//! Floats are hashed by their bits. Rejected: hashing the `Debug` text, which changes with the compiler and with
//! derives.

use std::hash::{Hash, Hasher};

use super::{SearchSettings, Settings};
use crate::listing::ListingSettings;
use crate::policy::{Activation, Rules};
use crate::rank::{Bm25Settings, RankSettings};

impl Settings {
    /// Hashes every setting that can change what the model sees.
    pub(crate) fn hash_into(&self, hasher: &mut impl Hasher) {
        let Self {
            activation,
            context_window,
            context_windows,
            rules,
            keeps_hot_tools,
            disclosure,
            fallback,
            split_calls,
            reveals,
            max_revealed,
            max_revealed_bytes,
            stub,
            mark,
            guidance,
            listing,
            rank,
            // The table is not hashed, because it has ten megabytes. It affects which tools a search finds, but not
            // what is disclosed.
            vector_table: _,
            deep_vectors: _,
            search,
            limits,
            own_names,
        } = self;
        hash_activation(activation, hasher);
        (context_window, context_windows, keeps_hot_tools).hash(hasher);
        hash_rules(rules, hasher);
        (disclosure, fallback, split_calls, reveals, max_revealed, max_revealed_bytes).hash(hasher);
        (stub, mark, guidance).hash(hasher);
        hash_listing(listing, hasher);
        hash_rank(rank, hasher);
        hash_search(search, hasher);
        (limits, own_names).hash(hasher);
    }
}

fn hash_activation(activation: &Activation, hasher: &mut impl Hasher) {
    let Activation {
        mode,
        tools,
        tokens,
        context_percent,
        tokens_if_unknown,
        always_below,
        only_if_saving,
        sticky,
    } = activation;
    (mode, tools, tokens, context_percent.to_bits()).hash(hasher);
    (tokens_if_unknown, always_below, only_if_saving, sticky).hash(hasher);
}

fn hash_rules(rules: &Rules, hasher: &mut impl Hasher) {
    let Rules { never, full_names, always, servers, hot_names } = rules;
    // A hash set has no order, so the names are sorted before they are hashed.
    let mut full_names: Vec<&String> = full_names.iter().collect();
    full_names.sort_unstable();
    (never, full_names, always, servers, hot_names).hash(hasher);
}

fn hash_listing(listing: &ListingSettings, hasher: &mut impl Hasher) {
    let ListingSettings { form, placement, tokens, context_percent, chars, sentence_chars } =
        listing;
    (form, placement, tokens, context_percent.to_bits(), chars, sentence_chars).hash(hasher);
}

fn hash_rank(rank: &RankSettings, hasher: &mut impl Hasher) {
    let RankSettings { ranker, cap, embedding_model, tier, bm25 } = rank;
    let Bm25Settings { k1, b, parameters, substring } = bm25;
    (ranker, cap, embedding_model, tier).hash(hasher);
    (k1.to_bits(), b.to_bits(), parameters, substring).hash(hasher);
}

fn hash_search(search: &SearchSettings, hasher: &mut impl Hasher) {
    let SearchSettings {
        limit,
        max_limit,
        cutoff,
        refuse,
        reply_tokens,
        names,
        format,
        input,
        regex,
        searched,
        schemas,
        known_last,
        must_in_name,
    } = search;
    (limit, max_limit, cutoff.to_bits(), refuse, reply_tokens, names).hash(hasher);
    (format, input, regex, searched, schemas, known_last, must_in_name).hash(hasher);
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHasher;

    use super::*;
    use crate::rank::VectorTable;

    fn hash(change: impl FnOnce(&mut Settings)) -> u64 {
        let mut settings = Settings::default();
        change(&mut settings);
        let mut hasher = FxHasher::default();
        settings.hash_into(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn every_kind_of_value_changes_the_hash() {
        let default = hash(|_| {});
        assert_eq!(default, hash(|settings| settings.vector_table = VectorTable::default()));
        let changes: [fn(&mut Settings); 9] = [
            |settings| settings.activation.context_percent = 10.5,
            |settings| settings.context_window = Some(1),
            |settings| settings.rules = Rules::default().keep_full(["a"]),
            |settings| settings.split_calls = true,
            |settings| settings.mark = "x".into(),
            |settings| settings.listing.context_percent = 4.0,
            |settings| settings.rank.bm25.k1 = 1.0,
            |settings| settings.search.cutoff = 0.5,
            |settings| settings.limits.query_words = 1,
        ];
        let mut hashes: Vec<u64> = changes.into_iter().map(hash).chain([default]).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), changes.len() + 1);
    }

    #[test]
    fn the_order_in_which_names_were_added_does_not_count() {
        let names = |names: [&'static str; 3]| {
            hash(|settings| settings.rules = Rules::default().keep_full(names))
        };
        assert_eq!(names(["a", "b", "c"]), names(["c", "a", "b"]));
    }
}
