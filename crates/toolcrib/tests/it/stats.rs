//! Tests of `toolcrib stats`.

use crate::{file, toolcrib, with_input};

#[test]
fn costs_and_savings_are_counted() {
    let answer = toolcrib(&["stats", "--json", "--context", "100000"]).json();
    let number = |value: &serde_json::Value| value.as_i64().unwrap();
    let share = |value: &serde_json::Value| value.as_f64().unwrap();
    let servers = answer["servers"].as_array().unwrap();
    let total: i64 = servers.iter().map(|server| number(&server["tokens"])).sum();
    assert_eq!(number(&answer["tokens"]), total);
    assert!((1_000.0 * share(&answer["context_percent"])).round() as i64 == total);
    let kinds: Vec<_> = answer["disclosures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["disclosure"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["pass-through", "bridge", "append", "reveal", "terse"]);
    let bridge = &answer["disclosures"][1];
    assert_eq!(number(&bridge["saved"]), total - number(&bridge["tokens"]));
    assert!(share(&bridge["saved_percent"]) > 85.0);
    assert_eq!(
        (answer["exact"].as_bool(), answer["counter"].as_str()),
        (Some(true), Some("o200k"))
    );
    assert_eq!(
        (answer["active"].as_bool(), answer["reason"].as_str()),
        (Some(true), Some("272 tools, the threshold is 15"))
    );
}

#[test]
fn a_model_without_a_public_vocabulary_gets_an_estimate_that_says_so() {
    let run = toolcrib(&["stats", "--model", "claude-opus-5"]);
    assert!(run.out.contains("(o200k, an estimate for claude-opus-5)"), "{}", run.out);
}

#[test]
fn tools_with_too_little_description_are_listed() {
    let tools = "{\"name\":\"acme__op1\",\"server\":\"acme\",\"input_schema\":{}}\n{\"name\":\"acme__pay_open_invoice\",\"server\":\"acme\",\"input_schema\":{}}\n";
    let run = with_input(&["stats", "--catalog", "-"], tools);
    assert!(
        run.out.contains(
            "1 tool has too little description to be found:\n  acme__op1 (no description)\n"
        ),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("would not be deferred (bridge): below the thresholds"),
        "{}",
        run.out
    );
}

#[test]
fn settings_are_applied_and_a_typo_is_an_error_that_names_its_place() {
    let good = file("good.toml", "[activation]\nmode = false\n");
    assert!(
        toolcrib(&["stats", "--config", &good])
            .out
            .contains("would not be deferred (bridge): tool search is off")
    );
    let bad = file("bad.toml", "[activation]\ntool = 3\n");
    let run = toolcrib(&["stats", "--json", "--config", &bad]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("line 2, column 1") && run.err.contains("unknown field `tool`"),
        "{}",
        run.err
    );
    assert!(run.err.ends_with(
        "hint: did you mean `tools`? `toolcrib docs settings` lists the keys and their defaults\n"
    ));
    assert!(run.json()["hint"].is_string());
}
