//! Tests of deep vectors, with an encoder that is small enough to check results by hand.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use toolcrib_core::rank::{DeepVectors, EncodedQuery, TextEncoder, Tier, TierSetting, ToolText};
use toolcrib_core::{
    Conversation, Crib, Limits, Scope, SearchRequest, Settings, ToolId, TurnContext, WordQuery,
};
use toolcrib_embed::{FlatIndex, GeneralType, GeneralTypes, LinearProbe, QuantisedVector, Vector};

use crate::hybrid;
use crate::support::{catalog, changed};

/// Embeds texts in two directions: money, and everything else. The word "elsewhere" is hardly similar to either. Unlike the
/// table, the encoder knows the word "cash".
#[derive(Debug, Default)]
struct MoneyEncoder(Option<GeneralTypes>);

impl MoneyEncoder {
    fn vector(text: &str) -> QuantisedVector {
        if text.contains("elsewhere") {
            return Vector::normalised(vec![0.0, 0.1, 1.0]).quantised();
        }
        let money = ["cash", "stamp"].iter().any(|word| text.to_lowercase().contains(word));
        Vector::normalised(if money { vec![1.0, 0.0, 0.0] } else { vec![0.0, 1.0, 0.0] })
            .quantised()
    }
}

impl TextEncoder for MoneyEncoder {
    fn dims(&self) -> usize {
        3
    }

    fn id(&self) -> [u8; 16] {
        [7; 16]
    }

    fn embed_tool(&self, text: &str) -> QuantisedVector {
        Self::vector(text)
    }

    /// Does not know queries in capital letters.
    fn embed_query(&self, text: &str, needs: &[Range<usize>]) -> Option<EncodedQuery> {
        let needs = needs.iter().map(|need| Some(Self::vector(&text[need.clone()]))).collect();
        (text != text.to_uppercase()).then(|| EncodedQuery { whole: Self::vector(text), needs })
    }

    fn general_types(&self) -> Option<&GeneralTypes> {
        self.0.as_ref()
    }
}

fn settings(deep: &DeepVectors) -> Settings {
    changed(hybrid::settings(), |settings| settings.deep_vectors = deep.clone())
}

fn crib(deep: &DeepVectors) -> Crib {
    Crib::new(catalog(&hybrid::post()), settings(deep))
}

fn embedded(texts: &[ToolText]) -> Vec<(toolcrib_core::rank::TextKey, QuantisedVector)> {
    texts.iter().map(|text| (text.key, MoneyEncoder::default().embed_tool(&text.text))).collect()
}

fn texts(texts: &[ToolText]) -> Vec<&str> {
    texts.iter().map(|text| text.text.as_str()).collect()
}

fn ranked(crib: &Crib, query: &str) -> Vec<String> {
    let words = WordQuery::plain(query, &Limits::default());
    let hits = crib.rank(&words, &Scope::all(crib.catalog()), 9);
    let name = |id: ToolId| crib.catalog().tool(id).name().to_owned();
    hits.iter().map(|hit| name(hit.id)).collect()
}

/// The tier, the deep cosine and the similarity of a tool.
fn similarity(crib: &Crib, query: &str, tool: &str) -> (Tier, Option<f32>, f32) {
    let words = WordQuery::plain(query, &Limits::default());
    let id = crib.catalog().find(tool).unwrap();
    let explanation = crib.explain(&words, &Scope::all(crib.catalog()), id).unwrap();
    let similarity = explanation.similarity.unwrap();
    (similarity.tier, similarity.deep_cosine, similarity.vectors)
}

#[test]
fn without_deep_vectors_tools_are_ranked_with_the_table() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    assert_eq!(ranked(&crib, "cash"), [""; 0], "the table does not know the word");
    assert_eq!(similarity(&crib, "cash", "post__stamp").0, Tier::Table);
}

#[test]
fn deep_vectors_are_used_in_the_next_search_after_they_were_inserted() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    let missing = crib.missing_deep_vectors();
    assert_eq!(
        texts(&missing),
        [
            "post courier: Courier and parcel.",
            "post stamp: Stamp.",
            "sky cyclone: Cyclone and mercury.",
            "sky other: Something else."
        ]
    );
    assert_eq!(ranked(&crib, "cash"), [""; 0]);
    deep.insert(embedded(&missing));
    assert_eq!(ranked(&crib, "cash")[0], "post__stamp");
    assert_eq!(similarity(&crib, "cash", "post__stamp"), (Tier::Deep, Some(1.0), 1.0));
    assert_eq!(crib.missing_deep_vectors(), []);
}

/// The deep cosine of a tool without a deep vector is estimated from the table, so that it can be compared with those of
/// other tools.
#[test]
fn a_tool_without_a_deep_vector_gets_an_estimate() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    let missing = crib.missing_deep_vectors();
    deep.insert(embedded(&missing).into_iter().filter(|(key, _)| {
        let text = missing.iter().find(|text| text.key == *key).unwrap();
        !text.text.starts_with("sky cyclone")
    }));
    let (tier, cosine, estimated) = similarity(&crib, "drizzle", "sky__cyclone");
    // 1.0 times the estimate (0.8 times the table's cosine, plus 0.05), plus 0.4 times the table's cosine.
    assert_eq!((tier, cosine), (Tier::Deep, None));
    assert!((estimated - 1.25).abs() < 1e-3, "{estimated}");
    assert_eq!(ranked(&crib, "drizzle")[0], "sky__cyclone");
}

#[test]
fn a_query_in_a_language_that_the_encoder_does_not_know_is_ranked_with_the_table() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    deep.insert(embedded(&crib.missing_deep_vectors()));
    assert_eq!(ranked(&crib, "DRIZZLE"), ["sky__cyclone"]);
    assert_eq!(similarity(&crib, "DRIZZLE", "sky__cyclone").0, Tier::Table);
}

#[test]
fn the_setting_table_turns_deep_vectors_off() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let on = crib(&deep);
    deep.insert(embedded(&on.missing_deep_vectors()));
    let off = on.with_settings(changed(settings(&deep), |settings| {
        settings.rank.tier = TierSetting::Table;
    }));
    assert_eq!((ranked(&off, "cash"), off.missing_deep_vectors()), (vec![], vec![]));
    assert_eq!(ranked(&on, "cash")[0], "post__stamp");
}

#[test]
fn missing_vectors_are_requested_once_for_each_catalog_and_only_the_missing_ones() {
    let requests = Arc::<Mutex<Vec<Vec<ToolText>>>>::default();
    let received = Arc::clone(&requests);
    let deep = DeepVectors::requesting(
        Arc::new(MoneyEncoder::default()),
        100,
        Box::new(move |_, texts| received.lock().unwrap().push(texts)),
    );
    let first = crib(&deep);
    assert!(requests.lock().unwrap().is_empty(), "nothing is requested before it is needed");
    first.prepare();
    ranked(&first, "cash");
    first.request_deep_vectors();
    let requested = requests.lock().unwrap().concat();
    assert_eq!((requests.lock().unwrap().len(), requested.len()), (1, 4));
    deep.insert(embedded(&requested));
    let mut tools = hybrid::post();
    tools[0]["description"] = "Cash.".into();
    let second = first.next(catalog(&tools), settings(&deep));
    second.prepare();
    assert_eq!(texts(&requests.lock().unwrap()[1]), ["post courier: Cash."]);
    // A catalog whose tools all have vectors requests nothing.
    first.next(catalog(&hybrid::post()), settings(&deep)).prepare();
    assert_eq!(requests.lock().unwrap().len(), 2);
}

/// The oldest vectors are dropped, but a catalog that already has them keeps them.
#[test]
fn the_number_of_vectors_is_limited() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 4);
    let crib = crib(&deep);
    let missing = crib.missing_deep_vectors();
    assert_eq!(missing.len(), 4);
    deep.insert(embedded(&missing));
    assert_eq!(ranked(&crib, "cash")[0], "post__stamp");
    let others: Vec<_> = (0..3)
        .map(|at| (toolcrib_core::rank::TextKey([at; 16]), MoneyEncoder::vector("cash")))
        .collect();
    deep.insert(others);
    assert!(!deep.has(&missing[0].key) && deep.has(&missing[3].key));
    assert_eq!(ranked(&crib, "cash")[0], "post__stamp", "the index keeps its vectors");
}

#[test]
fn vectors_of_another_size_are_ignored() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    let key = crib.missing_deep_vectors()[0].key;
    deep.insert([(key, Vector::normalised(vec![1.0, 2.0, 3.0, 4.0]).quantised())]);
    assert!(!deep.has(&key));
    ranked(&crib, "cash");
}

/// The request is hardly similar to any tool, but needs a tool of the type to which one tool belongs. So that tool gets a
/// bonus and a higher confidence, unless some tool is similar to the request.
#[test]
fn a_general_tool_is_found_by_requests_that_need_one() {
    let probe = |weights: [f32; 3]| LinearProbe::new(weights.to_vec(), -10.0);
    let name = "bank".to_owned();
    let bank = GeneralType {
        name,
        request: probe([0.0, 0.0, 20.0]),
        prototype_weights: vec![],
        tool: probe([20.0, 0.0, 0.0]),
    };
    let encoder = |types: Vec<GeneralType>| {
        Arc::new(MoneyEncoder(Some(GeneralTypes::new(types, FlatIndex::new(3)))))
    };
    let explained_for = |query: &str, types: Vec<GeneralType>, tool: &str| {
        let deep = DeepVectors::new(encoder(types), 100);
        let crib = crib(&deep);
        deep.insert(embedded(&crib.missing_deep_vectors()));
        let words = WordQuery::plain(query, &Limits::default());
        let id = crib.catalog().find(tool).unwrap();
        crib.explain(&words, &Scope::all(crib.catalog()), id).unwrap()
    };
    let explained = |types, tool| explained_for("elsewhere", types, tool);
    let general = |types, tool| explained(types, tool).similarity.unwrap().general;
    let found = general(vec![bank.clone()], "post__stamp").unwrap();
    assert!(found.name == "bank" && found.request > 0.99 && found.tool > 0.99, "{found:?}");
    assert!(found.bonus > 0.3);
    let other = general(vec![bank.clone()], "sky__other").unwrap();
    assert!(other.bonus < 0.001, "{other:?}");
    assert_eq!(general(vec![], "post__stamp"), None);
    let anything = GeneralType { request: probe([20.0, 20.0, 0.0]), ..bank.clone() };
    let similar = explained_for("drizzle", vec![anything], "post__stamp").similarity.unwrap();
    let found_too = similar.general.unwrap();
    assert!(found_too.request > 0.99 && found_too.bonus == 0.0, "{found_too:?}");
    let deep = DeepVectors::new(encoder(vec![bank.clone()]), 100);
    let crib = crib(&deep);
    deep.insert(embedded(&crib.missing_deep_vectors()));
    assert_eq!(ranked(&crib, "elsewhere")[0], "post__stamp");
    let (with, without) = (explained(vec![bank], "post__stamp"), explained(vec![], "post__stamp"));
    assert!((with.score - without.score - found.bonus).abs() < 1e-5);
    assert!(with.confidence > without.confidence);
}

/// Two callers see different tools. What one of them may not see must not change the other's results.
#[test]
fn tools_outside_the_scope_do_not_influence_the_deep_tier() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let everything = crib(&deep);
    deep.insert(embedded(&everything.missing_deep_vectors()));
    let visible = Crib::new(catalog(&hybrid::post()[..2]), settings(&deep));
    let words = WordQuery::plain("cash for a courier", &Limits::default());
    let scope = Scope::of(
        everything.catalog(),
        everything
            .catalog()
            .ids()
            .filter(|id| everything.catalog().tool(*id).name().starts_with("post")),
    );
    let scores = |crib: &Crib, scope: &Scope| -> Vec<(String, u32, Option<u32>)> {
        let hits = crib.rank(&words, scope, 9);
        let hit = |hit: &toolcrib_core::rank::Hit| {
            let name = crib.catalog().tool(hit.id).name().to_owned();
            (name, hit.score.to_bits(), hit.confidence.map(f32::to_bits))
        };
        hits.iter().map(hit).collect()
    };
    assert_eq!(scores(&everything, &scope), scores(&visible, &Scope::all(visible.catalog())));
}

/// A tool outside the scope has a deep vector, and no tool in scope has one. The results are those of a catalog without the
/// hidden tool.
#[test]
fn the_deep_vector_of_a_hidden_tool_does_not_change_the_tier() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let everything = crib(&deep);
    let missing = everything.missing_deep_vectors();
    let hidden = missing.iter().filter(|text| text.text.starts_with("sky")).cloned();
    deep.insert(embedded(&hidden.collect::<Vec<_>>()));
    let visible = |id: &ToolId| everything.catalog().tool(*id).name().starts_with("post");
    let scope = Scope::of(everything.catalog(), everything.catalog().ids().filter(visible));
    let words = WordQuery::plain("drizzle parcel", &Limits::default());
    let id = everything.catalog().find("post__courier").unwrap();
    let tier =
        |scope: &Scope| everything.explain(&words, scope, id).unwrap().similarity.unwrap().tier;
    assert_eq!(tier(&scope), Tier::Table);
    assert_eq!(tier(&Scope::all(everything.catalog())), Tier::Deep);
}

/// A query that has only filters finds all tools that pass them. The encoder would rank them by an arbitrary vector.
#[test]
fn a_query_with_only_filters_finds_everything_that_passes() {
    let deep = DeepVectors::new(Arc::new(MoneyEncoder::default()), 100);
    let crib = crib(&deep);
    deep.insert(embedded(&crib.missing_deep_vectors()));
    let scope = Scope::all(crib.catalog());
    for (query, found) in [
        ("server:post", &["post__courier", "post__stamp"][..]),
        ("-post", &["sky__cyclone", "sky__other"][..]),
    ] {
        let reply = crib.search(
            &TurnContext::new(&scope),
            &mut Conversation::new(),
            &SearchRequest::query(query),
        );
        let names: Vec<&str> = reply.hits.iter().map(|hit| hit.name.as_str()).collect();
        assert_eq!(names, found, "{query}");
    }
}
