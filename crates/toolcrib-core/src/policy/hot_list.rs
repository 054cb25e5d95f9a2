//! The tools an agent needs all the time, told by their names.
//!
//! A client of the proxy sends its whole set and says nothing of what it cannot do without. Deferring
//! its shell or its way to ask the user costs a search at the start of nearly every task, and some
//! models then stop using them. So six jobs stay in full, under the names that clients give them, as
//! far as a quarter of all the tools' tokens reaches: beyond that the list would eat the saving.

use rustc_hash::FxHashMap;

use super::Rules;
use crate::catalog::{Catalog, ToolId};
use crate::spelling::fold_to_alphanumeric;
use crate::tool::{DeferPolicy, Tool};

/// The share of all tokens that the list may take: one part in this many.
const SHARE: usize = 4;

/// The jobs, the most needed first, and what clients call the tools that do them. Letter case and
/// where the words part do not count: `run_shell_command` is `RunShellCommand`.
///
/// A job has its plainest names first. What only helps another tool (reading a running shell's
/// output, editing a notebook) is not here: it is wanted seldom, and never first.
const JOBS: [&[&str]; 6] = [
    // The shell: whoever has nothing else still has this. Claude Code, opencode, Pi (bash); Codex
    // (shell, local_shell, shell_command, exec_command); Gemini CLI and Qwen Code
    // (run_shell_command); Cline and Roo (execute_command); Cursor and Windsurf (run_terminal_cmd,
    // run_command); Copilot (run_in_terminal); Hermes (terminal); OpenHands (execute_bash).
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
    // Reading a file: nothing is changed unread. Claude Code, opencode (read); Gemini CLI, Cline,
    // Roo, Cursor, Copilot, Hermes (read_file); Zed, Windsurf (view_file); Qwen Code
    // (read_many_files).
    &["read", "read_file", "view_file", "view", "cat", "read_many_files"],
    // Changing a file. Claude Code, opencode (edit, MultiEdit); Codex (apply_patch); Gemini CLI
    // (replace); Cline (replace_in_file); Roo (apply_diff); Cursor (search_replace, edit_file); goose
    // and Anthropic's editor (text_editor, str_replace_editor, str_replace_based_edit_tool), which
    // read and write too; Copilot (replace_string_in_file, insert_edit_into_file); Hermes (patch).
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
    // Writing a file. Claude Code, opencode (write); Gemini CLI, Hermes (write_file); Cline, Roo,
    // Windsurf (write_to_file); Copilot (create_file).
    &["write", "write_file", "write_to_file", "create_file"],
    // Searching files, by text and by name. Claude Code, opencode (grep, glob); Codex (grep_files);
    // Gemini CLI (search_file_content, grep_search); Cline, Roo, Hermes (search_files); Cursor
    // (codebase_search, file_search); listing a folder is what is left where there is no glob.
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
    // Asking the user: a model that does not see the way guesses instead. Claude Code
    // (AskUserQuestion); Codex (request_user_input); opencode (question); Gemini CLI (ask_user);
    // Cline, Roo (ask_followup_question); Hermes (clarify).
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

/// The tools to keep in full, the most needed first: those without a server that do one of the jobs,
/// of which neither a rule nor their owner says anything. `sizes` are the tokens of each tool, by
/// position in the catalog.
///
/// One that does not fit is passed over, and the next may. Which ones there are depends on the set
/// and not on its order, but where two tools go by one folded name.
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
    let mut room = sizes.iter().sum::<usize>() / SHARE;
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

    /// The names of what is kept of these tools and sizes.
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
    fn no_name_stands_for_two_jobs() {
        let mut names: Vec<String> =
            JOBS.iter().copied().flatten().map(|n| fold_to_alphanumeric(n)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn each_client_keeps_its_six_whatever_it_calls_them() {
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
            // Backwards: where a tool stands in the client's list says nothing.
            let mut tools: Vec<_> = six.iter().rev().map(|name| (*name, 100)).collect();
            tools.insert(3, more);
            assert_eq!(kept(&tools, &free()), six);
        }
    }

    #[test]
    fn a_quarter_is_in_and_one_token_more_is_out() {
        assert_eq!(kept(&[("Bash", 100), ("x", 300)], &free()), ["Bash"]);
        assert!(kept(&[("Bash", 101), ("x", 300)], &free()).is_empty());
        assert_eq!(kept(&[("Read", 40), ("Bash", 60), ("x", 300)], &free()), ["Bash", "Read"]);
        assert_eq!(kept(&[("Read", 40), ("Bash", 61), ("x", 302)], &free()), ["Bash"]);
        assert!(kept(&[], &free()).is_empty());
    }

    #[test]
    fn a_huge_tool_is_passed_over_and_costs_the_others_nothing() {
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
    fn whoever_says_defer_is_obeyed_and_what_is_kept_anyway_costs_no_room() {
        let tools = [("Bash", 100), ("Read", 100), ("Write", 100), ("x", 500)];
        let rules = Rules { always: vec![Glob::new("bash")], ..free() }.never_defer(["read"]);
        assert_eq!(kept(&tools, &rules), ["Write"]);
        // A list that was frozen before the rule came gives way to it too.
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
