//! Expands the references in a server's config, such as `${NAME}`.
//!
//! In addition to the references that every section of `toolcrib.toml` may contain, `~/` at the start of `command` and
//! `cwd` stands for the home folder.

use std::path::PathBuf;

use toolcrib_server::expand::{Reference, ReferenceError, expand_secret, expand_text};
use toolcrib_server::url;

use super::{ConfigError, Server, Transport, check};
use crate::Secret;

impl Server {
    /// Expands every reference in the server's config. The result is checked again, because only now is the URL
    /// complete.
    pub fn expanded(
        &self,
        name: &str,
        lookup: &impl Fn(Reference<'_>) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let unset = |error: ReferenceError| {
            ConfigError::new(format!("server `{name}`: {error}"), error.hint())
        };
        let text = |text: &str| expand_text(text, lookup);
        let secret = |secret: &Secret| expand_secret(secret, lookup);
        let path = |written: &str| match written.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                Ok(lookup(Reference::Home).ok_or(ReferenceError::UnknownHome)? + &text(rest)?)
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
                Transport::Http { url, variant, headers, oauth } => {
                    let mut oauth = oauth.clone();
                    oauth.client_secret = oauth.client_secret.as_ref().map(secret).transpose()?;
                    let headers = values(headers, secret)?;
                    Transport::Http { url: text(url)?, variant: *variant, headers, oauth }
                }
            })
        };
        let mut server = Self { transport: transport().map_err(unset)?, ..self.clone() };
        for tool in server.tools.values_mut() {
            for (_, value) in &mut tool.defaults {
                *value = value.expanded(lookup).map_err(unset)?;
            }
        }
        check::server(&server).map_err(|fault| {
            let problem = format!("server `{name}`: `{}` {}", fault.path.join("."), fault.problem);
            ConfigError::new(problem, fault.hint)
        })?;
        // `check::server` skips a URL that contains `${`. Even the expanded URL may contain `${`, so the URL is checked
        // here in any case.
        if let Transport::Http { url, .. } = &server.transport
            && let Some(problem) = url::problem(url)
        {
            let problem = format!("server `{name}`: `url` {problem}");
            return Err(ConfigError::new(problem, "a URL is like `https://example.com/mcp`"));
        }
        Ok(server)
    }
}

type Values = std::collections::BTreeMap<String, Secret>;

fn values(
    values: &Values,
    secret: impl Fn(&Secret) -> Result<Secret, ReferenceError>,
) -> Result<Values, ReferenceError> {
    values.iter().map(|(key, value)| Ok((key.clone(), secret(value)?))).collect()
}
