//! A retrieval dataset: a catalog and judged queries.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use toolcrib_core::{Catalog, Limits, ingest};

use crate::files::{self, FileError};

/// A query and the tools that were judged relevant to it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JudgedQuery {
    /// Identifies the query in a run file.
    pub id: String,
    /// The text of the query.
    pub query: String,
    /// The relevant tools. Empty if no tool of the catalog serves the query.
    pub gold: Vec<String>,
    /// The graded relevance of relevant tools. A tool without a grade has relevance 1.
    #[serde(default)]
    pub rel: BTreeMap<String, f64>,
    /// Whether any one of the relevant tools is sufficient.
    #[serde(default)]
    pub any: bool,
}

/// A retrieval dataset.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The name of the dataset's folder.
    pub name: String,
    /// The tools that the queries search for.
    pub catalog: Catalog,
    /// The queries. Empty if the folder has only a catalog.
    pub queries: Vec<JudgedQuery>,
}

/// The reason why a dataset cannot be used.
#[derive(Debug, Error)]
pub enum DatasetError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder has no catalog.
    #[error("no `catalog.jsonl` or `catalog.jsonl.gz` in `{0}`")]
    NoCatalog(String),
    /// The catalog cannot be parsed.
    #[error("`{path}`: {error}")]
    Catalog {
        /// The file.
        path: String,
        /// What is wrong with the file.
        error: toolcrib_core::Error,
    },
    /// A line of the queries file cannot be parsed.
    #[error("`{path}`, line {line}: {problem}")]
    Query {
        /// The file.
        path: String,
        /// The line number, from 1.
        line: usize,
        /// What is wrong with the line.
        problem: String,
    },
}

impl DatasetError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> String {
        match self {
            Self::File(error) => error.hint().to_owned(),
            Self::NoCatalog(_) => {
                "a dataset is a folder with `catalog.jsonl` and `queries.jsonl`".into()
            }
            Self::Catalog { error, .. } => error.hint(),
            Self::Query { .. } => "a query is a line {\"id\",\"query\",\"gold\":[names]}".into(),
        }
    }
}

impl Dataset {
    /// Reads a dataset folder.
    pub fn open(folder: &Path) -> Result<Self, DatasetError> {
        let shown = |path: &Path| path.display().to_string();
        let path = files::find_file(folder, "catalog")
            .ok_or_else(|| DatasetError::NoCatalog(shown(folder)))?;
        let bytes = files::read(&path)?;
        let ingested = ingest(&bytes, None, &Limits::default())
            .map_err(|error| DatasetError::Catalog { path: shown(&path), error })?;
        let mut builder = Catalog::builder();
        builder.add(ingested);
        let mut queries = Vec::new();
        if let Some(path) = files::find_file(folder, "queries") {
            let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
            let lines = text.lines().enumerate();
            for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
                queries.push(serde_json::from_str(line).map_err(|error| DatasetError::Query {
                    path: shown(&path),
                    line: index + 1,
                    problem: error.to_string(),
                })?);
            }
        }
        // The path is resolved first, because paths such as `.` and `sets/a/..` have no file name.
        let resolved = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = resolved.file_name().and_then(|name| name.to_str()).unwrap_or("set").to_owned();
        Ok(Self { name, catalog: builder.build(), queries })
    }
}
