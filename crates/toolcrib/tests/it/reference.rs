//! Tests of the commands that describe Toolcrib: completion scripts, man pages and help.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::{own_path, toolcrib};

/// Returns the commands that the help lists, without `help`.
fn listed_commands() -> BTreeSet<String> {
    let help = toolcrib(&["--help"]).out;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let is_entry = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let entries = list.lines().filter(is_entry);
    entries
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .filter(|name| name != "help")
        .collect()
}

/// Completes a command line in bash, and returns the suggestions. The last word is the one that is completed.
fn completed(words: &[&str]) -> BTreeSet<String> {
    let script = crate::file("completions.bash", &toolcrib(&["completions", "bash"]).out);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let run = format!(
        "source '{script}'; COMP_WORDS=({}); COMP_CWORD={}; _toolcrib toolcrib '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let done = Command::new("bash").args(["--norc", "-c", &run]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_shell_gets_a_script_that_knows_commands_and_values_but_not_hidden_commands() {
    for (shell, start) in [
        ("bash", "_toolcrib() {"),
        ("zsh", "#compdef toolcrib"),
        ("fish", "# Print an optspec for argparse"),
        ("elvish", "\nuse builtin;"),
        ("powershell", "\nusing namespace System.Management.Automation"),
    ] {
        let run = toolcrib(&["completions", shell]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{shell}");
        assert!(run.out.starts_with(start), "{shell}: {}", &run.out[..200]);
        // The descriptions of other commands mention the background gateway.
        let names = run.out.replace("background gateway", "");
        assert!(names.contains("doctor") && !names.contains("background"), "{shell}");
    }
    let run = toolcrib(&["completions", "tcsh"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("bash, elvish, fish, powershell, zsh"), "{}", run.err);
}

#[test]
fn bash_completes_commands_presets_clients_and_shells() {
    let commands = completed(&["toolcrib", ""]);
    assert!(commands.is_superset(&listed_commands()), "{commands:?}");
    assert!(!commands.contains("background"), "{commands:?}");
    let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(completed(&["toolcrib", "demo", "--preset", "o"]), set(&["opencode"]));
    assert_eq!(
        completed(&["toolcrib", "import", "--from", "cl"]),
        set(&["claude-code", "claude-desktop", "cline"])
    );
    assert_eq!(completed(&["toolcrib", "completions", "z"]), set(&["zsh"]));
    assert_eq!(completed(&["toolcrib", "man", "st"]), set(&["stats", "stop"]));
}

#[test]
fn every_listed_command_has_a_man_page() {
    let folder = own_path("pages");
    let run = toolcrib(&["man", "--out", folder.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let names = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written: BTreeSet<String> = names.collect();
    let mut expected: BTreeSet<String> =
        listed_commands().iter().map(|name| format!("toolcrib-{name}.1")).collect();
    expected.insert("toolcrib.1".to_owned());
    assert_eq!(written, expected);
    for (args, file, title) in [
        (&["man"][..], "toolcrib.1", ".TH toolcrib 1 "),
        (&["man", "search"], "toolcrib-search.1", ".TH toolcrib-search 1 "),
    ] {
        let run = toolcrib(args);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(run.out.contains(title), "{}", run.out);
        assert_eq!(run.out, fs::read_to_string(folder.join(file)).unwrap());
    }
}

#[test]
fn a_man_page_of_an_unknown_or_hidden_command_is_an_error() {
    for (name, hint) in [
        ("serch", "did you mean `search`?"),
        ("background", "`toolcrib --help` lists all commands"),
    ] {
        let run = toolcrib(&["man", name]);
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert_eq!(run.err, format!("error: `{name}`: not a command\nhint: {hint}\n"));
    }
}

#[test]
fn help_of_a_command_is_the_same_with_help_in_front_and_behind() {
    for name in listed_commands() {
        let run = toolcrib(&["help", &name]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{name}");
        assert_eq!(run.out, toolcrib(&[&name, "--help"]).out, "{name}");
    }
    assert_eq!(toolcrib(&["help"]).out, toolcrib(&["--help"]).out);
}

/// Returns the log of a gateway whose client disconnects at once.
fn log(environment: &[(&str, &str)]) -> String {
    let config = crate::file("none.toml", "");
    let done = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["mcp", "--own", "--config", &config])
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .envs(environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn the_log_has_colours_only_if_wanted() {
    for (environment, has_colours) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "0")], false),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ] {
        let log = log(environment);
        assert!(log.contains("INFO"), "{log}");
        assert_eq!(log.contains('\u{1b}'), has_colours, "{environment:?}: {log}");
    }
}
