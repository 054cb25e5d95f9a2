//! Reads catalog files: plain or gzipped, from a file, a folder or standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use thiserror::Error;

/// Maximum size of one catalog file after decompression, in bytes. It also limits the damage that a gzip bomb can do.
pub const MAX_BYTES: u64 = 2 << 30;

/// The reason why a catalog cannot be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system returned an error.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// The file is larger than [`MAX_BYTES`].
    #[error("`{path}` has more than {MAX_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// The folder has no catalog.
    #[error("no catalog in `{path}`")]
    Empty {
        /// The folder.
        path: String,
    },
}

impl FileError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path and its permissions; `-` reads standard input",
            Self::TooLarge { .. } => "split the catalog into several files",
            Self::Empty { .. } => {
                "put `.json` or `.jsonl` files into the folder; both may be gzipped (`.gz`)"
            }
        }
    }
}

/// Reads a file, or standard input if the path is `-`. The contents are decompressed if they begin with the magic bytes
/// of gzip, even if the file name does not end with `.gz`.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let shown = || path.display().to_string();
    let io_error = |source| FileError::Io { path: shown(), source };
    let mut bytes = Vec::new();
    let mut limited: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(fs::File::open(path).map_err(io_error)?)
    };
    limited.by_ref().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let decoder = MultiGzDecoder::new(&bytes[..]);
        decoder.take(MAX_BYTES + 1).read_to_end(&mut unpacked).map_err(io_error)?;
        bytes = unpacked;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(FileError::TooLarge { path: shown() });
    }
    Ok(bytes)
}

/// Returns the catalog files that a path refers to: the file itself, or the JSON files of a folder, sorted by name. For
/// a dataset folder, only the catalog is returned, not the queries.
pub fn catalog_files(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(catalog) = find_file(path, "catalog") {
        return Ok(vec![catalog]);
    }
    let shown = || path.display().to_string();
    let entries = fs::read_dir(path).map_err(|source| FileError::Io { path: shown(), source })?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| is_json(file)).collect();
    files.sort_unstable();
    if files.is_empty() { Err(FileError::Empty { path: shown() }) } else { Ok(files) }
}

/// Finds the file `name` in a folder, with any of the supported extensions. Returns `None` if there is no such file.
pub fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let extensions = ["jsonl.gz", "jsonl", "json.gz", "json"];
    let file = |extension: &&str| folder.join(format!("{name}.{extension}"));
    extensions.iter().map(file).find(|file| file.is_file())
}

/// Returns the server name that a file name implies, for tools that do not name their server: the file name without its
/// extensions. Returns `None` for generic names such as `tools.json`.
pub fn implied_server(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json")).unwrap_or(name);
    let generic = ["-", "catalog", "tools"].contains(&stem);
    (!generic && !stem.is_empty()).then(|| stem.to_owned())
}

fn is_json(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    path.is_file()
        && Path::new(name).extension().is_some_and(|extension| {
            extension.eq_ignore_ascii_case("json") || extension.eq_ignore_ascii_case("jsonl")
        })
}
