//! The secrets in a server's config. They are masked in everything that the server writes when it fails.

use url::Url;

use crate::Secret;
use crate::config::{Server, ToolDefault, Transport, masked};

/// Minimum length of a value that is masked, in bytes. Shorter values may be ordinary words.
const MIN_BYTES: usize = 6;

/// The secrets of one server: the values of its environment variables and headers, the arguments that look like keys,
/// the values in the query of its URL, its OAuth client secret, and the defaults of its tools that contain references.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets(Vec<Secret>);

impl Secrets {
    /// Collects the secrets of a server. The references in its config must already be expanded.
    pub(super) fn of(server: &Server) -> Self {
        let mut secrets: Vec<Secret> = match (&server.transport, &masked(server).transport) {
            (Transport::Stdio { args, env, .. }, Transport::Stdio { args: shown, .. }) => {
                let hidden = args.iter().zip(shown).filter(|(arg, shown)| arg != shown);
                env.values().chain(hidden.map(|(arg, _)| arg)).cloned().collect()
            }
            (Transport::Http { url, headers, oauth, .. }, _) => {
                let url = Url::parse(url).ok();
                let query = url.iter().flat_map(|url| url.query_pairs());
                let query: Vec<Secret> = query.map(|(_, value)| (&*value).into()).collect();
                headers.values().cloned().chain(query).chain(oauth.client_secret.clone()).collect()
            }
            _ => Vec::new(),
        };
        let defaults = server.tool_defaults().flat_map(ToolDefault::secret_strings);
        secrets.extend(defaults.map(Secret::from));
        // A server may write the key of `Bearer KEY` or `--key=KEY` without the text before it, so the key alone is
        // also masked.
        let tails = secrets.iter().flat_map(|secret| {
            [' ', '=', ':']
                .map(|mark| secret.expose().split_once(mark).map(|(_, tail)| tail.trim()))
        });
        let tails: Vec<Secret> = tails.flatten().map(Secret::from).collect();
        secrets.extend(tails);
        secrets.retain(|secret| secret.expose().len() >= MIN_BYTES);
        // The longest secrets are masked first, because one secret may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(secrets)
    }

    /// Replaces each secret in a text with `***`.
    pub(super) fn mask(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "***"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::ToolOverride;

    #[test]
    fn secrets_of_the_config_are_masked() {
        let pairs =
            |key: &str, value: &str| BTreeMap::from([(key.to_owned(), Secret::from(value))]);
        let child = Server::new(Transport::Stdio {
            command: "run".into(),
            args: vec![
                "--api-key".into(),
                "CANARY-ARG".into(),
                "folder".into(),
                "--key=CANARY-TAIL".into(),
            ],
            env: pairs("TOKEN", "CANARY-ENV"),
            cwd: None,
        });
        let text = "bad CANARY-ENV for CANARY-ARG in folder, nor CANARY-TAIL";
        assert_eq!(Secrets::of(&child).mask(text), "bad *** for *** in folder, nor ***");
        let mut with_default = child.clone();
        let default = ToolDefault::new("key ${KEY}".into());
        let default = default.expanded(&|_| Some("CANARY-DEFAULT".into())).unwrap();
        let change =
            ToolOverride { defaults: vec![("key".into(), default)], ..ToolOverride::default() };
        with_default.tools.insert("read".into(), change);
        assert_eq!(Secrets::of(&with_default).mask("CANARY-DEFAULT, key"), "***, key");
        let remote = Server::new(Transport::Http {
            url: "https://example.com/mcp?key=CANARY-URL".into(),
            variant: crate::config::HttpVariant::Auto,
            headers: pairs("Authorization", "Bearer CANARY-KEY"),
            oauth: crate::config::OAuth::default(),
        });
        let text = "no such key: CANARY-KEY, CANARY-URL";
        assert_eq!(Secrets::of(&remote).mask(text), "no such key: ***, ***");
    }
}
