//! References in a config: `${NAME}` and its kin become what they stand for.
//!
//! Pure: what a name means comes in as a function, [`surroundings`] being the real one. A reference
//! to nothing is an error that names the reference, since a server that is started with half a token
//! fails in ways nobody understands. What a reference brings in is not looked at again.
//!
//! | written | stands for |
//! |---|---|
//! | `${NAME}`, `${env:NAME}` | a variable of the environment |
//! | `${NAME:-text}` | the same, or the text where it is not set |
//! | `${file:PATH}` | what is in a file, less the line break at its end |
//! | `${userHome}`, and `~/` at the start of `command` and `cwd` | the home folder |
//! | `${workspaceFolder}` | the folder we run in |
//! | `$${` | `${` itself |

use std::io::Read as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{ConfigError, Server, Transport, check};
use crate::Secret;

/// Defaults inside defaults; nobody writes more than one.
const DEPTH: usize = 8;
/// Bytes of a file that holds a secret.
const FILE_BYTES: u64 = 64 << 10;

/// What a reference asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A variable of the environment.
    Variable(&'a str),
    /// The text of a file.
    File(&'a str),
    /// The user's home folder.
    Home,
    /// The folder we run in.
    Folder,
}

/// A reference that stands for nothing. It holds names, never values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unset {
    /// A variable.
    #[error("the variable `{0}` is not set")]
    Variable(String),
    /// A file.
    #[error("the file `{0}` cannot be read")]
    File(String),
    /// A question that an editor would ask its user.
    #[error("`${{input:{0}}}` asks a person, and nobody is asked here")]
    Input(String),
    /// The home folder.
    #[error("the home folder is not known")]
    Home,
    /// The folder we run in.
    #[error("the current folder is not known")]
    Folder,
    /// A `${` without its `}`, or something else between them.
    #[error("a `${{` that begins no reference we know")]
    Form,
}

impl Unset {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Variable(_) => {
                "set it where Toolcrib is started, or give a default: `${NAME:-text}`"
            }
            Self::File(_) => "check the path and its permissions; 64 KiB at most, as UTF-8",
            Self::Input(_) => "put it into a variable and write `${NAME}` instead",
            Self::Home => "set HOME",
            Self::Folder => "start Toolcrib in a folder that is there",
            Self::Form => {
                "`${NAME}`, `${NAME:-text}` and `${file:PATH}` are known; `$${` means `${`"
            }
        }
    }
}

/// A text with its references replaced.
pub fn expand(
    text: &Secret,
    lookup: &impl Fn(Source<'_>) -> Option<String>,
) -> Result<Secret, Unset> {
    Ok(expanded(text.expose(), lookup, 0)?.into())
}

fn expanded(
    text: &str,
    lookup: &impl Fn(Source<'_>) -> Option<String>,
    depth: usize,
) -> Result<String, Unset> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        out.push_str(before);
        let end = closing(from).ok_or(Unset::Form)?;
        out.push_str(&resolved(&from[2..end], lookup, depth)?);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Where the reference ends that a text begins with; those in its default are passed over.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => open += 1,
            b'}' => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn resolved(
    inner: &str,
    lookup: &impl Fn(Source<'_>) -> Option<String>,
    depth: usize,
) -> Result<String, Unset> {
    match inner {
        "userHome" => return lookup(Source::Home).ok_or(Unset::Home),
        "workspaceFolder" => return lookup(Source::Folder).ok_or(Unset::Folder),
        _ => {}
    }
    if let Some(path) = inner.strip_prefix("file:") {
        let content = lookup(Source::File(path)).ok_or_else(|| Unset::File(path.to_owned()))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        return Ok(content.strip_suffix('\r').unwrap_or(content).to_owned());
    }
    if let Some(id) = inner.strip_prefix("input:") {
        return Err(Unset::Input(id.to_owned()));
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if !is_name(name) {
        return Err(Unset::Form);
    }
    match (lookup(Source::Variable(name)), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) if depth < DEPTH => expanded(default, lookup, depth + 1),
        (None, Some(_)) => Err(Unset::Form),
        (None, None) => Err(Unset::Variable(name.to_owned())),
    }
}

/// Whether a text can be the name of a variable. `ProgramFiles(x86)` is one too.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
}

impl Server {
    /// The server with every reference replaced, and checked once more: only now its address is
    /// whole.
    pub fn expanded(
        &self,
        name: &str,
        lookup: &impl Fn(Source<'_>) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let unset =
            |error: Unset| ConfigError::new(format!("server `{name}`: {error}"), error.hint());
        let text = |text: &str| expanded(text, lookup, 0);
        let secret = |secret: &Secret| expand(secret, lookup);
        let path = |written: &str| match written.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                Ok(lookup(Source::Home).ok_or(Unset::Home)? + &text(rest)?)
            }
            _ => text(written),
        };
        let transport = || {
            Ok(match &self.transport {
                Transport::Stdio { command, args, env, cwd } => Transport::Stdio {
                    command: path(command)?,
                    args: args.iter().map(secret).collect::<Result<_, _>>()?,
                    env: values(env, secret)?,
                    cwd: match cwd {
                        Some(cwd) => Some(PathBuf::from(path(&cwd.to_string_lossy())?)),
                        None => None,
                    },
                },
                Transport::Http { url, headers, oauth } => {
                    let mut oauth = oauth.clone();
                    oauth.client_secret = oauth.client_secret.as_ref().map(secret).transpose()?;
                    Transport::Http { url: text(url)?, headers: values(headers, secret)?, oauth }
                }
            })
        };
        let server = Self { transport: transport().map_err(unset)?, ..self.clone() };
        check::server(&server).map_err(|fault| {
            let problem = format!("server `{name}`: `{}` {}", fault.path.join("."), fault.problem);
            ConfigError::new(problem, fault.hint)
        })?;
        // What a variable brought in was not there to be looked at before.
        if let Transport::Http { url, .. } = &server.transport
            && let Some(problem) = super::url::problem(url)
        {
            let problem = format!("server `{name}`: `url` {problem}");
            return Err(ConfigError::new(problem, "an address is like `https://example.com/mcp`"));
        }
        Ok(server)
    }
}

type Values = std::collections::BTreeMap<String, Secret>;

fn values(
    values: &Values,
    secret: impl Fn(&Secret) -> Result<Secret, Unset>,
) -> Result<Values, Unset> {
    values.iter().map(|(key, value)| Ok((key.clone(), secret(value)?))).collect()
}

/// What references mean on this machine: its environment, its files and its folders.
pub fn surroundings(source: Source<'_>) -> Option<String> {
    let home = || std::env::var("HOME").or_else(|_| std::env::var("USERPROFILE")).ok();
    match source {
        Source::Variable(name) => std::env::var(name).ok(),
        Source::Home => home(),
        Source::Folder => Some(std::env::current_dir().ok()?.to_str()?.to_owned()),
        Source::File(path) => {
            let path = match path.strip_prefix("~/") {
                Some(rest) => Path::new(&home()?).join(rest),
                None => PathBuf::from(path),
            };
            let mut text = String::new();
            let file = std::fs::File::open(path).ok()?;
            file.take(FILE_BYTES + 1).read_to_string(&mut text).ok()?;
            (text.len() as u64 <= FILE_BYTES).then_some(text)
        }
    }
}
