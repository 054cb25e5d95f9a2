//! Tests of a ranker that a user of the library provides.

use std::sync::Arc;

use toolcrib_core::rank::{CustomRanker, Fit, FitDecision, FitReason, RankRequest, ScoredTool};
use toolcrib_core::{Crib, Query, Scope, Settings, Tool, ToolId, WordQuery};

use crate::support::{Chat, catalog, names, office};

/// A ranker that gives the same score to every tool of the catalog, even outside the scope, and a higher score to one
/// tool.
#[derive(Debug)]
struct Favourite {
    name: &'static str,
    confidence: Option<f32>,
}

impl CustomRanker for Favourite {
    fn rank(&self, request: &RankRequest<'_>) -> Vec<ScoredTool> {
        let score = |id: ToolId| {
            let is_favourite = request.catalog.tool(id).name() == self.name;
            let scored = ScoredTool::new(id, if is_favourite { 2.0 } else { 1.0 });
            self.confidence.map_or(scored, |confidence| scored.with_confidence(confidence))
        };
        // The results are in catalog order, have duplicates, and include scores that are not a number. The engine must
        // handle all of this.
        let twice = request.catalog.ids().chain(request.catalog.ids());
        let broken = request.catalog.ids().map(|id| ScoredTool::new(id, f32::NAN));
        broken.chain(twice.map(score)).collect()
    }

    fn has_confidence(&self) -> bool {
        self.confidence.is_some()
    }
}

fn crib(confidence: Option<f32>) -> Crib {
    let crib = Crib::new(catalog(&office()), Settings::default());
    crib.with_ranker(Arc::new(Favourite { name: "mail__send", confidence }))
}

fn words(crib: &Crib, scope: &Scope, text: &str) -> WordQuery {
    match crib.parse(text, scope) {
        Query::Words(words) => words,
        other => panic!("{other:?}"),
    }
}

fn ranked(crib: &Crib, scope: &Scope) -> Vec<String> {
    let hits = crib.rank(&words(crib, scope, "anything"), scope, 100);
    hits.iter().map(|hit| crib.catalog().tool(hit.id).name().to_owned()).collect()
}

#[test]
fn hits_are_sorted_by_score_and_then_by_name() {
    let crib = crib(None);
    let scope = Scope::all(crib.catalog());
    let mut expected: Vec<_> = crib.catalog().tools().iter().map(Tool::name).collect();
    expected.sort_unstable_by_key(|name| (*name != "mail__send", *name));
    assert_eq!(ranked(&crib, &scope), expected);
}

#[test]
fn tools_outside_the_scope_are_dropped_everywhere() {
    let crib = crib(None);
    let scope = Scope::named(crib.catalog(), ["github__create_issue", "slack__post_message"]);
    assert_eq!(ranked(&crib, &scope), ["github__create_issue", "slack__post_message"]);
    let hidden = crib.catalog().find("mail__send").unwrap();
    assert_eq!(crib.explain(&words(&crib, &scope, "anything"), &scope, hidden), None);
    let mut chat = Chat::new(&crib);
    chat.scope = scope;
    assert_eq!(names(&chat.search("anything")), ["github__create_issue", "slack__post_message"]);
}

#[test]
fn an_explanation_has_the_score_of_the_custom_ranker() {
    let crib = crib(None);
    let scope = Scope::all(crib.catalog());
    let id = crib.catalog().find("mail__send").unwrap();
    let explanation = crib.explain(&words(&crib, &scope, "anything"), &scope, id).unwrap();
    assert_eq!((explanation.score, explanation.custom_score), (2.0, Some(2.0)));
    assert!(!explanation.vectors_missing, "a custom ranker does not use vectors");
}

#[test]
fn without_confidence_nothing_is_judged_and_with_it_unlikely_tools_are_refused() {
    let plain = crib(None);
    let scope = Scope::all(plain.catalog());
    assert_eq!(plain.decide_fit(&plain.rank(&words(&plain, &scope, "x"), &scope, 5)), None);
    assert_eq!(Chat::new(&plain).search("x").fit, None);
    let unlikely = crib(Some(0.0));
    let hits = unlikely.rank(&words(&unlikely, &scope, "x"), &scope, 5);
    let reason = FitReason::Unlikely { confidence: 0.0 };
    assert_eq!(unlikely.decide_fit(&hits), Some(FitDecision { fit: Fit::None, reason }));
    assert_eq!(Chat::new(&unlikely).search("x").hits.len(), 0);
    assert_eq!(Chat::new(&crib(Some(7.0))).search("x").fit, Some(Fit::Strong));
}

#[test]
fn other_settings_and_the_next_catalog_keep_the_ranker() {
    let crib = crib(None);
    let mut settings = Settings::default();
    settings.limits.query_words = 3;
    for crib in [crib.with_settings(settings.clone()), crib.next(catalog(&office()), settings)] {
        let scope = Scope::all(crib.catalog());
        assert_eq!(ranked(&crib, &scope)[0], "mail__send");
    }
}

#[test]
fn a_query_is_plain_text_unless_the_ranker_knows_operators() {
    let crib = crib(None);
    let scope = Scope::all(crib.catalog());
    assert_eq!(words(&crib, &scope, "+issue server:github").text, "+issue server:github");
}
