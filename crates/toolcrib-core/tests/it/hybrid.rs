//! Tests of the hybrid ranker, with a vector table that is small enough to check results by hand.

use serde_json::{Value, json};
use toolcrib_core::rank::{EmbeddingWork, VectorTable};
use toolcrib_core::{
    Catalog, Crib, EmbeddingModel, Limits, Query, Scope, Settings, ToolId, WordQuery, ingest,
};

use crate::support::{Chat, catalog, changed, lines, names, tool};

/// A vector table with two directions, mail and weather, and three words for each. No two of the words are related
/// terms.
fn table() -> VectorTable {
    table_with_word("drizzle", [0, 100])
}

/// The same table as [`table`] returns, except that the vector of `word` is `way`.
fn table_with_word(word: &'static str, way: [i8; 2]) -> VectorTable {
    let (mail, weather) = ([100, 0], [0, 100]);
    let entries: [(&str, [i8; 2]); 6] = [
        ("courier", mail),
        ("parcel", mail),
        ("stamp", mail),
        ("drizzle", weather),
        ("cyclone", weather),
        ("mercury", weather),
    ];
    let entries = entries.map(|(entry, row)| (entry, if entry == word { way } else { row }));
    let vocabulary = entries.map(|(entry, _)| entry).join("\n");
    let mut file = b"TCRIBEM2".to_vec();
    for number in [2, entries.len(), vocabulary.len(), 6] {
        file.extend(u32::try_from(number).unwrap().to_le_bytes());
    }
    file.extend([1.0_f32; 6].iter().flat_map(|weight| weight.to_le_bytes()));
    file.extend(vocabulary.as_bytes());
    file.extend([0.01_f32; 12].iter().flat_map(|scale| scale.to_le_bytes()));
    file.extend(entries.iter().flat_map(|(_, row)| row.map(i8::cast_unsigned)));
    VectorTable::from(EmbeddingModel::parse(file.into()).unwrap())
}

pub(crate) fn settings() -> Settings {
    changed(Settings::default(), |settings| settings.vector_table = table())
}

fn described(name: &str, description: &str) -> Value {
    tool(name, description, &json!({}))
}

pub(crate) fn post() -> Vec<Value> {
    vec![
        described("post__courier", "Courier and parcel."),
        described("post__stamp", "Stamp."),
        described("sky__cyclone", "Cyclone and mercury."),
        described("sky__other", "Something else."),
    ]
}

fn ranked(crib: &Crib, query: &str) -> Vec<String> {
    let scope = Scope::all(crib.catalog());
    let Query::Words(words) = crib.parse(query, &scope) else { panic!("{query}") };
    let name = |id: ToolId| crib.catalog().tool(id).name().to_owned();
    crib.rank(&words, &scope, 10).iter().map(|hit| name(hit.id)).collect()
}

#[test]
fn a_tool_with_the_same_meaning_is_found_without_a_common_word() {
    let crib = Crib::new(catalog(&post()), settings());
    assert_eq!(ranked(&crib, "drizzle"), ["sky__cyclone"]);
    let words = crib.with_settings(changed(settings(), |settings| {
        settings.rank = toolcrib_core::Preset::Words.settings().rank;
    }));
    assert_eq!(ranked(&words, "drizzle"), [""; 0]);
}

/// The query has more words about mail than about weather, and two tools are about mail. The weather tool must still
/// come second.
#[test]
fn a_tool_for_a_second_need_comes_before_another_one_for_the_first() {
    let tools = [described("a", "Courier."), described("b", "Parcel."), described("c", "Cyclone.")];
    let crib = Crib::new(catalog(&tools), settings());
    let both = "stamp stamp stamp and drizzle drizzle";
    assert_eq!(ranked(&crib, both), ["a", "c", "b"]);
    assert_eq!(ranked(&crib, &both.replace("and", "for")), ["a", "b", "c"], "one need");
    assert_eq!(names(&Chat::new(&crib).search(both)), ["a", "c", "b"]);
    // The hit for the second need has a lower score but the same confidence. For the confidence, its score with the
    // coverage bonus is compared with the best score without that bonus.
    let words = WordQuery::plain(both, &Limits::default());
    let hits = crib.rank(&words, &Scope::all(crib.catalog()), 3);
    assert!(hits[0].confidence == hits[1].confidence && hits[1].score < hits[0].score);
}

#[test]
fn a_changed_tool_is_the_only_one_embedded_again() {
    let first = Crib::new(catalog(&post()), settings());
    assert_eq!(first.prepare(), EmbeddingWork { embedded: 4, reused: 0 });
    let mut tools = post();
    tools[3] = described("sky__other", "Drizzle.");
    let second = first.next(catalog(&tools), first.settings().clone());
    assert_eq!(second.prepare(), EmbeddingWork { embedded: 1, reused: 3 });
    assert_eq!(ranked(&second, "mercury"), ["sky__cyclone", "sky__other"]);
    // Unchanged tools must also be reused if the order differs, one tool is removed and one is added.
    tools.reverse();
    tools[1] = described("sky__new", "Mercury.");
    let third = second.next(catalog(&tools), second.settings().clone());
    assert_eq!(third.prepare(), EmbeddingWork { embedded: 1, reused: 3 });
    let rebuilt = Crib::new(catalog(&tools), settings());
    for query in ["mercury", "parcel", "drizzle stamp"] {
        assert_eq!(ranked(&third, query), ranked(&rebuilt, query), "{query}");
    }
}

#[test]
fn tools_of_a_renamed_server_are_embedded_again() {
    let catalog_of = |server: &str| {
        let mut builder = Catalog::builder();
        let tool =
            json!({"name": "stamp", "description": "Stamp.", "server": server, "input_schema": {}});
        builder.add(ingest(lines(&[tool]).as_bytes(), None, &Limits::default()).unwrap());
        builder.build()
    };
    let crib = Crib::new(catalog_of("courier"), settings());
    crib.prepare();
    let settings = crib.settings().clone();
    assert_eq!(
        crib.next(catalog_of("courier"), settings.clone()).prepare(),
        EmbeddingWork { embedded: 0, reused: 1 }
    );
    assert_eq!(
        crib.next(catalog_of("cyclone"), settings).prepare(),
        EmbeddingWork { embedded: 1, reused: 0 }
    );
}

#[test]
fn another_table_or_description_limit_embeds_all_tools_again() {
    let crib = Crib::new(catalog(&post()), settings());
    crib.prepare();
    let all = EmbeddingWork { embedded: 4, reused: 0 };
    // `settings()` makes a new table. It counts as a different one, even though its contents are the same.
    assert_eq!(crib.next(catalog(&post()), settings()).prepare(), all);
    let otherwise = changed(settings(), |settings| {
        settings.vector_table = table_with_word("cyclone", [100, 0]);
    });
    assert_eq!(ranked(&crib, "courier")[..2], ["post__courier", "post__stamp"]);
    let other = crib.with_settings(otherwise);
    assert_eq!(ranked(&other, "courier"), ["post__courier", "post__stamp", "sky__cyclone"]);
    let shorter = changed(crib.settings().clone(), |settings| {
        settings.limits.indexed_description_bytes = 3;
    });
    assert_eq!(crib.next(catalog(&post()), shorter.clone()).prepare(), all);
    // With a limit of three bytes, only `Dri` of the description is embedded. The table has neither this nor a word of
    // the name, so the cosine is 0.
    let crib = Crib::new(catalog(&[described("x", "Drizzle.")]), settings());
    let cosine = |crib: &Crib| {
        let (scope, words) =
            (Scope::all(crib.catalog()), WordQuery::plain("drizzle", &Limits::default()));
        crib.explain(&words, &scope, crib.catalog().find("x").unwrap())
            .unwrap()
            .similarity
            .unwrap()
            .cosine
    };
    assert_eq!((cosine(&crib), cosine(&crib.with_settings(shorter))), (1.0, 0.0));
}

#[test]
fn nothing_is_embedded_before_the_first_search() {
    let crib = Crib::new(catalog(&post()), settings());
    let index = crib.index_bytes();
    let next = crib.next(catalog(&post()), crib.settings().clone());
    assert_eq!(
        next.index_bytes(),
        index,
        "no vectors were computed, so none are copied or computed"
    );
    ranked(&crib, "parcel");
    // Each of the four vectors has two dimensions, which are padded to 64 bytes, and a scale of 4 bytes.
    assert_eq!(crib.index_bytes(), index + 4 * (64 + 4));
    let words = Crib::new(catalog(&post()), toolcrib_core::Preset::Words.settings());
    assert_eq!(words.prepare(), EmbeddingWork::default());
}

#[test]
fn a_named_tool_comes_before_more_similar_tools() {
    let crib = Crib::new(catalog(&post()), settings());
    for name in ["post__stamp", "post.stamp", "POST__STAMP"] {
        let found = ranked(&crib, &format!("cyclone drizzle mercury {name}"));
        assert_eq!(found[..2], ["post__stamp", "sky__cyclone"], "{name}");
    }
    let reply = crate::support::Chat::new(&crib).search("post__stamp");
    assert_eq!(
        names(&reply),
        ["post__stamp"],
        "a query that is only a name returns only that tool"
    );
}

#[test]
fn operators_apply_to_hits_found_by_vectors() {
    let crib = Crib::new(catalog(&post()), settings());
    assert_eq!(ranked(&crib, "stamp"), ["post__stamp", "post__courier"]);
    assert_eq!(ranked(&crib, "stamp -parcel"), ["post__stamp"]);
    assert_eq!(ranked(&crib, "+courier stamp"), ["post__courier"]);
    assert_eq!(ranked(&crib, "sky: stamp"), [""; 0]);
    assert_eq!(ranked(&crib, "server:post"), ["post__courier", "post__stamp"]);
}

#[test]
fn hidden_tools_are_not_found_by_vectors() {
    let crib = Crib::new(catalog(&post()), settings());
    let scope = Scope::named(crib.catalog(), ["post__stamp", "sky__other"]);
    let words = WordQuery::plain("courier", &Limits::default());
    let found = crib.rank(&words, &scope, 10);
    let found: Vec<&str> = found.iter().map(|hit| crib.catalog().tool(hit.id).name()).collect();
    assert_eq!(found, ["post__stamp"]);
}

#[test]
fn both_signals_are_explained_and_add_up() {
    let crib = Crib::new(catalog(&post()), settings());
    let scope = Scope::all(crib.catalog());
    let words = WordQuery::plain("cyclone", &Limits::default());
    let why = crib.explain(&words, &scope, crib.catalog().find("sky__cyclone").unwrap()).unwrap();
    let both = why.similarity.unwrap();
    assert_eq!((both.cosine, both.needs, both.vectors), (1.0, 0, 1.0));
    assert!((both.word_score - both.best_word_score).abs() < 1e-5);
    // The query is also the tool's own name, so the bonus for an exact name is part of the score.
    assert!((both.words + both.vectors + why.exact_bonus - why.score).abs() < 1e-4);
    let best = crib.rank(&words, &scope, 1)[0];
    assert_eq!((best.id, best.exact), (crib.catalog().find("sky__cyclone").unwrap(), true));
    assert!((best.score - why.score).abs() < 1e-4);
}
