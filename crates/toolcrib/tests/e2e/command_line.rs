//! Tests of the commands that look at configured servers (`search`, `explain`, `stats`, `tools`) or call their tools
//! (`call`), with real servers.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::gateway::{Home, server};
use crate::support::{node, peer};

struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// Runs a command with the config of `home` as the user's own config.
fn run(home: &Home, args: &[&str]) -> Run {
    let work = home.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(args).current_dir(work).env("HOME", home.path());
    command.env("XDG_CONFIG_HOME", home.path().join("config"));
    command.env("XDG_STATE_HOME", home.path().join("state")).stdin(Stdio::null());
    let done = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
}

/// Creates a home folder whose user has configured the servers `everything` and `time`, and more lines of config.
fn home(more: &str) -> Home {
    let script = peer("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let everything = server("everything", &node(&script, &[]), "");
    let time = server("time", &vec![peer("python/bin/mcp-server-time")], "");
    // On a busy machine, the background gateway may start slowly, so the commands wait longer for it.
    let config = format!("{everything}{time}{more}\n[gateway]\nbackground_wait = 600\n");
    let home = Home::new("");
    let folder = home.path().join("config/toolcrib");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("toolcrib.toml"), config).unwrap();
    home
}

/// The names in a list of objects.
fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn commands_use_the_configured_servers() {
    let home = home("");
    // The first command asks the servers, and the others use the remembered lists.
    let first = run(&home, &["search", "--json", "what time is it in Tokyo"]);
    assert_eq!((first.code, &first.json()["hits"][0]["server"]), (0, &json!("time")));
    assert!(first.err.contains("note: asking 2 servers for their tools"), "{}", first.err);
    let explained = run(&home, &["explain", "--json", "time in Tokyo", "time/get_current_time"]);
    assert_eq!(explained.json()["tools"][0]["name"], "time__get_current_time");
    let stats = run(&home, &["stats", "--json"]).json();
    let servers: Vec<_> =
        stats["servers"].as_array().unwrap().iter().map(|it| &it["server"]).collect();
    assert_eq!(servers, ["everything", "time"], "{stats}");
    let listed = run(&home, &["tools", "--json"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let report = listed.json();
    assert_eq!(report["source"]["kind"], "config");
    assert_eq!(json!(report["tools"].as_array().unwrap().len()), stats["tools"]);
    assert!(names(&report["tools"]).contains(&"everything__echo"), "{report}");
    let sample = run(&home, &["search", "--json", "--sample", "create a github issue"]);
    assert_eq!(sample.json()["hits"][0]["name"], "github__create_issue");
}

#[test]
fn tools_are_listed_by_pattern_and_exported_as_a_catalog() {
    let home = home("[servers.broken]\ncommand = '/nowhere/x'\n");
    let all = run(&home, &["tools"]);
    assert!(all.err.contains("warning: `broken`: cannot find the command"), "{}", all.err);
    assert!(all.out.contains("\ntime (2 tools)\n  time__convert_time "), "{}", all.out);
    assert!(all.out.contains("\nbroken (not known yet)\n"), "{}", all.out);
    for (pattern, expected) in [
        ("time/*", &["time__convert_time", "time__get_current_time"][..]),
        ("ECHO", &["everything__echo"]),
        ("*convert*", &["time__convert_time"]),
    ] {
        assert_eq!(names(&run(&home, &["tools", "--json", pattern]).json()["tools"]), expected);
    }
    let none = run(&home, &["tools", "get_curent_time"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
    assert!(none.err.contains("hint: did you mean time__get_current_time"), "{}", none.err);

    let file = home.path().join("catalog.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(run(&home, &["tools", "--export", file]).code, 0);
    let exported = run(&home, &["tools", "--json", "--catalog", file]).json();
    assert_eq!(exported["tools"], run(&home, &["tools", "--json"]).json()["tools"]);
    let query = "convert a time between zones";
    let hits = |args: &[&str]| run(&home, args).json()["hits"].clone();
    assert_eq!(
        hits(&["search", "--json", "--catalog", file, query]),
        hits(&["search", "--json", query]),
        "an exported catalog is searched like the servers themselves"
    );
}

#[test]
fn tools_are_called() {
    let home = home("");
    let sum = run(&home, &["call", "everything/get-sum", "a=2", "b=3"]);
    assert_eq!((sum.code, sum.out.as_str()), (0, "The sum of 2 and 3 is 5.\n"), "{}", sum.err);
    let args = ["call", "--json", "--args", r#"{"a": 2}"#, "everything__get-sum", "b=40"];
    let sum = run(&home, &args).json();
    assert_eq!(sum["tool"], "everything__get-sum");
    assert_eq!(sum["result"]["content"][0]["text"], "The sum of 2 and 40 is 42.");
    // The text of the parameter looks like a number, but its schema says that it is text.
    let echo = run(&home, &["call", "everything/echo", "message=1.10"]);
    assert_eq!((echo.code, echo.out.as_str()), (0, "Echo: 1.10\n"));
    let image = run(&home, &["call", "everything/get-tiny-image"]);
    assert!(image.out.contains("[image: image/png, "), "{}", image.out);
}

#[test]
fn a_wrong_call_is_explained_and_not_sent() {
    let home = home("[profiles.clock]\nservers = [\"time\"]\n");
    for (args, code, expected) in [
        (
            &["everything/get-sum", "a=1", "c=2"][..],
            2,
            &["the tool has no parameter `c`", "hint: its parameters are a, b"][..],
        ),
        (
            &["everything/get-sum", "a=x"],
            2,
            &["\"b\" is a required property", "arguments: {a: number; b: number}"],
        ),
        (&["everything/get-some"], 2, &["there is no tool", "did you mean everything__get-sum"]),
        (&["everything/echo", "message"], 2, &["not of the form KEY=VALUE"]),
        (&["everything/echo", "--args", "[1]"], 2, &["`--args`: not a JSON object"]),
        (&["everything/echo", "--profile", "clock", "message=x"], 2, &["there is no tool"]),
        (&["everything/echo", "--profile", "nope", "message=x"], 2, &["has these profiles: clock"]),
        // The arguments are right, but the server rejects the call.
        (
            &["time/get_current_time", "timezone=Nowhere"],
            1,
            &["error: `time__get_current_time` reported an error"],
        ),
    ] {
        let done = run(&home, &[&["call"], args].concat());
        assert_eq!(done.code, code, "{args:?}: {}{}", done.out, done.err);
        for text in expected {
            assert!(done.err.contains(text), "{args:?}: {}", done.err);
        }
    }
    let refused = run(&home, &["call", "--json", "everything/get-sum", "a=x"]);
    let report = refused.json();
    assert_eq!((refused.code, &report["refusal"]["error"]), (2, &json!("invalid_arguments")));
    assert_eq!(report["refusal"]["input_schema"]["required"], json!(["a", "b"]));
}

#[test]
fn without_a_config_the_sample_is_used_and_calls_are_not_possible() {
    let home = Home::new("");
    let found = run(&home, &["search", "--json", "create a github issue"]);
    assert_eq!(found.json()["hits"][0]["name"], "github__create_issue");
    for args in [&["call", "a/b"][..], &["tools", "--refresh"], &["search", "--profile", "x", "y"]]
    {
        let done = run(&home, args);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(done.err.contains("there is no config"), "{args:?}: {}", done.err);
        assert!(done.err.contains("hint: `toolcrib connect`"), "{args:?}: {}", done.err);
    }
}
