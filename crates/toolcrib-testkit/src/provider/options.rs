//! Options of the provider.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::provider::canned_response::CannedResponse;
use crate::provider::script::{Script, Step};

/// Options of the provider. By default it plays [`Script::Goal`] on a free port and supports every native feature.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    /// The script if the first user message contains no `script:NAME`.
    pub script: Script,
    /// The scripts for `script:NAME` in the first user message.
    pub scripts: BTreeMap<String, Script>,
    /// Responses to the first requests, in order, before any script.
    pub responses: Vec<CannedResponse>,
    /// Native features that are rejected with the 400 of a backend that does not support them.
    pub rejects: Vec<RejectedFeature>,
    /// Deviations in the format of calls, as seen from compatible servers.
    pub quirks: Vec<ChatQuirk>,
    /// Whether Anthropic thinking blocks are bound to everything before them, and checked.
    pub bind_thinking: bool,
    /// Whether calls have ids. If they have none, a result must have no id either, unless the client gave the call and
    /// the result the same id.
    pub call_ids: bool,
    /// Streams text at this pace instead of playing a script, for benchmarks.
    pub pace: Option<Pace>,
    /// Whether received requests are kept; in benchmarks they would fill the memory.
    pub keep_requests: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            script: Script::Goal,
            scripts: BTreeMap::new(),
            responses: Vec::new(),
            rejects: Vec::new(),
            quirks: Vec::new(),
            bind_thinking: false,
            call_ids: true,
            pace: None,
            keep_requests: true,
        }
    }
}

impl Options {
    /// Plays these steps in every conversation.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { script: Script::steps(steps), ..Self::default() }
    }

    /// Sends these responses first, in order.
    pub fn responses(responses: impl IntoIterator<Item = CannedResponse>) -> Self {
        Self { responses: responses.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn rejects_feature(&self, feature: RejectedFeature) -> bool {
        self.rejects.contains(&feature)
    }

    pub(crate) fn has_quirk(&self, quirk: ChatQuirk) -> bool {
        self.quirks.contains(&quirk)
    }
}

/// A native feature that a backend does not support.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RejectedFeature {
    /// `defer_loading` on a tool.
    DeferLoading,
    /// Any hosted or native search tool.
    ToolSearch,
    /// The BM25 variant only, as on Bedrock.
    Bm25,
    /// `tool_reference` blocks.
    ToolReference,
    /// `namespace` tools of Responses.
    Namespace,
    /// `additional_tools` items of Responses.
    AdditionalTools,
}

/// A deviation from the format of Chat Completions, as seen from servers that call themselves compatible. All but the
/// last two concern streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChatQuirk {
    /// A call is sent in one chunk.
    WholeCall,
    /// Fragments of calls have no `index`.
    NoIndex,
    /// Every fragment of a call has `index: 0`; only the ids tell calls apart.
    SameIndex,
    /// The name of a call is split across two chunks.
    SplitName,
    /// `finish_reason` is `stop` although there are calls. Also without streaming.
    StopWithCalls,
    /// Arguments are an object instead of a JSON string. Only without streaming.
    ObjectArguments,
}

/// A stream of text at a fixed pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The number of deltas.
    pub deltas: usize,
    /// The pause before each delta.
    pub pause: Duration,
}
