//! `toolcrib import`: the servers that people have in other clients, as one config of ours.
//!
//! What is printed holds no secret: the config on standard output has `***` for every literal one,
//! and only the file that `--write` names gets them.

mod file;
mod look;
mod merge;
mod places;
mod sent;

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use toolcrib_mcp::config::{masked, server_toml};
use toolcrib_text::clean::one_line;

use crate::args::ImportArgs;
use crate::output::{Failure, Output, remark};
use file::Target;
use look::{BrokenFile, Findings, FoundFile, LeftOutFile, look};
use merge::Merge;

#[derive(Serialize)]
struct Answer {
    found: Vec<FoundFile>,
    broken: Vec<BrokenFile>,
    /// Files of the working folder that were not read.
    left_out: Vec<LeftOutFile>,
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

pub(crate) fn run(args: &ImportArgs, output: &mut Output) -> Result<bool, Failure> {
    let target = args.write.as_deref().map(Target::open).transpose()?;
    let there = target.as_ref().map(Target::servers).unwrap_or_default();
    let mut merge = Merge::over(there);
    let Findings { found, broken, left_out } = look(args.from, args.project, &mut merge)?;
    let mut answer = Answer {
        found,
        broken,
        left_out,
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
        left_out(answer);
        return Ok(());
    }
    if !answer.found.is_empty() {
        let mut table = Table::new();
        table.load_style(NOTHING).set_header(["client", "file", "servers", "odd"]);
        for file in &answer.found {
            table.add_row([
                file.client.name().to_owned(),
                one_line(&file.file.display().to_string()),
                file.servers.join("\n"),
                remarks(file).join("\n"),
            ]);
        }
        // Without `--write` standard output is the config, and this a remark beside it.
        match write {
            Some(_) => output.line(&table.to_string())?,
            None => remark(&format!("{table}\n")),
        }
    }
    for file in &answer.broken {
        let place = one_line(&file.file.display().to_string());
        remark(&format!("error: `{place}`: {}\nhint: {}", file.error, file.hint));
    }
    left_out(answer);
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

/// What is to be said about the servers of a file.
fn remarks(file: &FoundFile) -> Vec<String> {
    let off = file.disabled.iter().map(|off| format!("`{}` stays off: {}", off.server, off.reason));
    let skipped =
        file.skipped.iter().map(|one| format!("`{}` is left out: {}", one.server, one.reason));
    // Names in these files are strangers' text, and must not look like lines of ours.
    off.chain(skipped).chain(file.odd.iter().cloned()).map(|text| one_line(&text)).collect()
}

/// Files that were not read.
fn left_out(answer: &Answer) {
    for file in &answer.left_out {
        let place = one_line(&file.file.display().to_string());
        remark(&format!("note: `{place}` is left out: {}", file.reason));
    }
}
