//! The ways tools are deferred, and the config that brings each about.

use std::fmt::Write as _;

use crate::voice::Api;

/// An API, and how tools are deferred in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Way {
    pub(crate) api: Api,
    pub(crate) mode: &'static str,
    /// What the upstream can do by itself, as the config says it.
    pub(crate) native: &'static str,
}

const fn way(api: Api, mode: &'static str, native: &'static str) -> Way {
    Way { api, mode, native }
}

/// All that keep `tools` as they are.
pub(crate) const WAYS: [Way; 9] = [
    way(Api::Chat, "bridge", ""),
    way(Api::Responses, "bridge", ""),
    way(Api::Messages, "bridge", ""),
    way(Api::Gemini, "bridge", ""),
    way(Api::Messages, "reference", "references = true"),
    way(Api::Responses, "reference", "client_search = true"),
    way(Api::Responses, "reference", "client_search = false, additional_tools = true"),
    way(Api::Messages, "hosted", "hosted = 'both'"),
    way(Api::Responses, "hosted", "hosted = 'openai'"),
];

/// Those of one API.
pub(crate) fn ways(api: Api) -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(move |way| way.api == api)
}

impl Way {
    /// Whether the scripted model can call a tool that was not found. OpenAI's own search gives each
    /// tool a namespace, which the model cannot know before.
    pub(crate) fn calls_blind(&self) -> bool {
        (self.api, self.mode) != (Api::Responses, "hosted")
    }

    /// The config of a replica in front of `url`, with its state in memory or in a Redis.
    pub(crate) fn config(&self, url: &str, redis: Option<&str>) -> String {
        let mut config = format!(
            "[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\nmode = '{}'\n",
            self.mode
        );
        if let Some(redis) = redis {
            // Long enough for any machine: the tests are about what is in the store.
            writeln!(config, "[proxy.state]\nredis = '{redis}'\ntimeout_ms = 60_000").unwrap();
        }
        if !self.native.is_empty() {
            writeln!(
                config,
                "[[proxy.routes]]\nmodels = ['*']\nurl = '{url}'\nclient_key = true\nnative = {{ {} }}",
                self.native
            )
            .unwrap();
        }
        config
    }
}
