//! `toolcrib explain`.

use crate::{file, toolcrib};

#[test]
fn the_numbers_add_up_to_the_score() {
    for query in ["create an issue", "who is free for a meeting tomorrow", "isue serch"] {
        let run = toolcrib(&["explain", "--json", query]);
        assert_eq!(run.code, 0);
        let answer = run.json();
        let tools = answer["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 3);
        for tool in tools {
            let bonuses = [
                "pair_bonus",
                "phrase_bonus",
                "name_bonus",
                "server_bonus",
                "exact_bonus",
                "filter_bonus",
                "substring_bonus",
            ];
            let words: f64 = tool["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|w| w["points"].as_f64().unwrap())
                .sum();
            let sum = words + bonuses.iter().map(|key| tool[key].as_f64().unwrap()).sum::<f64>();
            assert!((sum - tool["score"].as_f64().unwrap()).abs() < 1e-4, "{tool}");
        }
    }
}

#[test]
fn the_printed_points_add_up_too() {
    let run = toolcrib(&["explain", "create a github issue", "github/create_issue"]);
    let number =
        |line: &str| line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let is_score = |line: &&str| line.ends_with("  score");
    let score = run.out.lines().find(is_score).and_then(number).unwrap();
    let parts: f64 = run.out.lines().take_while(|line| !is_score(line)).filter_map(number).sum();
    assert!((parts - score).abs() < 1e-3, "{}", run.out);
    assert!(run.out.starts_with("github__create_issue  rank 1\n"), "{}", run.out);
}

#[test]
fn a_tool_that_does_not_fit_is_explained_and_is_a_no() {
    let run = toolcrib(&["explain", "--json", "create an issue", "aws__get_caller_identity"]);
    assert_eq!((run.code, &run.json()["tools"][0]["rank"]), (1, &serde_json::Value::Null));
}

#[test]
fn unknown_tools_and_queries_without_words_are_input_errors() {
    let run = toolcrib(&["explain", "issue", "github__create_isue"]);
    assert_eq!(run.code, 2);
    assert_eq!(
        run.err,
        "error: `github__create_isue`: there is no tool `github__create_isue`\nhint: did you mean github__create_issue, gitlab__create_issue, github__update_issue?\n"
    );
    let run = toolcrib(&["explain", "select:a"]);
    assert_eq!((run.code, run.err.contains("hint: give words")), (2, true));
}

/// Hermes searches only what may be deferred.
#[test]
fn a_tool_that_is_not_searched_is_a_no() {
    let tools = "{\"name\":\"terminal\",\"description\":\"Runs a command.\",\"input_schema\":{}}\n{\"name\":\"acme__run\",\"description\":\"Runs a job.\",\"input_schema\":{}}\n";
    let catalog = file("core.jsonl", tools);
    let args =
        ["explain", "--catalog", &catalog, "--preset", "hermes", "run a command", "terminal"];
    let run = toolcrib(&args);
    let said = "`terminal` is not searched: the model always has it in full\n";
    assert_eq!((run.code, run.out.as_str()), (1, said));
}
