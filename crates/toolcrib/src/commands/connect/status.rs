//! The clients that are connected, and whether they still use Toolcrib.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toolcrib_client_files::get;
use toolcrib_mcp::config::ClientKind;

use super::client_file::ClientFile;
use super::record::{Record, Records};
use crate::output::Failure;

/// A client that `connect` has changed, and what is wrong with it.
#[derive(Serialize)]
pub(crate) struct ConnectedClient {
    pub(crate) client: ClientKind,
    pub(crate) file: PathBuf,
    /// Why the client does not use Toolcrib, if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<&'static str>,
}

impl fmt::Display for ConnectedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, file, problem } = self;
        write!(f, "{client} (`{}`", file.display())?;
        problem.map_or(Ok(()), |problem| write!(f, ": {problem}"))?;
        f.write_str(")")
    }
}

/// Returns the clients that `connect` has changed.
pub(crate) fn connected_clients() -> Result<Vec<ConnectedClient>, Failure> {
    let connected = |record: &Record| ConnectedClient {
        client: record.client,
        file: record.file.clone(),
        problem: problem(record),
    };
    Ok(Records::load()?.all.iter().map(connected).collect())
}

/// Returns why a client does not use Toolcrib although it was connected.
fn problem(record: &Record) -> Option<&'static str> {
    let format = record.format();
    let Ok(file) = ClientFile::read(&record.file) else {
        return Some("the file cannot be read");
    };
    let Some(text) = file.text else { return Some("the file no longer exists") };
    let (Ok(now), Ok(written)) = (format.parse(&text), format.parse(&record.connected)) else {
        return Some("the file cannot be parsed");
    };
    // Every value that `connect` wrote, such as our entry, must still be there.
    let is_missing =
        |path: &Vec<String>| get(&written, path).is_some() && get(&now, path).is_none();
    record
        .paths
        .iter()
        .any(is_missing)
        .then_some("the entry is missing; run `toolcrib connect` again")
}
