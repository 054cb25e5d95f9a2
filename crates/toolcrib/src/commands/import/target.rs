//! The config that `--write` names: a new file, or an existing one to which servers are appended.
//!
//! The existing text stays, including comments. The new text is parsed before it is written. It replaces the file
//! atomically, so a reader sees either the old text or the new text.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolcrib_mcp::GatewayConfig;
use toolcrib_mcp::config::{Server, server_toml};
use toolcrib_server::HttpSettings;

use crate::config::location::read_text;
use crate::config::network::Sections;
use crate::documentation::SCHEMA;
use crate::output::Failure;

/// The first line of a new config. Editors read the schema from the path in it. The path is relative, so that it
/// still works if the folder is moved or copied to another machine.
const SCHEMA_LINE: &str = "#:schema ./toolcrib.schema.json\n";
/// Name of the file with the schema, in the folder of the config.
const SCHEMA_NAME: &str = "toolcrib.schema.json";

const HEADER: &str = "# Written by `toolcrib import` and `toolcrib connect`. `toolcrib docs gateway-config` lists every \
                      key.\n";

/// A config that servers are added to.
pub(crate) struct Target {
    path: PathBuf,
    /// The text of the file; `None` if the file does not exist yet.
    text: Option<String>,
    sections: Sections,
}

impl Target {
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let path = followed(path)?;
        if !path.exists() {
            return Ok(Self { path, text: None, sections: GatewayConfig::default().into() });
        }
        let text = read_text(&path)?;
        let sections = Sections::read(None, &text).map_err(|error| {
            Failure::input(format!("`{}`", path.display()), &error, error.hint.clone())
        })?;
        Ok(Self { path, text: Some(text), sections })
    }

    /// Returns the settings of the HTTP server.
    pub(crate) fn http(&self) -> &HttpSettings {
        &self.sections.http
    }

    pub(crate) fn servers(&self) -> BTreeMap<String, Server> {
        self.sections.gateway.servers.clone()
    }

    pub(crate) fn write(
        self,
        servers: BTreeMap<String, Server>,
        added: &[String],
    ) -> Result<(), Failure> {
        let schema_path = if self.text.is_none() { schema_path(&self.path) } else { None };
        let mut text = match &self.text {
            Some(text) if text.trim().is_empty() => String::new(),
            Some(text) => format!("{}\n", text.trim_end()),
            None if schema_path.is_some() => format!("{SCHEMA_LINE}{HEADER}"),
            None => HEADER.to_owned(),
        };
        for name in added {
            if let Some(server) = servers.get(name) {
                text.push('\n');
                text.push_str(&server_toml(name, server));
            }
        }
        let gateway = GatewayConfig { servers, ..self.sections.gateway };
        let expected = Sections { gateway, ..self.sections };
        if Sections::read(None, &text).as_ref() != Ok(&expected) {
            return Err(Failure::input(
                format!("`{}`", self.path.display()),
                &"servers cannot be appended to this file",
                "write each of its servers as a table `[servers.NAME]`, or name another file",
            ));
        }
        check_unchanged(&self.path, self.text.as_deref())?;
        let failed = |source| Failure::Write { path: self.path.display().to_string(), source };
        if let Some(path) = schema_path {
            replace(&path, SCHEMA).map_err(failed)?;
        }
        replace(&self.path, &text).map_err(failed)
    }
}

/// Returns the path with symbolic links resolved, so that a link is followed and not replaced. Fails if the link leads to
/// no file, because replacing the link would separate it from the place where its owner expects the file.
pub(crate) fn followed(path: &Path) -> Result<PathBuf, Failure> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(_) if !path.is_symlink() => Ok(path.to_owned()),
        Err(_) => {
            let target = fs::read_link(path).unwrap_or_default();
            let problem =
                format!("a symbolic link to `{}`, which does not exist", target.display());
            let hint = "create the file that the link leads to, or remove the link";
            Err(Failure::input(format!("`{}`", path.display()), &problem, hint))
        }
    }
}

/// Fails if a config is no longer as it was read. An editor may have saved it while a question was open.
fn check_unchanged(path: &Path, before: Option<&str>) -> Result<(), Failure> {
    let now = if path.exists() { Some(read_text(path)?) } else { None };
    if now.as_deref() == before {
        return Ok(());
    }
    Err(Failure::input(
        format!("`{}`", path.display()),
        &"the file was changed while this command was running, so nothing was written",
        "run the command again",
    ))
}

/// Returns where to write the schema for a config. `None` if there is a file of that name that is not Toolcrib's schema.
fn schema_path(config: &Path) -> Option<PathBuf> {
    let path = config.with_file_name(SCHEMA_NAME);
    let can_be_written = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str::<SchemaTitle>(&text)
            .is_ok_and(|schema| schema.title == "toolcrib.toml"),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    can_be_written.then_some(path)
}

/// The field of a schema that tells whether it is Toolcrib's.
#[derive(Deserialize)]
struct SchemaTitle {
    title: String,
}

/// Replaces a file atomically. A new file is readable only by the user; an existing one keeps its permissions.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        if let Some(folder) = path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            // The new folder is private, because a config in a folder that others can write to would be rejected.
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let mut file = options.open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        if let Ok(old) = fs::metadata(path) {
            fs::set_permissions(&temporary, old.permissions())?;
        }
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
