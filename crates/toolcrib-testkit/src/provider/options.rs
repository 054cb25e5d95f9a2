//! How the provider behaves.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::provider::canned_response::CannedResponse;
use crate::provider::script::{Script, Step};

/// How the provider behaves. The default plays [`Script::Goal`] on a port of its own and knows
/// every native feature.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 picks one.
    pub listen: SocketAddr,
    /// What is played where the first user message has no `script:NAME`.
    pub script: Script,
    /// What is played for `script:NAME` in the first user message.
    pub scripts: BTreeMap<String, Script>,
    /// Answers for the first requests, in order, before any script. Empty: scripts only.
    pub responses: Vec<CannedResponse>,
    /// NativeSearch features that are refused with the 400 of a backend that lacks them.
    pub rejects: Vec<RejectedFeature>,
    /// Odd shapes of calls, as compatible servers send them.
    pub quirks: Vec<ChatQuirk>,
    /// Anthropic thinking blocks are bound to everything before them, and checked.
    pub bind_thinking: bool,
    /// Whether calls carry ids. Without them a result must have no id either, as its call, unless the client gave
    /// the same one to both.
    pub call_ids: bool,
    /// Answers with a paced stream of text in place of any script, for benchmarks.
    pub pace: Option<Pace>,
    /// Whether requests are kept; benchmarks would fill memory with them.
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

    /// Gives these answers first, in order.
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

/// A native feature that a backend does not know.
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
    /// Responses' `namespace` tools.
    Namespace,
    /// Responses' `additional_tools` items.
    AdditionalTools,
}

/// An odd shape, seen from servers that call themselves compatible. All but the last two are
/// about Chat streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChatQuirk {
    /// A call arrives in one chunk.
    WholeCall,
    /// Fragments of calls carry no `index`.
    NoIndex,
    /// Every fragment of a call actions `index: 0`; only the ids tell calls apart.
    SameIndex,
    /// The name of a call is split over two chunks.
    SplitName,
    /// `finish_reason` is `stop` although there are calls. Chat, streaming or not.
    StopWithCalls,
    /// Arguments are an object and not a string of JSON. Chat, not streaming.
    ObjectArguments,
}

/// A stream of text at a fixed pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many deltas.
    pub deltas: usize,
    /// The pause before each.
    pub pause: Duration,
}
