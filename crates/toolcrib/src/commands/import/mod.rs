//! `toolcrib import`: the servers that people have in other clients, as one config of ours.
//!
//! What is printed holds no secret: the config on standard output has `***` for every literal one,
//! and only the file that `--write` names gets them.

mod file;
mod merge;
mod places;

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use toolcrib_mcp::config::foreign::{Place, read_as, read_value};
use toolcrib_mcp::config::{Client, Foreign, masked, server_toml};
use toolcrib_server::ConfigError;

use crate::args::ImportArgs;
use crate::config::location::read_text;
use crate::config::yaml;
use crate::output::{Failure, Output, remark};
use file::Target;
use merge::Merge;
use places::Roots;

#[derive(Serialize)]
struct Answer {
    found: Vec<FoundFile>,
    broken: Vec<BrokenFile>,
    /// The servers that are new, as our config has them; literal secrets are `***`.
    toml: String,
    /// Whether there is a `***` in it.
    masked: bool,
    /// The names of those servers.
    added: Vec<String>,
    /// The file they were written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<PathBuf>,
}

#[derive(Serialize)]
struct FoundFile {
    client: Client,
    file: PathBuf,
    servers: Vec<String>,
    /// What was not taken as it stands.
    odd: Vec<String>,
}

#[derive(Serialize)]
struct BrokenFile {
    client: Client,
    file: PathBuf,
    error: String,
    hint: String,
}

pub(crate) fn run(args: &ImportArgs, output: &mut Output) -> Result<bool, Failure> {
    let target = args.write.as_deref().map(Target::open).transpose()?;
    let there = target.as_ref().map(Target::servers).unwrap_or_default();
    let mut merge = Merge::over(there);
    let (found, broken) = look(args.from, &mut merge)?;
    let mut answer = Answer {
        found,
        broken,
        toml: String::new(),
        masked: false,
        added: merge.added.clone(),
        written: None,
    };
    preview(&merge, &mut answer);
    if let (Some(target), false) = (target, answer.added.is_empty()) {
        target.write(merge.into_servers(), &answer.added)?;
        answer.written.clone_from(&args.write);
    }
    if output.is_json() {
        output.document(&answer)?;
    } else {
        print(&answer, args.write.as_deref(), output)?;
    }
    output.finish()?;
    if answer.broken.is_empty() { Ok(!answer.found.is_empty()) } else { Err(Failure::Told) }
}

/// Reads every file that is there.
fn look(
    from: Option<Client>,
    merge: &mut Merge,
) -> Result<(Vec<FoundFile>, Vec<BrokenFile>), Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::input("current folder", &error, "go to a folder that is there")
    })?;
    let roots = Roots::of(|name| std::env::var_os(name), folder);
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    for client in Client::ALL.into_iter().filter(|client| from.is_none_or(|from| from == *client)) {
        for file in roots.of_client(client) {
            if !file.is_file() {
                continue;
            }
            match read(client, &file, &roots.folder) {
                // Settings of an editor without servers are nothing to tell of.
                Ok(foreign) if foreign.servers.is_empty() && foreign.warnings.is_empty() => {}
                Ok(foreign) => found.push(taken(foreign, file, merge)),
                Err((error, hint)) => broken.push(BrokenFile { client, file, error, hint }),
            }
        }
    }
    Ok((found, broken))
}

fn read(client: Client, file: &Path, folder: &Path) -> Result<Foreign, (String, String)> {
    let text = read_text(file).map_err(|failure| (failure.to_string(), failure.hint()))?;
    let place = Place { file, folder };
    if client == Client::Hermes {
        let value = yaml::parse(&text).map_err(|error| (error.to_string(), error.hint().into()))?;
        return Ok(read_value(client, &value, &place));
    }
    read_as(client, &text, &place).map_err(|error: ConfigError| (error.to_string(), error.hint))
}

/// Takes the servers of a file in, each under a name that is free.
fn taken(foreign: Foreign, file: PathBuf, merge: &mut Merge) -> FoundFile {
    let Foreign { client, servers, mut warnings } = foreign;
    let mut names = Vec::new();
    for (name, server) in servers {
        let given = merge.add(client, &name, server);
        if given != name {
            let other = format!("`{name}` is another server elsewhere: it becomes `{given}`");
            warnings.push(other);
        }
        names.push(given);
    }
    FoundFile { client, file, servers: names, odd: warnings }
}

/// The new servers as they may be shown.
fn preview(merge: &Merge, answer: &mut Answer) {
    let mut tables = Vec::new();
    for name in &merge.added {
        let Some(server) = merge.server(name) else { continue };
        let shown = masked(server);
        answer.masked |= shown != *server;
        tables.push(server_toml(name, &shown));
    }
    answer.toml = tables.join("\n");
}

fn print(answer: &Answer, write: Option<&Path>, output: &mut Output) -> Result<(), Failure> {
    if answer.found.is_empty() && answer.broken.is_empty() {
        remark("no servers found in the files of other clients");
        return Ok(());
    }
    if !answer.found.is_empty() {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["client", "file", "servers", "odd"]);
        for file in &answer.found {
            table.add_row([
                file.client.name().to_owned(),
                file.file.display().to_string(),
                file.servers.join("\n"),
                file.odd.join("\n"),
            ]);
        }
        // Without `--write` standard output is the config, and this a remark beside it.
        match write {
            Some(_) => output.line(&table.to_string())?,
            None => remark(&format!("{table}\n")),
        }
    }
    for file in &answer.broken {
        let place = file.file.display();
        remark(&format!("error: `{place}`: {}\nhint: {}", file.error, file.hint));
    }
    match (write, answer.added.len()) {
        (Some(path), 0) => output.line(&format!("\nNothing new for `{}`.", path.display())),
        (Some(path), count) => {
            let servers = if count == 1 { "1 server" } else { &format!("{count} servers") };
            output.line(&format!("\nAdded {servers} to `{}`.", path.display()))
        }
        (None, 0) => Ok(()),
        (None, _) => {
            if answer.masked {
                remark("note: literal secrets are shown as `***`; `--write F` writes them");
            }
            output.line(answer.toml.trim_end())
        }
    }
}
