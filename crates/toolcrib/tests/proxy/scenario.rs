//! The ways tools are deferred, the config that brings each about, and what becomes of call ids.

use std::fmt::Write as _;

use crate::api::Api;

/// An API, how tools are deferred in it, and what becomes of the ids of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) api: Api,
    pub(crate) mode: &'static str,
    /// What the upstream can do by itself, as the config says it.
    pub(crate) native: &'static str,
    /// The preset; none if empty. The mode is then the preset's own, and is not in the config.
    pub(crate) preset: &'static str,
    pub(crate) ids: CallIdPolicy,
}

/// The ids of calls, on their way from the provider through an agent and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallIdPolicy {
    /// The provider gives them, and the agent sends them back.
    Kept,
    /// The provider gives none, and the agent sends none.
    Absent,
    /// The provider gives none, and the agent makes some up, as Gemini CLI does.
    Invented,
    /// The provider gives them, and the agent sends others in their place, as clients do that normalise ids.
    Rewritten,
}

const fn scenario(api: Api, mode: &'static str, native: &'static str) -> Scenario {
    Scenario { api, mode, native, preset: "", ids: CallIdPolicy::Kept }
}

/// A preset, and the mode that it brings about under `serve`.
struct Preset {
    name: &'static str,
    mode: &'static str,
}

/// The presets that are tried with each API; another one is added here, with its mode. If that is `reveal` or
/// `append`, `tools` may change when a tool is found ([`Way::grows`]). Nothing else of the prefix may change
/// under any of them.
const PRESETS: [Preset; 7] = [
    Preset { name: "default", mode: "bridge" },
    Preset { name: "words", mode: "bridge" },
    Preset { name: "hermes", mode: "bridge" },
    Preset { name: "everruns", mode: "reveal" },
    Preset { name: "everruns@0.50", mode: "reveal" },
    Preset { name: "opencode", mode: "terse" },
    Preset { name: "claude-code", mode: "append" },
];

/// All that keep `tools` as they are.
pub(crate) const SCENARIOS: [Scenario; 9] = [
    scenario(Api::Chat, "bridge", ""),
    scenario(Api::Responses, "bridge", ""),
    scenario(Api::Messages, "bridge", ""),
    scenario(Api::Gemini, "bridge", ""),
    scenario(Api::Messages, "reference", "references = true"),
    scenario(Api::Responses, "reference", "client_search = true"),
    scenario(Api::Responses, "reference", "client_search = false, additional_tools = true"),
    scenario(Api::Messages, "hosted", "hosted = 'both'"),
    scenario(Api::Responses, "hosted", "hosted = 'openai'"),
];

/// Those of one API.
pub(crate) fn scenarios(api: Api) -> impl Iterator<Item = Scenario> {
    SCENARIOS.into_iter().filter(move |scenario| scenario.api == api)
}

/// The bridge in one API, with ids that are not both given and kept.
pub(crate) fn id_scenarios(api: Api) -> impl Iterator<Item = Scenario> {
    [CallIdPolicy::Absent, CallIdPolicy::Invented, CallIdPolicy::Rewritten]
        .into_iter()
        .map(move |ids| Scenario { ids, ..scenario(api, "bridge", "") })
}

/// The presets in one API, with call ids, without, and with others than were given. Gemini CLI makes up its own.
pub(crate) fn preset_scenarios(api: Api) -> impl Iterator<Item = Scenario> {
    let all: &[CallIdPolicy] = match api {
        Api::Gemini => &[
            CallIdPolicy::Kept,
            CallIdPolicy::Absent,
            CallIdPolicy::Rewritten,
            CallIdPolicy::Invented,
        ],
        _ => &[CallIdPolicy::Kept, CallIdPolicy::Absent, CallIdPolicy::Rewritten],
    };
    PRESETS.iter().flat_map(move |preset| {
        let scenario = Scenario { preset: preset.name, ..scenario(api, preset.mode, "") };
        all.iter().map(move |ids| Scenario { ids: *ids, ..scenario })
    })
}

impl Scenario {
    /// Whether the provider gives ids.
    pub(crate) fn has_ids(&self) -> bool {
        matches!(self.ids, CallIdPolicy::Kept | CallIdPolicy::Rewritten)
    }

    /// Whether `tools` may change when a tool is found.
    pub(crate) fn may_change_tools(&self) -> bool {
        matches!(self.mode, "reveal" | "append")
    }

    /// Whether the scripted model can call a tool that was not found. OpenAI's own search gives each
    /// tool a namespace, which the model cannot know before.
    pub(crate) fn can_call_unfound_tools(&self) -> bool {
        (self.api, self.mode) != (Api::Responses, "hosted")
    }

    /// The config of a replica in front of `url`, with its state in memory or in a Redis.
    pub(crate) fn config(&self, url: &str, redis: Option<&str>) -> String {
        let (preset, mode) = if self.preset.is_empty() {
            (String::new(), format!("mode = '{}'\n", self.mode))
        } else {
            // A window so small that a preset which decides by its share defers.
            (format!("preset = '{}'\ncontext = 20_000\n", self.preset), String::new())
        };
        let mut config = format!(
            "{preset}[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n{mode}"
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
