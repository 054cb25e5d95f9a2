//! Searches any catalog with any query and every ranker.
//!
//! The first line of the input is the query, and the rest is the catalog. If the catalog has no tools, a fixed catalog
//! is used. The reply may contain only tools in scope. It must be the same if the query is repeated, and also if the
//! tools outside the scope are removed and the others are in a different order. The parts of an explanation must add up
//! to the score of the hit.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolcrib_core::rank::{Explanation, Fit};
use toolcrib_core::reply::ReplyFormat;
use toolcrib_core::{
    Catalog, Conversation, Crib, Preset, Query, Reply, Scope, SearchRequest, TurnContext, WordQuery,
};
use toolcrib_fuzz::{PRESETS, check_reply, every_second, without_the_hidden};

struct Pair {
    whole: Crib,
    scope: Scope,
    /// The crib `whole` without the tools outside the scope.
    bare: Crib,
}

impl Pair {
    fn new(whole: Crib) -> Self {
        let scope = every_second(whole.catalog());
        let bare = without_the_hidden(&whole, &scope);
        Self { whole, scope, bare }
    }
}

static FIXED: LazyLock<Vec<Pair>> = LazyLock::new(|| pairs(&toolcrib_fuzz::catalog()));

fn pairs(catalog: &Catalog) -> Vec<Pair> {
    let pair = |preset: Preset| Pair::new(Crib::new(catalog.clone(), preset.settings()));
    PRESETS.into_iter().map(pair).collect()
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (query, tools) = text.split_once('\n').unwrap_or((text, ""));
    match Catalog::from_json(tools.as_bytes()) {
        Ok(catalog) if !catalog.is_empty() => {
            pairs(&catalog).iter().for_each(|pair| check(pair, query));
        }
        _ => FIXED.iter().for_each(|pair| check(pair, query)),
    }
});

fn check(pair: &Pair, query: &str) {
    let Pair { whole, scope, bare } = pair;
    let reply = ask(whole, scope, query);
    check_reply(whole, scope, &reply);
    let text = reply.text(ReplyFormat::Json);
    assert_eq!(
        text,
        ask(whole, scope, query).text(ReplyFormat::Json),
        "the same query has the same reply"
    );
    let bare_scope = Scope::all(bare.catalog());
    let bare_text = ask(bare, &bare_scope, query).text(ReplyFormat::Json);
    assert_eq!(text, bare_text, "hidden tools or the order change the reply");
    check_score(whole, scope, query, &reply);
    check_fit(&reply);
}

/// Checks that there are no hits if nothing fits, and that every confidence is between 0 and 1.
fn check_fit(reply: &Reply) {
    assert!(
        reply.fit != Some(Fit::None) || reply.hits.is_empty(),
        "there are hits, although no tool fits"
    );
    let confidences = reply.hits.iter().filter_map(|hit| hit.confidence);
    confidences.for_each(|value| assert!((0.0..=1.0).contains(&value), "{value}"));
}

fn ask(crib: &Crib, scope: &Scope, query: &str) -> Reply {
    crib.search(&TurnContext::new(scope), &mut Conversation::new(), &SearchRequest::query(query))
}

fn check_score(crib: &Crib, scope: &Scope, query: &str, reply: &Reply) {
    let (Some(words), Some(hit)) = (words(crib, scope, query), reply.hits.first()) else { return };
    let id = crib.catalog().find(&hit.name).expect("a hit is a tool");
    let explanation = crib.explain(&words, scope, id).expect("a hit is in scope");
    let sum = sum(&explanation);
    let most = 1e-3 * hit.score.max(1.0);
    assert!((sum - hit.score).abs() <= most, "{sum} against {}: {explanation:?}", hit.score);
}

/// Returns the query as the search parses it, or `None` if the query selects or lists tools without ranking them.
fn words(crib: &Crib, scope: &Scope, query: &str) -> Option<WordQuery> {
    match crib.parse(query, scope) {
        Query::Words(words) => Some(words),
        Query::Select(_) | Query::Browse => None,
    }
}

/// Adds up the parts of a score. None of the presets uses a custom ranker, so there are no other parts.
fn sum(explanation: &Explanation) -> f32 {
    let Explanation {
        name: _,
        score: _,
        words,
        pair_bonus,
        phrase_bonus,
        name_bonus,
        server_bonus,
        exact_bonus,
        filter_bonus,
        substring_bonus,
        similarity,
        confidence: _,
        coverage: _,
        unknown: _,
        ..
    } = explanation;
    if let Some(both) = similarity {
        return both.words + both.vectors + both.coverage_bonus + exact_bonus;
    }
    let words: f32 = words.iter().map(|word| word.points).sum();
    let bonuses = pair_bonus + phrase_bonus + name_bonus + server_bonus + exact_bonus;
    words + bonuses + filter_bonus + substring_bonus
}
