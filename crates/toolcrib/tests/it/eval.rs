//! Tests of `toolcrib eval`.

use serde_json::Value;

use crate::{file, sample, toolcrib};

#[test]
fn a_dataset_is_measured_and_the_run_file_is_written() {
    let out = file("run.jsonl", "");
    let run = toolcrib(&["eval", "--json", "--run-file", &out, sample()]);
    assert_eq!(run.code, 0, "{run:?}");
    let answer = run.json();
    let set = &answer["datasets"][0];
    assert_eq!(
        (answer["preset"].as_str(), set["name"].as_str(), set["tools"].as_u64()),
        (Some("default"), Some("sample"), Some(272))
    );
    for key in [
        "ndcg@10",
        "recall@1",
        "recall@5",
        "recall@10",
        "mrr",
        "complete@5",
        "build_ms",
        "p50_us",
        "p99_us",
    ] {
        assert_eq!(set[key], answer["mean"][key], "the mean of one set is its value: {key}");
        assert!(set[key].as_f64().unwrap() > 0.0);
    }
    let lines: Vec<Value> = std::fs::read_to_string(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |key: &str| set[key].as_u64().unwrap();
    assert_eq!(lines.len() as u64, count("queries") + count("unservable"));
    let of_first = |key: &str| lines[0][key].as_array().unwrap().len();
    assert!(of_first("ranked") <= 10 && lines[0]["dataset"] == "sample");
    assert_eq!(of_first("ranked"), of_first("confidence"), "each hit has its confidence");
}

/// Asserts a minimum quality on the sample catalog, in which the tools of 42 servers compete for every word.
#[test]
fn the_sample_stays_findable() {
    let mean = &toolcrib(&["eval", "--json", sample()]).json()["mean"];
    let number = |key: &str| mean[key].as_f64().unwrap();
    assert!(number("ndcg@10") > 0.7 && number("recall@10") > 0.85, "{mean}");
}

#[test]
fn the_ranking_is_the_same_every_time() {
    let ranked = || {
        let out = file("again.jsonl", "");
        toolcrib(&["eval", "--run-file", &out, sample()]);
        std::fs::read_to_string(out).unwrap()
    };
    assert_eq!(ranked(), ranked());
}

#[test]
fn a_folder_without_queries_is_skipped_with_a_warning() {
    let catalog = file("only/catalog.jsonl", "{\"name\":\"a\",\"input_schema\":{}}\n");
    let folder = catalog.strip_suffix("/catalog.jsonl").unwrap();
    let run = toolcrib(&["eval", "--json", sample(), folder]);
    let warnings = "warning: skipping `only`, which has no queries\n";
    assert_eq!((run.code, run.err.as_str()), (0, warnings));
    assert_eq!(toolcrib(&["eval", folder]).code, 1, "the exit code is 1 if nothing was measured");
}

#[test]
fn queries_that_no_tool_serves_are_run_and_their_answers_are_counted() {
    let tools = "{\"name\":\"create_invoice\",\"description\":\"Create an invoice for a customer.\",\"input_schema\":{}}\n";
    let catalog = file("none/catalog.jsonl", tools);
    let queries =
        [("1", "invoice a customer", r#"["create_invoice"]"#), ("2", "how deep is the sea", "[]")];
    let lines = queries
        .map(|(id, query, gold)| format!(r#"{{"id":"{id}","query":"{query}","gold":{gold}}}"#));
    file("none/queries.jsonl", &lines.join("\n"));
    let folder = catalog.strip_suffix("/catalog.jsonl").unwrap();
    let run = toolcrib(&["eval", "--json", folder]).json();
    let set = &run["datasets"][0];
    assert_eq!((set["queries"].as_u64(), set["unservable"].as_u64()), (Some(1), Some(1)), "{run}");
    for metrics in [set, &run["mean"]] {
        assert_eq!(
            (metrics["answered"].as_f64(), metrics["unservable_answered"].as_f64()),
            (Some(1.0), Some(0.0))
        );
    }
    // A servable query that is refused does not count for the effective recall, although its tool was ranked first.
    let refused = r#"{"id":"3","query":"invoice gondolas, lanterns, jugglers, acrobats, trombones, trumpets, violins, drummers, dancers, candles, torches, ribbons, balloons, banners, masks, capes, puppets, clowns, magicians, sopranos, tenors, harps, flutes, cellos, tambourines and fireworks","gold":["create_invoice"]}"#;
    file("refused/catalog.jsonl", tools);
    file("refused/queries.jsonl", &format!("{}\n{refused}", lines[0]));
    let run =
        toolcrib(&["eval", "--json", "--preset", "words", &folder.replace("none", "refused")]);
    let mean = &run.json()["mean"];
    let shares = ["recall@5", "effective_recall@5", "answered"].map(|key| mean[key].as_f64());
    assert_eq!(shares, [Some(1.0), Some(0.5), Some(0.5)], "{run:?}");
    // For a ranker that does not judge how well a hit fits, the share of answered queries is not reported.
    let hermes = toolcrib(&["eval", "--json", "--preset", "hermes", folder]).json();
    assert!(hermes["mean"].get("answered").is_none(), "{hermes}");
    // A dataset in which no tool serves any query has no ranking quality, so it does not lower the mean.
    file("none2/catalog.jsonl", tools);
    file("none2/queries.jsonl", &lines[1]);
    let run = toolcrib(&["eval", "--json", folder, &folder.replace("none", "none2")]).json();
    assert_eq!(run["mean"]["ndcg@10"].as_f64(), Some(1.0), "{run}");
}

#[test]
fn gold_names_that_are_not_in_the_catalog_are_reported() {
    let catalog = file("gold/catalog.jsonl", "{\"name\":\"a\",\"input_schema\":{}}\n");
    file("gold/queries.jsonl", "{\"id\":\"1\",\"query\":\"a\",\"gold\":[\"b\"]}\n");
    let run = toolcrib(&["eval", catalog.strip_suffix("/catalog.jsonl").unwrap()]);
    assert_eq!(run.err, "warning: `gold`: 1 gold names are not in the catalog, for example `b`\n");
}

#[test]
fn queries_are_plain_words() {
    let tools = "{\"name\":\"north\",\"description\":\"Degrees north.\",\"input_schema\":{}}\n{\"name\":\"south\",\"description\":\"Degrees south.\",\"input_schema\":{}}\n";
    let catalog = file("plain/catalog.jsonl", tools);
    file(
        "plain/queries.jsonl",
        "{\"id\":\"1\",\"query\":\"select:x -south degrees +nothere\",\"gold\":[\"south\"]}\n",
    );
    let run = toolcrib(&["eval", "--json", catalog.strip_suffix("/catalog.jsonl").unwrap()]);
    assert_eq!(run.json()["mean"]["recall@1"].as_f64(), Some(1.0), "{run:?}");
}

#[test]
fn invalid_datasets_are_input_errors_that_name_the_place() {
    let catalog = file("broken/catalog.jsonl", "{\"name\":\"a\",\"input_schema\":{}}\n");
    file("broken/queries.jsonl", "{\"id\":\"1\"}\n");
    let run = toolcrib(&["eval", catalog.strip_suffix("/catalog.jsonl").unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("queries.jsonl`, line 1: missing field `query`")
            && run.err.contains("\nhint: "),
        "{}",
        run.err
    );
    let run = toolcrib(&["eval", "/nowhere"]);
    assert_eq!((run.code, run.err.contains("hint: a dataset is a folder")), (2, true));
}
