//! Examples of edits and of their undo, with the complete texts before and after.

use serde_json::json;
use toolcrib_client_files::{
    Change, Conflict, Format, KeyPath, UndoError, Undone, replace_entries, undo,
};

fn connected(format: Format, text: &str, container: &[&str], removed: &[&str]) -> String {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let entry = json!({"command": "toolcrib", "args": ["mcp"]});
    let edits = replace_entries(&owned(container), "toolcrib", entry, &owned(removed));
    format.edit(text, &edits).unwrap()
}

fn paths(container: &str, names: &[&str]) -> Vec<KeyPath> {
    names.iter().map(|name| vec![container.to_owned(), (*name).to_owned()]).collect()
}

const JSON: &str = r#"// My settings
{
	"theme": "dark", // easier on the eyes
	"mcpServers": {
		// reads files
		"files": { "command": "npx", "args": ["-y", "files"] }, // since May
		"kept": { "command": "kept" },

		/* pays
		   bills */
		"git": {
			"command": "uvx", // a comment inside
		},
	},
}
"#;

#[test]
fn comments_in_json_stay_with_what_they_are_about() {
    let connected = connected(Format::Json, JSON, &["mcpServers"], &["files", "git"]);
    let expected = r#"// My settings
{
	"theme": "dark", // easier on the eyes
	"mcpServers": {
		"toolcrib": {
			"command": "toolcrib",
			"args": ["mcp"]
		},
		"kept": { "command": "kept" },

	},
}
"#;
    assert_eq!(connected, expected);
    // The user changes a line and adds a server. Only our own edit is undone.
    let edit = |text: &str| {
        let text = text.replace("dark", "light");
        text.replace("\"kept\": {", "\"new\": { \"command\": \"new\" },\n\t\t\"kept\": {")
    };
    let paths = paths("mcpServers", &["files", "git", "toolcrib"]);
    let change = Change { original: Some(JSON), edited: &connected, paths: &paths };
    let undone = undo(Format::Json, change, &edit(&connected)).unwrap();
    assert_eq!(undone, Undone::Merged(edit(JSON)));
}

#[test]
fn an_empty_file_and_a_missing_file_become_as_they_were() {
    for (format, text) in
        [(Format::Json, ""), (Format::Json, "{}"), (Format::Toml, ""), (Format::Yaml, "")]
    {
        let connected = connected(format, text, &["servers"], &[]);
        let paths = paths("servers", &["toolcrib"]);
        let change = Change { original: None, edited: &connected, paths: &paths };
        assert_eq!(undo(format, change, &connected), Ok(Undone::Original(None)));
        let current = format!("{connected}\n");
        assert_eq!(undo(format, change, &current), Ok(Undone::Empty), "{format:?}");
    }
    let text = connected(Format::Json, "", &["mcpServers"], &[]);
    let expected = "{\n  \"mcpServers\": {\n    \"toolcrib\": {\n      \"command\": \"toolcrib\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n";
    assert_eq!(text, expected);
    assert_eq!(
        connected(Format::Toml, "", &["mcp_servers"], &[]),
        "[mcp_servers.toolcrib]\ncommand = \"toolcrib\"\nargs = [\"mcp\"]\n"
    );
}

#[test]
fn toml_tables_are_replaced_where_they_are() {
    let text = "model = \"x\" # fast\r\n\r\n# files\r\n[mcp_servers.files]\r\ncommand = \"npx\"\r\n\r\n[mcp_servers.files.env]\r\nA = \"1\"\r\n\r\n[other]\r\nkey = 1\r\n";
    let connected = connected(Format::Toml, text, &["mcp_servers"], &["files"]);
    assert_eq!(
        connected,
        "model = \"x\" # fast\r\n\r\n[mcp_servers.toolcrib]\r\ncommand = \"toolcrib\"\r\nargs = [\"mcp\"]\r\n\r\n[other]\r\nkey = 1\r\n"
    );
    // Another program has written the file again, with other line endings and without comments.
    let current = "model = \"y\"\n[other]\nkey = 1\n[mcp_servers.toolcrib]\ncommand = \"toolcrib\"\nargs = [\"mcp\"]\nenabled = true\n";
    let paths = paths("mcp_servers", &["files", "toolcrib"]);
    let change = Change { original: Some(text), edited: &connected, paths: &paths };
    let undone = undo(Format::Toml, change, current).unwrap();
    let expected = "model = \"y\"\n[other]\nkey = 1\n\n# files\n[mcp_servers.files]\ncommand = \"npx\"\n\n[mcp_servers.files.env]\nA = \"1\"\n";
    assert_eq!(undone, Undone::Merged(expected.to_owned()));
}

#[test]
fn yaml_that_is_not_in_block_style_is_an_error_that_names_the_line() {
    let entry = json!({"command": "toolcrib"});
    let edits = replace_entries(&["extensions".to_owned()], "toolcrib", entry, &[]);
    let text = "model: x\nextensions: {a: {type: stdio}}\n";
    let error = Format::Yaml.edit(text, &edits).unwrap_err();
    assert_eq!(error.problem, "`extensions` at line 2 is not a block mapping");
    assert_eq!(
        error.hint,
        "write one key per line, each indented below the name; then run the command again"
    );
    let text = "# top\nextensions: {} # none\nmodel: x";
    assert_eq!(
        Format::Yaml.edit(text, &edits).unwrap(),
        "# top\nextensions: # none\n  toolcrib:\n    command: toolcrib\nmodel: x"
    );
}

#[test]
fn dotenv_lines_are_set_and_taken_back() {
    let text = "# keys\nexport GEMINI_API_KEY=\"k\"\nURL=old";
    let edits = replace_entries(&[], "URL", json!("http://127.0.0.1:4180"), &[]);
    let connected = Format::Dotenv.edit(text, &edits).unwrap();
    assert_eq!(connected, "# keys\nexport GEMINI_API_KEY=\"k\"\nURL=http://127.0.0.1:4180");
    let paths = vec![vec!["URL".to_owned()]];
    let change = Change { original: Some(text), edited: &connected, paths: &paths };
    let current = connected.replace("\"k\"", "\"new\"");
    let undone = undo(Format::Dotenv, change, &current).unwrap();
    assert_eq!(undone, Undone::Merged(text.replace("\"k\"", "\"new\"")));
}

#[test]
fn what_the_user_changed_is_a_conflict() {
    let text = r#"{"mcpServers": {"files": {"command": "npx"}}}"#;
    let connected = connected(Format::Json, text, &["mcpServers"], &["files"]);
    let paths = paths("mcpServers", &["files", "toolcrib"]);
    let change = Change { original: Some(text), edited: &connected, paths: &paths };
    let undo = |current: &str| undo(Format::Json, change, current);
    let conflict = |name: &str, problem| {
        Err(UndoError::Conflicts(vec![Conflict {
            path: vec!["mcpServers".to_owned(), name.to_owned()],
            problem,
        }]))
    };
    let edited = connected.replace("\"mcp\"", "\"mcp\",\"--own\"");
    assert_eq!(undo(&edited), conflict("toolcrib", "was changed"));
    let taken =
        connected.replace("{\"toolcrib\"", "{\"files\":{\"command\":\"other\"},\"toolcrib\"");
    assert_eq!(undo(&taken), conflict("files", "is now a different value"));
    // An entry that the user removed or restored needs no undo, and neither do keys that a client adds.
    let restored = Ok(Undone::Merged(text.to_owned()));
    assert_eq!(
        undo(r#"{"mcpServers":{}}"#),
        Ok(
            Undone::Merged(
                r#"{"mcpServers":{"files":{"command":"npx"}}}"#
                    .replace("{\"command\":\"npx\"}", "{\"command\": \"npx\"}")
                    .replace("\"files\":", "\"files\": ")
            )
        )
    );
    assert_eq!(undo(text), restored);
    let with = |more: &str| connected.replace("[\"mcp\"]", &format!("[\"mcp\"],{more}"));
    let with_choices =
        with(r#""disabled":true,"env":{},"tools":{"tool_search":{"approval_mode":"approve"}}"#);
    assert!(undo(&with_choices).is_ok());
    let with_variable = with(r#""env":{"A":"1"}"#);
    assert_eq!(undo(&with_variable), conflict("toolcrib", "was changed"));
}
