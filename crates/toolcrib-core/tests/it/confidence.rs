//! Tests of the confidence of hits, and of the reply to a query that no tool fits.

use serde_json::{Value, json};
use toolcrib_core::rank::{Fit, FitDecision, FitReason};
use toolcrib_core::reply::{AvailableTools, ReplyFormat};
use toolcrib_core::{
    CallOutcome, Conversation, Crib, Preset, Reply, Scope, SearchRequest, TurnContext,
};

use crate::hybrid;
use crate::support::{Chat, catalog, changed, crib, crib_with, names, office, tool};

/// A query that no tool of the office catalog serves. Of its words, only `state` occurs there, as the name of a
/// parameter.
const UNSERVABLE: &str =
    "hire jugglers, acrobats, magicians, trombones, a brass band; state of the art";

/// The office catalog, ranked by words only, so that word weights can be computed by hand.
fn by_words() -> Crib {
    crib_with(&office(), "[rank]\nby = 'words'\n")
}

/// The fit of a query when ranked by words only.
fn fit(query: &str) -> Option<Fit> {
    Chat::new(&by_words()).search(query).fit
}

fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.text(ReplyFormat::Json)).unwrap()
}

fn ask(queries: &[&str]) -> SearchRequest {
    SearchRequest::queries(queries.iter().copied())
}

#[test]
fn a_query_that_no_tool_fits_loads_nothing_and_names_the_nearest_tools() {
    let crib = by_words();
    let mut chat = Chat::new(&crib);
    let reply = chat.search(UNSERVABLE);
    assert_eq!(
        json_of(&reply),
        json!({
            "query": UNSERVABLE,
            "fit": "none",
            "hits": [],
            "loaded": [],
            "missing": [],
            "notes": [format!(
                "No tool here fits \"{UNSERVABLE}\". Nearest: \"github__list_issues\" (\"List the issues of a \
                 repository.\"). If one serves after all, load it with select:NAME; otherwise answer without a tool."
            )],
        })
    );
    assert!(chat.conversation.ledger().is_empty());
    assert_eq!(chat.search("select:github__list_issues").loaded, ["github__list_issues"]);
}

#[test]
fn a_tool_with_all_the_words_fits_strongly_and_one_with_some_weakly() {
    assert_eq!(fit("merge a pull request"), Some(Fit::Strong));
    assert_eq!(fit("post holiday photos from yesterday's beach party"), Some(Fit::Weak));
    assert_eq!(fit(UNSERVABLE), Some(Fit::None));
    let confidence =
        Chat::new(&by_words()).search("post holiday photos").hits[0].confidence.unwrap();
    assert_eq!(format!("{confidence}").len(), "0.75".len(), "rounded to hundredths: {confidence}");
    assert_eq!(fit("xylophone"), Some(Fit::None), "no tool has this word");
}

#[test]
fn a_tool_with_the_same_meaning_fits_without_a_common_word() {
    let crib = Crib::new(catalog(&hybrid::post()), hybrid::settings());
    let near = Chat::new(&crib).search("drizzle");
    assert_eq!((near.fit, names(&near)), (Some(Fit::Strong), vec!["sky__cyclone"]));
    let words = Crib::new(
        catalog(&hybrid::post()),
        changed(hybrid::settings(), |settings| settings.rank = Preset::Words.settings().rank),
    );
    assert_eq!(Chat::new(&words).search("drizzle").fit, Some(Fit::None));
}

#[test]
fn a_named_tool_has_full_confidence() {
    let crib = by_words();
    for query in
        ["mail__send", "mail.send", "use github__list_issues on the trombone", "server:mail"]
    {
        let reply = Chat::new(&crib).search(query);
        assert_eq!(
            (reply.fit, reply.hits[0].confidence),
            (Some(Fit::Strong), Some(1.0)),
            "{query}"
        );
    }
    let CallOutcome::Answer(reply) =
        Chat::new(&crib).call("tool_describe", r#"{"name":"mail__send"}"#)
    else {
        panic!()
    };
    assert_eq!((reply.fit, reply.hits[0].confidence), (Some(Fit::Strong), Some(1.0)));
}

#[test]
fn selected_names_that_exist_are_a_strong_fit_and_missing_ones_are_none() {
    assert_eq!(fit("select:mail__send"), Some(Fit::Strong));
    assert_eq!(fit("select:mail__send,nope"), Some(Fit::Strong));
    assert_eq!(fit("select:nope"), Some(Fit::None));
    assert_eq!(fit("select:search_messages"), Some(Fit::None), "two tools have this name");
}

#[test]
fn the_best_fit_of_several_queries_counts_and_queries_without_fit_are_noted() {
    let crib = by_words();
    let reply = Chat::new(&crib).ask(&ask(&[UNSERVABLE, "merge a pull request"]));
    assert_eq!((reply.fit, names(&reply)[0]), (Some(Fit::Strong), "github__merge_pull_request"));
    assert!(!names(&reply).iter().any(|name| name.contains("issue")), "{:?}", names(&reply));
    assert!(reply.notes[0].starts_with(&format!("No tool here fits \"{UNSERVABLE}\". Nearest: ")));
    assert_eq!(reply.available, None, "the nearest tools are named instead");
    let reply = Chat::new(&crib).ask(&ask(&[
        UNSERVABLE,
        "mow lawns by moonlight, candles, lanterns and torches, number seven",
    ]));
    assert_eq!((reply.fit, reply.hits.len(), reply.notes.len()), (Some(Fit::None), 0, 2));
    let reply_to_both = Chat::new(&crib).ask(&ask(&["merge a pull request", UNSERVABLE]));
    assert_eq!(reply_to_both.fit, Some(Fit::Strong));
    let reply = Chat::new(&crib).ask(&ask(&[UNSERVABLE, "select:mail__send"]));
    assert_eq!((reply.fit, names(&reply)), (Some(Fit::Strong), vec!["mail__send"]));
}

#[test]
fn pattern_searches_and_browsing_have_no_fit() {
    let crib = by_words();
    let pattern = SearchRequest::pattern("issue");
    let mixed = ask(&[UNSERVABLE]).with_pattern("issue");
    for ask in [pattern, mixed] {
        let reply = Chat::new(&crib).ask(&ask);
        assert_eq!((reply.fit, reply.hits.len()), (None, 2));
        assert!(reply.hits.iter().all(|hit| hit.confidence.is_none()));
    }
    assert_eq!(Chat::new(&crib).search("").fit, None);
}

#[test]
fn without_refusing_the_nearest_tools_are_returned() {
    let crib = crib_with(&office(), "[rank]\nby = 'words'\n[search]\nrefuse = false\n");
    let reply = Chat::new(&crib).search(UNSERVABLE);
    assert_eq!(names(&reply), ["github__list_issues"]);
    assert_eq!((reply.fit, reply.notes.len()), (Some(Fit::Weak), 0));
}

/// The Claude Code preset must always return hits, and its reply format must not mention a fit.
#[cfg(feature = "presets")]
#[test]
fn the_claude_code_preset_never_refuses() {
    let settings = Preset::ClaudeCode.settings();
    let crib = Crib::new(catalog(&office()), settings);
    let reply = Chat::new(&crib).search(UNSERVABLE);
    assert_eq!(names(&reply), ["github__list_issues"]);
    let text = reply.for_model();
    assert!(!text.contains("fit") && !text.contains("confidence"), "{text}");
}

#[cfg(feature = "presets")]
#[test]
fn rankers_of_other_systems_have_no_confidence() {
    for preset in [Preset::Everruns, Preset::Hermes, Preset::Opencode] {
        let crib = Crib::new(catalog(&office()), preset.settings());
        let scope = Scope::all(crib.catalog());
        for query in ["issue", "select:mail__send", "issue a warrant for jugglers and acrobats"] {
            let reply = Chat::new(&crib).search(query);
            assert_eq!(reply.fit, None, "{preset} {query}");
            assert!(!reply.hits.is_empty(), "{preset} {query}");
            let text = reply.text(ReplyFormat::Json);
            assert!(!text.contains("\"fit\"") && !text.contains("\"confidence\""), "{text}");
        }
        let toolcrib_core::Query::Words(words) = crib.parse("issue", &scope) else { panic!() };
        let ranked = crib.rank(&words, &scope, 5);
        assert_eq!(crib.decide_fit(&ranked), None, "{preset}");
        let why = crib.explain(&words, &scope, ranked[0].id).unwrap();
        assert_eq!((why.confidence, why.coverage), (None, None), "{preset}");
    }
}

/// If a refusal is wrong, it must not cost the model many tokens, whatever the descriptions are.
#[test]
fn the_note_that_no_tool_fits_is_short_and_says_what_the_nearest_tools_do() {
    let long = "Lists every issue that anybody ever opened in any of the repositories of an organisation. ";
    let tools = ["one", "two", "three", "four"].map(|name| {
        let name = format!("issue_tracker_{name}");
        tool(&name, &long.repeat(4), &json!({}))
    });
    let crib = Crib::new(catalog(&tools), Preset::Words.settings());
    let query = format!("issues {UNSERVABLE}");
    let reply = Chat::new(&crib).search(&query);
    assert_eq!((reply.fit, reply.notes.len()), (Some(Fit::None), 1));
    let note = &reply.notes[0];
    assert!(crib.counter().count(note) <= 120, "{note}");
    assert_eq!(note.matches("issue_tracker_").count(), 3, "{note}");
    assert!(note.contains("(\"Lists every"), "{note}");
}

#[test]
fn a_weak_fit_is_noted_in_words() {
    let crib = by_words();
    let reply = Chat::new(&crib).search("merge jugglers, acrobats, magicians");
    let notes: Vec<bool> = reply.notes.iter().map(|note| note.starts_with("Weak fit: ")).collect();
    assert_eq!((reply.fit, &notes[..]), (Some(Fit::Weak), &[true][..]), "{reply:?}");
    let strong = Chat::new(&crib).search("merge a pull request");
    assert_eq!((strong.fit, strong.notes.len()), (Some(Fit::Strong), 0));
}

#[test]
fn every_reply_format_says_that_no_tool_fits() {
    let crib = by_words();
    let reply = Chat::new(&crib).search(UNSERVABLE);
    for form in [
        ReplyFormat::Json,
        ReplyFormat::Functions,
        ReplyFormat::Markdown,
        ReplyFormat::Tools,
        ReplyFormat::Matches,
    ] {
        let text = reply.text(form);
        let has_note = text.contains("No tool here fits") && text.contains("select:NAME");
        assert!(has_note && text.contains("github__list_issues"), "{form:?}: {text}");
        assert!(
            !text.contains("mail__send"),
            "the list of all tools is left out: {form:?}: {text}"
        );
    }
}

#[test]
fn the_fit_does_not_depend_on_the_limit() {
    let crib = by_words();
    let with_limit = |limit| {
        let ask = SearchRequest::query("post the minutes to a channel").with_limit(limit);
        let reply = Chat::new(&crib).ask(&ask);
        (reply.fit, reply.hits[0].confidence)
    };
    assert_eq!(with_limit(1), with_limit(8));
}

/// A tool outside the scope would be nearest to the query. The reply must not name it, and must list only tools in
/// scope.
#[test]
fn hidden_tools_are_not_named_as_nearest() {
    let crib = by_words();
    let reply = Chat::within(&crib, &["github__create_issue", "mail__send"]).search(UNSERVABLE);
    let note =
        format!("Nothing matches \"{UNSERVABLE}\". Try another word for it, or fewer words.");
    assert_eq!((reply.fit, reply.notes), (Some(Fit::None), vec![note]));
    let in_scope = vec!["github__create_issue".to_owned(), "mail__send".to_owned()];
    assert_eq!(reply.available, Some(AvailableTools::Names(in_scope)));
}

#[test]
fn connecting_servers_are_listed_if_no_tool_fits() {
    let crib = by_words();
    let scope = Scope::all(crib.catalog());
    let connecting = ["jira".to_owned()];
    let turn = TurnContext::new(&scope).with_connecting(&connecting);
    let reply = crib.search(&turn, &mut Conversation::new(), &SearchRequest::query(UNSERVABLE));
    assert_eq!((reply.fit, &reply.connecting[..]), (Some(Fit::None), &connecting[..]));
    assert_eq!(reply.notes[1], "Some servers are still connecting: search again in a moment.");
}

#[test]
fn an_explanation_has_the_confidence_that_the_hit_has() {
    let cribs = [by_words(), Crib::new(catalog(&hybrid::post()), hybrid::settings())];
    for (crib, query) in cribs.iter().zip(["create an issue now", "cyclone parcel tomorrow"]) {
        let scope = Scope::all(crib.catalog());
        let toolcrib_core::Query::Words(words) = crib.parse(query, &scope) else { panic!() };
        let ranked = crib.rank(&words, &scope, 10);
        assert!(ranked.len() > 1, "{query}");
        for hit in &ranked {
            let why = crib.explain(&words, &scope, hit.id).unwrap();
            let (explained, ranked_confidence) = (why.confidence.unwrap(), hit.confidence.unwrap());
            assert!(
                (explained - ranked_confidence).abs() < 1e-4,
                "{query}: {explained} {ranked_confidence}"
            );
        }
    }
}

#[test]
fn a_fit_decision_has_a_reason_in_words() {
    let crib = by_words();
    let scope = Scope::all(crib.catalog());
    let decision = |query: &str| {
        let toolcrib_core::Query::Words(words) = crib.parse(query, &scope) else {
            panic!("{query}")
        };
        crib.decide_fit(&crib.rank(&words, &scope, 1)).unwrap()
    };
    assert_eq!(decision("mail__send"), FitDecision { fit: Fit::Strong, reason: FitReason::Named });
    assert_eq!(decision("xylophone"), FitDecision { fit: Fit::None, reason: FitReason::NoHits });
    let reason = |query: &str| decision(query).reason.to_string();
    assert_eq!(reason("mail__send"), "the query names the first hit");
    assert!(
        reason(UNSERVABLE).starts_with("the first hit has confidence 0.0"),
        "{}",
        reason(UNSERVABLE)
    );
    assert!(reason(UNSERVABLE).contains(", below 0."), "{}", reason(UNSERVABLE));
}

/// Every tool has some cosine with the query, and many share a word with it. Neither is enough for a tool to be
/// returned after a good hit.
#[test]
fn unlikely_tools_do_not_follow_a_good_hit() {
    let found = |refuse| {
        let mut settings = hybrid::settings();
        (settings.search.cutoff, settings.search.refuse) = (0.0, refuse);
        let mut tools = hybrid::post();
        tools.push(tool(
            "sky__lamp",
            "Light for the dark, from a lantern or a candle.",
            &json!({}),
        ));
        let crib = Crib::new(catalog(&tools), settings);
        names(&Chat::new(&crib).search("drizzle cyclone mercury lantern")).join(" ")
    };
    assert_eq!(found(false), "sky__cyclone sky__lamp");
    assert_eq!(found(true), "sky__cyclone");
}

#[test]
fn a_reply_is_strong_by_its_fit_or_without_one_by_requested_names() {
    let cribs = [crib(&office()), crib_with(&office(), "[rank]\nby = 'bm25'")];
    for (query, strong) in [
        ("github__create_issue", [true, false]),
        ("select:github__create_issue", [true, true]),
        ("select:github__create_issue,github__nothing", [false, false]),
        ("", [false, false]),
    ] {
        for (crib, strong) in cribs.iter().zip(strong) {
            let reply = Chat::new(crib).search(query);
            assert_eq!(reply.is_strong(), strong, "{query}: {reply:?}");
        }
    }
}
