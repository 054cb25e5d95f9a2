//! Options of the provider.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::provider::canned_response::CannedResponse;
use crate::provider::script::{Script, Step};

/// Options of the provider. By default, it listens on a free port, plays [`Script::Goal`] and supports every native
/// feature.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The script that is played if the first user message contains no `script:NAME`.
    pub script: Script,
    /// The scripts that `script:NAME` in the first user message can select.
    pub scripts: BTreeMap<String, Script>,
    /// Responses to the first requests, in order. Later requests are answered by the script.
    pub responses: Vec<CannedResponse>,
    /// Native features that the provider rejects, with the error that a backend without the feature returns (status
    /// 400).
    pub rejects: Vec<RejectedFeature>,
    /// Deviations from the format of Chat Completions, as some compatible servers have them.
    pub quirks: Vec<ChatQuirk>,
    /// Whether the signature of an Anthropic thinking block depends on everything before the block, and is checked.
    pub bind_thinking: bool,
    /// Whether calls have ids. If they have none, results must not have ids either, unless the client gave the same id
    /// to the call and to its result.
    pub call_ids: bool,
    /// If set, the provider streams text at this pace instead of playing a script. Used in benchmarks.
    pub pace: Option<Pace>,
    /// Whether received requests are kept. In benchmarks they are not, because they would fill the memory.
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
    /// Returns options that play these steps in every conversation.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { script: Script::steps(steps), ..Self::default() }
    }

    /// Returns options that send these responses first, in order.
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

/// A native feature that the provider can be configured to reject, like a backend that does not support it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RejectedFeature {
    /// The field `defer_loading` of a tool.
    DeferLoading,
    /// Any native search tool, whether the provider or the client runs the search.
    ToolSearch,
    /// Only the BM25 variant of the search tool, as on Bedrock.
    Bm25,
    /// Blocks of type `tool_reference`.
    ToolReference,
    /// Tools of type `namespace` in Responses.
    Namespace,
    /// Items of type `additional_tools` in Responses.
    AdditionalTools,
}

/// A deviation from the format of Chat Completions, as seen in servers that claim to be compatible. All variants except
/// the last two concern only streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChatQuirk {
    /// A call is sent in one chunk instead of in fragments.
    WholeCall,
    /// Fragments of calls have no `index`.
    NoIndex,
    /// Every fragment of a call has `index: 0`, so only the ids distinguish the calls.
    SameIndex,
    /// The name of a call is split across two chunks.
    SplitName,
    /// `finish_reason` is `stop` although there are calls, both with and without streaming.
    StopWithCalls,
    /// Arguments are an object instead of a JSON string. Applies only without streaming.
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
