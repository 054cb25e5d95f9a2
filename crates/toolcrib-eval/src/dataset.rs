//! One retrieval set: a catalog and judged queries.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use toolcrib_core::{Catalog, Limits, ingest};

use crate::files::{self, FileError};

/// A query and the tools it needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Judged {
    /// Names the query in a run file.
    pub id: String,
    /// What was asked.
    pub query: String,
    /// The tools that serve it.
    pub gold: Vec<String>,
    /// How well each does, where that was judged; 1 otherwise.
    #[serde(default)]
    pub rel: BTreeMap<String, f64>,
    /// Whether any one of them will do.
    #[serde(default)]
    pub any: bool,
}

/// A retrieval set.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The folder's name.
    pub name: String,
    /// Its tools.
    pub catalog: Catalog,
    /// Its queries; empty for a folder with a catalog only.
    pub queries: Vec<Judged>,
}

/// A set that cannot be used.
#[derive(Debug, Error)]
pub enum DatasetError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder has no catalog.
    #[error("no `catalog.jsonl` or `catalog.jsonl.gz` in `{0}`")]
    NoCatalog(String),
    /// The catalog is none.
    #[error("`{path}`: {error}")]
    Catalog {
        /// Which file.
        path: String,
        /// What is wrong with it.
        error: toolcrib_core::Error,
    },
    /// A line of the queries cannot be read.
    #[error("`{path}`, line {line}: {problem}")]
    Query {
        /// Which file.
        path: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl DatasetError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::NoCatalog(_) => {
                "a set is a folder with `catalog.jsonl` and `queries.jsonl`".into()
            }
            Self::Catalog { error, .. } => error.hint(),
            Self::Query { .. } => "a query is a line {\"id\",\"query\",\"gold\":[names]}".into(),
        }
    }
}

impl Dataset {
    /// Reads a folder.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        let shown = |path: &Path| path.display().to_string();
        let path =
            files::find(folder, "catalog").ok_or_else(|| DatasetError::NoCatalog(shown(folder)))?;
        let bytes = files::read(&path)?;
        let came = ingest(&bytes, None, &Limits::default())
            .map_err(|error| DatasetError::Catalog { path: shown(&path), error })?;
        let mut builder = Catalog::builder();
        builder.add(came);
        let mut queries = Vec::new();
        if let Some(path) = files::find(folder, "queries") {
            let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
            for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                queries.push(serde_json::from_str(line).map_err(|error| DatasetError::Query {
                    path: shown(&path),
                    line: at + 1,
                    problem: error.to_string(),
                })?);
            }
        }
        // `sets/a/`, `.` and `sets/a/.` all have a last part once they are resolved.
        let resolved = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = resolved.file_name().and_then(|name| name.to_str()).unwrap_or("set").to_owned();
        Ok(Self { name, catalog: builder.build(), queries })
    }
}
