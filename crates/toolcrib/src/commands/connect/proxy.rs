//! `connect --proxy`: sets a client's base URL to that of `toolcrib serve`.

use std::net::SocketAddr;

use serde_json::{Value, json};
use toolcrib_client_files::{Edit, FileProblem, Format, KeyPath, Place, Undone, get, undo};
use toolcrib_mcp::config::ClientKind;
use toolcrib_server::HttpSettings;

use super::client_file::ClientFile;
use super::client_format;
use super::parsed_file::file_failure;
use super::plan::{FilePlan, PlannedChange};
use super::preview::KnownWords;
use super::record::{Purpose, Records};
use super::report::{FileReport, Status};
use crate::commands::import::client_files::ClientFolders;
use crate::output::Failure;

/// The clients whose base URL is in a file.
pub(super) const CLIENTS: [ClientKind; 4] =
    [ClientKind::ClaudeCode, ClientKind::Codex, ClientKind::Opencode, ClientKind::Gemini];

/// Returns the address at which this machine reaches `toolcrib serve`.
pub(super) fn origin(http: &HttpSettings) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let listen = http.listen;
    let address = if listen.ip().is_unspecified() {
        SocketAddr::new([127, 0, 0, 1].into(), listen.port())
    } else {
        listen
    };
    format!("{scheme}://{address}")
}

/// Returns the settings of a client, each with its path.
fn settings(client: ClientKind, origin: &str) -> Vec<(KeyPath, Value)> {
    let at = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    match client {
        ClientKind::ClaudeCode => vec![
            (at(&["env", "ANTHROPIC_BASE_URL"]), json!(origin)),
            // Otherwise, Claude Code defers tools itself, and the proxy has nothing to defer.
            (at(&["env", "ENABLE_TOOL_SEARCH"]), json!("false")),
        ],
        ClientKind::Codex => vec![
            (at(&["model_provider"]), json!("toolcrib")),
            (
                at(&["model_providers", "toolcrib"]),
                json!({
                    "name": "OpenAI through Toolcrib",
                    "base_url": format!("{origin}/v1"),
                    "env_key": "OPENAI_API_KEY",
                    "wire_api": "responses",
                }),
            ),
        ],
        ClientKind::Opencode => [("openai", "v1"), ("anthropic", "v1"), ("google", "v1beta")]
            .into_iter()
            .map(|(provider, version)| {
                let path = at(&["provider", provider, "options", "baseURL"]);
                (path, json!(format!("{origin}/{version}")))
            })
            .collect(),
        ClientKind::Gemini => vec![(at(&["GOOGLE_GEMINI_BASE_URL"]), json!(origin))],
        _ => Vec::new(),
    }
}

/// Plans the change of a client's base URL.
pub(super) fn plan(
    client: ClientKind,
    folders: &ClientFolders,
    records: &Records,
    origin: &str,
) -> Result<FilePlan, Failure> {
    let unsupported = || {
        let names = CLIENTS.map(ClientKind::name).join(", ");
        let hint = format!(
            "`--proxy` works for {names}; set the base URL of other clients in their own settings: {origin}"
        );
        Failure::input(client.name(), &"its base URL is not in a file that can be changed", hint)
    };
    let path = folders.proxy_file(client).ok_or_else(unsupported)?;
    if !path.parent().is_some_and(std::path::Path::is_dir) {
        let folder = path.parent().unwrap_or(&path).display();
        let problem = format!("not found: `{folder}` does not exist");
        let hint = "start the client once, so that it creates the folder";
        return Err(Failure::input(client.name(), &problem, hint));
    }
    let file = ClientFile::read(&path)?;
    let failed = |problem: FileProblem| file_failure(&file.path, &problem);
    let format = match client {
        ClientKind::Gemini => Format::Dotenv,
        _ => client_format::format(client),
    };
    let text = file.text.clone().unwrap_or_default();
    let before = format.parse(&text).map_err(failed)?;
    let settings = settings(client, origin);
    let mut known = KnownWords::default();
    known.add_keys(&before);
    for (path, value) in &settings {
        known.add_all(&json!([path, value]));
    }
    let set = |(path, value): &(KeyPath, Value)| Edit::Set {
        path: path.clone(),
        value: value.clone(),
        place: Place::Last,
    };
    let edits: Vec<Edit<'_>> = settings.iter().map(set).collect();
    let edited = format.edit(&text, &edits).map_err(failed)?;
    let record = records.find(client, Purpose::Proxy, &file.path);
    let mut report = FileReport::new(client, &file.path, Status::Planned);
    if edited == text {
        let by_hand = record.is_none();
        report.status = if by_hand { Status::ByHand } else { Status::AlreadyConnected };
        if by_hand {
            report.notes.push("the file already has these settings, so nothing is changed".into());
        }
        return Ok(FilePlan { report, change: None });
    }
    file.check_writable()?;
    add_notes(client, &before, &settings, &mut report);
    let original = match record {
        None => file.text.clone(),
        Some(record) => match undo(format, record.change(), &text) {
            Ok(Undone::Original(text)) => text,
            Ok(Undone::Merged(text)) => Some(text),
            Ok(Undone::Empty) => None,
            Err(error) => return Err(super::disconnect::undo_failure(records, record, &error)),
        },
    };
    let paths = settings.into_iter().map(|(path, _)| path).collect();
    let record = records.create(client, Purpose::Proxy, &file.path, original, edited, paths);
    Ok(FilePlan { report, change: Some(PlannedChange { file, record, known }) })
}

fn add_notes(
    client: ClientKind,
    before: &Value,
    settings: &[(KeyPath, Value)],
    report: &mut FileReport,
) {
    for (path, value) in settings {
        let replaced = get(before, path).is_some_and(|old| old != value);
        let is_url = value.as_str().is_some_and(|value| value.contains("://"));
        if replaced && is_url {
            let is_anthropic = path.iter().any(|key| key.to_lowercase().contains("anthropic"));
            let is_google = path.iter().any(|key| key.to_lowercase().contains("google"));
            let option = if is_anthropic {
                "--anthropic"
            } else if is_google {
                "--gemini"
            } else {
                "--openai"
            };
            report.notes.push(format!(
                "`{}` had another URL; if that is the provider to use, name it when you start the proxy, for example \
                 with `toolcrib serve {option} URL`",
                path.join(".")
            ));
        }
    }
    let note = match client {
        ClientKind::Codex => {
            "after this change, Codex uses the key in OPENAI_API_KEY, not a ChatGPT login"
        }
        ClientKind::Gemini => {
            "Gemini CLI uses the URL only if it signs in with an API key (`security.auth.selectedType` in its \
             settings is `gemini-api-key`)"
        }
        _ => return,
    };
    report.notes.push(note.to_owned());
}
