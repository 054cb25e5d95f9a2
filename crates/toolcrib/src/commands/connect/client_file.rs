//! Reads and writes a client's file. A file that changed since it was read is not overwritten.

use std::fs;
use std::path::{Path, PathBuf};

use toolcrib_server::ownership::{self, SymlinkPolicy};

use crate::commands::import::target::replace;
use crate::output::Failure;

/// A client's file and its text.
#[derive(Debug, Clone)]
pub(super) struct ClientFile {
    /// The path with symbolic links resolved, so that a link stays a link when the file is replaced.
    pub(super) path: PathBuf,
    /// The text, or `None` if there is no file.
    pub(super) text: Option<String>,
}

impl ClientFile {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let place = || format!("`{}`", path.display());
        let bytes = match ownership::open(&path, SymlinkPolicy::Follow) {
            Ok((mut file, _)) => {
                let mut bytes = Vec::new();
                std::io::Read::read_to_end(&mut file, &mut bytes).map(|_| Some(bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|error| {
            Failure::input(place(), &error, "check the file and its permissions")
        })?;
        let text = bytes
            .map(String::from_utf8)
            .transpose()
            .map_err(|_| Failure::input(place(), &"not UTF-8 text", "save the file as UTF-8"))?;
        Ok(Self { path, text })
    }

    /// Fails if the file is read-only. Replacing it would be possible, but the user or a tool has protected it.
    pub(super) fn check_writable(&self) -> Result<(), Failure> {
        let is_read_only =
            fs::metadata(&self.path).is_ok_and(|about| about.permissions().readonly());
        if !is_read_only {
            return Ok(());
        }
        let hint = format!(
            "run `chmod u+w {}`, or change it with the tool that manages it",
            self.path.display()
        );
        Err(Failure::input(format!("`{}`", self.path.display()), &"the file is read-only", hint))
    }

    /// Fails if the file is no longer as it was read.
    pub(super) fn check_unchanged(&self) -> Result<(), Failure> {
        if Self::read(&self.path)?.text == self.text {
            return Ok(());
        }
        let place = format!("`{}`", self.path.display());
        let hint = "the client may be running; quit it, then run the command again";
        Err(Failure::input(place, &"the file was changed while this command was running", hint))
    }

    /// Replaces the file if it is unchanged, or removes it if `text` is `None`. Returns whether the file then has the
    /// new text.
    pub(super) fn write(&self, text: Option<&str>) -> Result<bool, Failure> {
        self.check_writable()?;
        self.check_unchanged()?;
        let written = match text {
            Some(text) => replace(&self.path, text),
            None => fs::remove_file(&self.path),
        };
        written
            .map_err(|source| Failure::Write { path: self.path.display().to_string(), source })?;
        Ok(Self::read(&self.path)?.text.as_deref() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{}").unwrap();
        let file = ClientFile::read(&path).unwrap();
        fs::write(&path, "{\"new\": 1}").unwrap();
        let error = file.write(Some("{\"ours\": 1}")).unwrap_err();
        let expected = format!(
            "`{}`: the file was changed while this command was running",
            file.path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"new\": 1}");
        assert!(ClientFile::read(&path).unwrap().write(Some("{}")).unwrap());
        // A file that was created in the meantime counts as changed, too.
        let missing = ClientFile::read(&folder.path().join("other.json")).unwrap();
        fs::write(&missing.path, "").unwrap();
        assert!(missing.write(Some("{}")).is_err());
    }
}
