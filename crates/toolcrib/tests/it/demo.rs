//! Tests of `toolcrib demo`.

use serde_json::Value;

use crate::toolcrib;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// With every preset, the two right tools are run, and every total is the sum of its turns.
#[test]
fn the_task_is_completed_with_every_preset_and_the_numbers_add_up() {
    for preset in ["default", "words", "everruns", "hermes", "opencode", "claude-code"] {
        let run = toolcrib(&["demo", "--json", "--preset", preset]);
        let answer = run.json();
        assert_eq!((run.code, answer["preset"].as_str()), (0, Some(preset)));
        let turns = answer["turns"].as_array().unwrap();
        let ran: Vec<&str> = turns.iter().filter_map(|turn| turn["run"]["name"].as_str()).collect();
        assert_eq!(ran, ["github__create_issue", "slack__post_message"], "{preset}");
        let sum: u64 = turns.iter().map(|turn| number(&turn["tokens"])).sum();
        assert_eq!(number(&answer["with"]["tokens"]), sum, "{preset}");
        let calls = turns.iter().filter(|turn| turn["answer"].is_null()).count() as u64;
        let without = &answer["without"];
        assert_eq!(
            (number(&without["turns"]), number(&without["tokens"])),
            (calls, calls * number(&answer["tokens"])),
            "{preset}"
        );
        assert_eq!(number(&turns[0]["tokens"]), number(&answer["first_turn"]), "{preset}");
    }
}

#[test]
fn the_default_preset_corrects_mistakes_and_saves_over_the_whole_conversation() {
    let answer = toolcrib(&["demo", "--json"]).json();
    let turns = answer["turns"].as_array().unwrap();
    let first = &turns[0]["answer"];
    assert_eq!(first["reply"]["loaded"][0], "github__create_issue");
    assert_eq!(first["why"]["name"], "github__create_issue");
    let refused = turns.iter().find(|turn| turn["refused"].is_object()).unwrap();
    assert_eq!(refused["refused"]["hint"], "\"titel\" should be \"title\"");
    let missed = turns.iter().find_map(|turn| turn["answer"]["reply"]["missing"].get(0)).unwrap();
    assert!(missed["nearest"].as_array().unwrap().contains(&Value::from("slack__post_message")));
    assert!(answer["saved_percent"].as_f64().unwrap() > 80.0);
}

#[test]
fn the_text_output_fits_a_terminal() {
    let run = toolcrib(&["demo"]);
    assert!(run.out.starts_with("272 tools on 42 servers cost "), "{}", run.out);
    assert!(run.out.contains("\n    runs github__create_issue {\"owner\":\"acme\""), "{}", run.out);
    assert_eq!(run.err, "");
    for preset in ["default", "everruns", "hermes", "opencode", "claude-code"] {
        let out = toolcrib(&["demo", "--preset", preset]).out;
        let wide = out.lines().find(|line| line.chars().count() > 100);
        assert!(out.lines().count() < 64 && wide.is_none(), "{preset}: {wide:?}");
    }
}
