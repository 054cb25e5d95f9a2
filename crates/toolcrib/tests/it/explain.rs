//! Tests of `toolcrib explain`.

use crate::{file, toolcrib};

#[test]
fn the_numbers_add_up_to_the_score() {
    let queries = ["create an issue", "who is free for a meeting tomorrow", "isue serch"];
    let both = ["default", "words"];
    for (query, preset) in queries.iter().flat_map(|query| both.map(|preset| (query, preset))) {
        let run = toolcrib(&["explain", "--json", "--preset", preset, query]);
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
                "filter_bonus",
                "substring_bonus",
            ];
            let words: f64 = tool["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|w| w["points"].as_f64().unwrap())
                .sum();
            let number = |value: &serde_json::Value| value.as_f64().unwrap();
            let mut sum = words + bonuses.iter().map(|key| number(&tool[key])).sum::<f64>();
            if preset == "default" {
                let both = &tool["nearness"];
                assert!((sum - number(&both["word_score"])).abs() < 1e-4, "{tool}");
                sum = number(&both["words"]) + number(&both["vectors"]) + number(&both["cover"]);
            }
            sum += number(&tool["exact_bonus"]);
            assert!((sum - number(&tool["score"])).abs() < 1e-4, "{tool}");
        }
    }
}

#[test]
fn the_printed_parts_add_up_to_the_score() {
    for preset in ["default", "words"] {
        let query = "create a github issue";
        let run = toolcrib(&["explain", "--preset", preset, query, "github/create_issue"]);
        // The numbers in the first column add up to the score, and the indented numbers add up to the word score.
        let number = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
        let inner = |line: &&str| line.starts_with("            ");
        let is_score = |line: &&str| line.ends_with("  score");
        let score = run.out.lines().find(is_score).and_then(number).unwrap();
        let (below, parts): (Vec<&str>, Vec<&str>) =
            run.out.lines().take_while(|line| !is_score(line)).partition(inner);
        let sum = |lines: &[&str]| lines.iter().filter_map(|line| number(line)).sum::<f64>();
        assert!((sum(&parts) - score).abs() < 1e-3, "{}", run.out);
        if preset == "default" {
            let word_score = parts[1].split(" words: score ").nth(1).and_then(number).unwrap();
            assert!((sum(&below) - word_score).abs() < 1e-3, "{}", run.out);
        }
        assert!(run.out.starts_with("github__create_issue  rank 1\n"), "{}", run.out);
    }
}

#[test]
fn a_tool_that_does_not_match_is_explained_and_exits_with_1() {
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
    assert_eq!((run.code, run.err.contains("hint: search for words")), (2, true));
}

/// The `hermes` preset searches only tools that may be deferred, so other tools are not ranked.
#[test]
fn a_tool_that_is_not_ranked_exits_with_1() {
    let tools = "{\"name\":\"terminal\",\"description\":\"Runs a command.\",\"input_schema\":{}}\n{\"name\":\"acme__run\",\"description\":\"Runs a job.\",\"input_schema\":{}}\n";
    let catalog = file("core.jsonl", tools);
    let args =
        ["explain", "--catalog", &catalog, "--preset", "hermes", "run a command", "terminal"];
    let run = toolcrib(&args);
    let notice = "`terminal` is not ranked: the model always sees its full definition\n";
    assert_eq!((run.code, run.out.as_str()), (1, notice));
}

#[test]
fn confidence_and_fit_are_printed_with_their_reason() {
    let run = toolcrib(&["explain", "--json", "create a github issue"]);
    let answer = run.json();
    let first = &answer["tools"][0];
    let sure = first["confidence"].as_f64().unwrap();
    assert!(sure > 0.5 && sure <= 1.0 && first["coverage"].as_f64().unwrap() > 1.0, "{first}");
    let because = format!("the first hit has confidence {sure:.2}, at least ");
    assert_eq!(answer["fit"], "strong");
    assert!(answer["because"].as_str().unwrap().starts_with(&because), "{answer}");
    let run = toolcrib(&["explain", "create a github issue"]);
    assert!(
        run.out.contains(&format!("\n{sure:>10.4}  confidence, from similarity ")),
        "{}",
        run.out
    );
    let fit_line = format!("\nfit strong: {}\n", answer["because"].as_str().unwrap());
    assert!(run.out.ends_with(&fit_line), "{}", run.out);
    let run = toolcrib(&["explain", "github__create_issue"]);
    assert!(run.out.ends_with("\nfit strong: the query names the first hit\n"), "{}", run.out);
}
