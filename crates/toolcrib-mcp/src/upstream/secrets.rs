//! What a server was given and may not be repeated, should it say it when it fails.

use url::Url;

use crate::Secret;
use crate::config::{Server, Transport, masked};

/// Shorter values are words that stand in any text.
const SHORTEST: usize = 6;

/// The values of one server's environment and headers, and those of its arguments that look like keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets(Vec<Secret>);

impl Secrets {
    /// Of a server whose references are replaced.
    pub(super) fn of(server: &Server) -> Self {
        let mut secrets: Vec<Secret> = match (&server.transport, &masked(server).transport) {
            (Transport::Stdio { args, env, .. }, Transport::Stdio { args: shown, .. }) => {
                let hidden = args.iter().zip(shown).filter(|(arg, shown)| arg != shown);
                env.values().chain(hidden.map(|(arg, _)| arg)).cloned().collect()
            }
            (Transport::Http { url, headers, oauth }, _) => {
                let url = Url::parse(url).ok();
                let query = url.iter().flat_map(|url| url.query_pairs());
                let query: Vec<Secret> = query.map(|(_, value)| (&*value).into()).collect();
                headers.values().cloned().chain(query).chain(oauth.client_secret.clone()).collect()
            }
            _ => Vec::new(),
        };
        // `Bearer KEY` is repeated without its first word, and `--key=KEY` without its name.
        let tails = secrets.iter().flat_map(|secret| {
            [' ', '=', ':']
                .map(|mark| secret.expose().split_once(mark).map(|(_, tail)| tail.trim()))
        });
        let tails: Vec<Secret> = tails.flatten().map(Secret::from).collect();
        secrets.extend(tails);
        secrets.retain(|secret| secret.expose().len() >= SHORTEST);
        // The longest first: one may hold another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(secrets)
    }

    /// A text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "***"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_a_server_was_given_is_not_repeated() {
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
        let said = "bad CANARY-ENV for CANARY-ARG in folder, nor CANARY-TAIL";
        assert_eq!(Secrets::of(&child).hide(said), "bad *** for *** in folder, nor ***");
        let remote = Server::new(Transport::Http {
            url: "https://example.com/mcp?key=CANARY-URL".into(),
            headers: pairs("Authorization", "Bearer CANARY-KEY"),
            oauth: crate::config::OAuth::default(),
        });
        let said = "no such key: CANARY-KEY, CANARY-URL";
        assert_eq!(Secrets::of(&remote).hide(said), "no such key: ***, ***");
    }
}
