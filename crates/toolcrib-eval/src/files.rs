//! Catalogs from disk: plain or gzipped, a file, a folder or standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use thiserror::Error;

/// Bytes of one catalog file, unpacked. A gzip bomb stops here.
pub const MAX_BYTES: u64 = 2 << 30;

/// A file that cannot be read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system said no.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// Which file.
        path: String,
        /// What it said.
        source: io::Error,
    },
    /// It is larger than allowed.
    #[error("`{path}` has more than {MAX_BYTES} bytes")]
    TooLarge {
        /// Which file.
        path: String,
    },
    /// A folder without a catalog in it.
    #[error("no catalog in `{path}`")]
    Empty {
        /// Which folder.
        path: String,
    },
}

impl FileError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path and its permissions; `-` reads standard input",
            Self::TooLarge { .. } => "split the catalog into several files",
            Self::Empty { .. } => "a folder holds `.json` or `.jsonl` files, either also `.gz`",
        }
    }
}

/// The whole of a file, unpacked where its first bytes say gzip, whatever its name.
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

/// The catalog files a path means: itself, or those in a folder, by name. A folder that is a
/// retrieval set means its catalog and not its queries.
pub fn catalogs(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(catalog) = find(path, "catalog") {
        return Ok(vec![catalog]);
    }
    let shown = || path.display().to_string();
    let entries = fs::read_dir(path).map_err(|source| FileError::Io { path: shown(), source })?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| is_json(file)).collect();
    files.sort_unstable();
    if files.is_empty() { Err(FileError::Empty { path: shown() }) } else { Ok(files) }
}

/// `name` in a folder with any of the endings we read.
pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let endings = ["jsonl.gz", "jsonl", "json.gz", "json"];
    endings.iter().map(|ending| folder.join(format!("{name}.{ending}"))).find(|file| file.is_file())
}

/// What a file is called without its endings: the server of tools that do not say theirs.
pub fn stem(path: &Path) -> Option<String> {
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
        && Path::new(name).extension().is_some_and(|ending| {
            ending.eq_ignore_ascii_case("json") || ending.eq_ignore_ascii_case("jsonl")
        })
}
