//! The scenarios of the tests. A scenario consists of an API, a way to defer tools with its config, and a way to treat
//! call ids.

use std::fmt::Write as _;

use crate::api::Api;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) api: Api,
    pub(crate) mode: &'static str,
    /// The native features of the upstream, as the config declares them.
    pub(crate) native: &'static str,
    /// The name of the preset; empty for none. With a preset, `mode` is the preset's own mode and is not written to the
    /// config.
    pub(crate) preset: &'static str,
    pub(crate) ids: CallIdPolicy,
}

/// How call ids are treated between the provider and the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallIdPolicy {
    /// The provider sends ids, and the agent returns them.
    Kept,
    /// The provider sends no ids, and neither does the agent.
    Absent,
    /// The provider sends no ids, and the agent invents its own, as Gemini CLI does.
    Invented,
    /// The provider sends ids, and the agent replaces them, as clients that normalise ids do.
    Rewritten,
}

const fn scenario(api: Api, mode: &'static str, native: &'static str) -> Scenario {
    Scenario { api, mode, native, preset: "", ids: CallIdPolicy::Kept }
}

/// A preset, and the mode that `serve` uses with it.
struct Preset {
    name: &'static str,
    mode: &'static str,
}

/// The presets that are tested with each API. A new preset is added here, with its mode. In the modes `reveal` and
/// `append`, `tools` may change when a tool is found ([`Scenario::may_change_tools`]). No other part of the prefix may
/// change.
const PRESETS: [Preset; 7] = [
    Preset { name: "default", mode: "bridge" },
    Preset { name: "words", mode: "bridge" },
    Preset { name: "hermes", mode: "bridge" },
    Preset { name: "everruns", mode: "reveal" },
    Preset { name: "everruns@0.50", mode: "reveal" },
    Preset { name: "opencode", mode: "terse" },
    Preset { name: "claude-code", mode: "append" },
];

/// The scenarios without a preset: the modes `bridge`, `reference` and `hosted`, in which `tools` never changes.
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

/// Returns the scenarios of one API in [`SCENARIOS`].
pub(crate) fn scenarios(api: Api) -> impl Iterator<Item = Scenario> {
    SCENARIOS.into_iter().filter(move |scenario| scenario.api == api)
}

/// Returns the scenarios of one API that use the bridge with absent or changed ids.
pub(crate) fn id_scenarios(api: Api) -> impl Iterator<Item = Scenario> {
    [CallIdPolicy::Absent, CallIdPolicy::Invented, CallIdPolicy::Rewritten]
        .into_iter()
        .map(move |ids| Scenario { ids, ..scenario(api, "bridge", "") })
}

/// Returns the scenarios of one API with each preset: with call ids, without ids, and with changed ids. For Gemini
/// there is also a scenario with invented ids, as Gemini CLI sends them.
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
    /// Whether the provider sends call ids.
    pub(crate) fn has_ids(&self) -> bool {
        matches!(self.ids, CallIdPolicy::Kept | CallIdPolicy::Rewritten)
    }

    /// Whether `tools` may change when a tool is found.
    pub(crate) fn may_change_tools(&self) -> bool {
        matches!(self.mode, "reveal" | "append")
    }

    /// Whether the scripted model can call a tool that it has not found. With OpenAI's own search it cannot, because
    /// that search gives each tool a namespace, which the model cannot know in advance.
    pub(crate) fn can_call_unfound_tools(&self) -> bool {
        (self.api, self.mode) != (Api::Responses, "hosted")
    }

    /// Returns the config of a replica whose upstream is `url`, with its state in memory or in Redis.
    pub(crate) fn config(&self, url: &str, redis: Option<&str>) -> String {
        let (preset, mode) = if self.preset.is_empty() {
            (String::new(), format!("mode = '{}'\n", self.mode))
        } else {
            // The context window is small, so that presets which defer above a share of it do so.
            (format!("preset = '{}'\ncontext = 20_000\n", self.preset), String::new())
        };
        let mut config = format!(
            "{preset}[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n{mode}"
        );
        if let Some(redis) = redis {
            // The timeout is long enough for any machine, because these tests are about the content of the store.
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
