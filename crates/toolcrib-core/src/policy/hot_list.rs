//! The hot list: tools that agents use all the time, recognised by their names.
//!
//! A client of the proxy sends all its tools and does not say which of them it needs constantly. If its shell or its
//! tool for asking the user were deferred, nearly every task would start with a search, and some models would stop
//! using these tools. So tools for six jobs are kept in full, up to a quarter of all tool tokens. With a larger share,
//! deferral would save too little.

use rustc_hash::FxHashMap;

use super::Rules;
use crate::catalog::{Catalog, ToolId};
use crate::spelling::fold_to_alphanumeric;
use crate::tool::{DeferPolicy, Tool};

/// The tools on the hot list may have at most `1 / SHARE_DIVISOR` of all tool tokens.
const SHARE_DIVISOR: usize = 4;

/// The six jobs, the most important first. Each job has the names of the tools that do it in known clients. Case and
/// word separators are ignored, so `run_shell_command` equals `RunShellCommand`.
///
/// The most common names of a job come first. Auxiliary tools are left out, such as those that read the output of a
/// running shell or edit a notebook. They are rarely needed, and never as the first tool.
const JOBS: [&[&str]; 6] = [
    // The shell, which can replace every other tool. Names by client: Claude Code, opencode, Pi (bash); Codex (shell,
    // local_shell, shell_command, exec_command); Gemini CLI and Qwen Code (run_shell_command); Cline and Roo
    // (execute_command); Cursor and Windsurf (run_terminal_cmd, run_command); Copilot (run_in_terminal); Hermes
    // (terminal); OpenHands (execute_bash).
    &[
        "bash",
        "shell",
        "local_shell",
        "shell_command",
        "exec_command",
        "run_shell_command",
        "execute_command",
        "run_terminal_cmd",
        "run_command",
        "run_in_terminal",
        "terminal",
        "execute_bash",
        "powershell",
    ],
    // Reading a file, which precedes every change. Names by client: Claude Code, opencode (read); Gemini CLI, Cline,
    // Roo, Cursor, Copilot, Hermes (read_file); Zed, Windsurf (view_file); Qwen Code (read_many_files).
    &["read", "read_file", "view_file", "view", "cat", "read_many_files"],
    // Changing a file. Names by client: Claude Code, opencode (edit, MultiEdit); Codex (apply_patch); Gemini CLI
    // (replace); Cline (replace_in_file); Roo (apply_diff); Cursor (search_replace, edit_file); Copilot
    // (replace_string_in_file, insert_edit_into_file); Hermes (patch); goose and Anthropic's editor (text_editor,
    // str_replace_editor, str_replace_based_edit_tool), whose tools also read and write files.
    &[
        "edit",
        "multi_edit",
        "apply_patch",
        "replace",
        "replace_in_file",
        "apply_diff",
        "search_replace",
        "edit_file",
        "text_editor",
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "replace_string_in_file",
        "insert_edit_into_file",
        "patch",
    ],
    // Writing a file. Names by client: Claude Code, opencode (write); Gemini CLI, Hermes (write_file); Cline, Roo,
    // Windsurf (write_to_file); Copilot (create_file).
    &["write", "write_file", "write_to_file", "create_file"],
    // Searching files by text and by name. Names by client: Claude Code, opencode (grep, glob); Codex (grep_files);
    // Gemini CLI (search_file_content, grep_search); Cline, Roo, Hermes (search_files); Cursor (codebase_search,
    // file_search). Tools that list a folder are included for clients without a glob tool.
    &[
        "grep",
        "glob",
        "grep_search",
        "grep_files",
        "search_file_content",
        "search_files",
        "codebase_search",
        "file_search",
        "find_files",
        "list_files",
        "list_dir",
        "list_directory",
        "ls",
    ],
    // Asking the user. A model that does not see such a tool guesses instead. Names by client: Claude Code
    // (AskUserQuestion); Codex (request_user_input); opencode (question); Gemini CLI (ask_user); Cline, Roo
    // (ask_followup_question); Hermes (clarify).
    &[
        "ask_user_question",
        "request_user_input",
        "question",
        "ask_user",
        "ask_followup_question",
        "ask_question",
        "clarify",
    ],
];

/// The tools to keep in full, the most important first. They are tools without a server that do one of the six jobs and
/// for which neither a rule nor their owner sets a policy. `sizes` has the number of tokens of each tool, by position
/// in the catalog.
///
/// If a tool does not fit the budget, it is skipped and the next one is tried. The result does not depend on the order
/// of the tools, unless the names of two tools differ only in case and separators.
pub fn hot_list(catalog: &Catalog, sizes: &[usize], rules: &Rules) -> Vec<ToolId> {
    let names = JOBS.iter().copied().flatten();
    let ranks: FxHashMap<String, usize> =
        names.enumerate().map(|(rank, name)| (fold_to_alphanumeric(name), rank)).collect();
    let rank = |tool: &Tool| {
        let free = tool.server().is_none() && rules.policy(tool).0 == DeferPolicy::Automatic;
        free.then(|| ranks.get(&fold_to_alphanumeric(tool.name())).copied()).flatten()
    };
    let ranked = catalog.ids().filter_map(|id| Some((rank(catalog.tool(id))?, id)));
    let mut ranked: Vec<(usize, ToolId)> = ranked.collect();
    ranked.sort_unstable();
    let size = |id: ToolId| sizes.get(id.index()).copied().unwrap_or_default();
    let mut room = sizes.iter().sum::<usize>() / SHARE_DIVISOR;
    let fits = |(_, id): (usize, ToolId)| {
        room = room.checked_sub(size(id))?;
        Some(id)
    };
    ranked.into_iter().filter_map(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Glob, VerdictReason};

    fn kept(tools: &[(&str, usize)], rules: &Rules) -> Vec<String> {
        let (catalog, sizes) = set(tools);
        let kept = hot_list(&catalog, &sizes, rules);
        kept.into_iter().map(|id| catalog.tool(id).name().to_owned()).collect()
    }

    fn set(tools: &[(&str, usize)]) -> (Catalog, Vec<usize>) {
        let list: Vec<_> = tools
            .iter()
            .map(|(name, _)| serde_json::json!({"name": name, "input_schema": {"type": "object"}}))
            .collect();
        let catalog = Catalog::from_json(serde_json::Value::from(list).to_string().as_bytes());
        (catalog.unwrap(), tools.iter().map(|(_, size)| *size).collect())
    }

    fn free() -> Rules {
        Rules::default()
    }

    #[test]
    fn no_name_belongs_to_two_jobs() {
        let mut names: Vec<String> =
            JOBS.iter().copied().flatten().map(|n| fold_to_alphanumeric(n)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn each_client_keeps_its_tools_for_the_six_jobs() {
        let more = ("other_tool", 10_000);
        for six in [
            ["Bash", "Read", "Edit", "Write", "Grep", "AskUserQuestion"],
            ["bash", "read", "edit", "write", "grep", "question"],
            [
                "exec_command",
                "read_file",
                "apply_patch",
                "write_file",
                "grep_files",
                "request_user_input",
            ],
            [
                "run_shell_command",
                "read_file",
                "replace",
                "write_file",
                "search_file_content",
                "ask_user",
            ],
            [
                "execute_command",
                "read_file",
                "replace_in_file",
                "write_to_file",
                "search_files",
                "ask_followup_question",
            ],
            ["RunShellCommand", "readFile", "apply-patch", "WRITE_FILE", "GrepSearch", "ask-user"],
        ] {
            // The tools are listed in reverse, to check that their order in the client's list does not matter.
            let mut tools: Vec<_> = six.iter().rev().map(|name| (*name, 100)).collect();
            tools.insert(3, more);
            assert_eq!(kept(&tools, &free()), six);
        }
    }

    #[test]
    fn a_tool_of_exactly_a_quarter_is_kept_and_a_larger_one_is_not() {
        assert_eq!(kept(&[("Bash", 100), ("x", 300)], &free()), ["Bash"]);
        assert!(kept(&[("Bash", 101), ("x", 300)], &free()).is_empty());
        assert_eq!(kept(&[("Read", 40), ("Bash", 60), ("x", 300)], &free()), ["Bash", "Read"]);
        assert_eq!(kept(&[("Read", 40), ("Bash", 61), ("x", 302)], &free()), ["Bash"]);
        assert!(kept(&[], &free()).is_empty());
    }

    #[test]
    fn a_huge_tool_is_skipped_and_does_not_affect_the_others() {
        let names: Vec<String> = (0..496).map(|i| format!("tool_{i}")).collect();
        let mut tools: Vec<_> = names.iter().map(|name| (name.as_str(), 50)).collect();
        tools.extend([("ask_user", 200), ("read", 9_000), ("shell", 300), ("grep", 100)]);
        assert_eq!(tools.len(), 500);
        assert_eq!(kept(&tools, &free()), ["shell", "grep", "ask_user"]);
    }

    #[test]
    fn of_two_spellings_of_one_name_the_first_comes_first() {
        let tools = [("read_file", 100), ("ReadFile", 100), ("x", 400)];
        assert_eq!(kept(&tools, &free()), ["read_file"]);
        assert_eq!(kept(&[tools[1], tools[0], tools[2]], &free()), ["ReadFile"]);
    }

    #[test]
    fn a_servers_tool_is_not_built_in() {
        let tools = [("mcp__x__read", 10), ("files__write", 10), ("mcp__bash", 10), ("y", 900)];
        assert!(kept(&tools, &free()).is_empty());
    }

    #[test]
    fn rules_take_precedence_and_tools_that_are_kept_anyway_do_not_count() {
        let tools = [("Bash", 100), ("Read", 100), ("Write", 100), ("x", 500)];
        let rules = Rules { always: vec![Glob::new("bash")], ..free() }.never_defer(["read"]);
        assert_eq!(kept(&tools, &rules), ["Write"]);
        // A rule must also take precedence over names that were added to the hot list with `keep_hot`.
        let (catalog, _) = set(&tools);
        let rules = rules.keep_hot(["Bash", "Read", "Write", "X"]);
        let policies: Vec<_> = catalog.tools().iter().map(|tool| rules.policy(tool)).collect();
        let rule = |text: &str| VerdictReason::Rule(text.into());
        let wanted = [
            (DeferPolicy::Always, rule("bash")),
            (DeferPolicy::Never, rule("read")),
            (DeferPolicy::Never, VerdictReason::Hot),
            (DeferPolicy::Automatic, VerdictReason::Owner(DeferPolicy::Automatic)),
        ];
        assert_eq!(policies, wanted);
    }
}
