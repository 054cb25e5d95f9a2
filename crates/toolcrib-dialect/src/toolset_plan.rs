//! The inputs of a toolset, and their cache key.

use std::sync::Arc;

use toolcrib_core::{Settings, TokenCounter};

use crate::api::Api;
use crate::mode::Mode;

/// Everything that a toolset depends on, in addition to the client's tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property")]
pub struct ToolsetPlan {
    /// The client's API.
    pub api: Api,
    /// How tools are deferred, if they are.
    pub mode: Mode,
    /// The engine's settings. The disclosure in them is replaced by `mode`.
    pub settings: Arc<Settings>,
    /// Counts tokens for the model.
    pub counter: Arc<dyn TokenCounter>,
    /// The model's name in the client's request.
    pub model: String,
    /// The model's context window in tokens, if it is known.
    pub context_window: Option<usize>,
    /// Whether tools were deferred earlier in the conversation.
    pub has_deferred_before: bool,
    /// Whether the conversation uses the alternative names of Toolcrib's own tools.
    pub uses_second_names: bool,
    /// Whether the request only counts tokens.
    pub counts_tokens: bool,
    /// Whether nothing is deferred, because the toolset is needed only to check calls.
    pub only_checks_calls: bool,
    /// Tools that must be sent in full. Either the client forces them, or they were called earlier and no record shows
    /// that they were found.
    pub send_in_full: Vec<String>,
}

impl ToolsetPlan {
    /// Returns a hash of the tools and of this plan, for use as a cache key. The settings and the counter are not
    /// included, so they must not change during the lifetime of the cache.
    pub fn cache_key(&self, tools: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        // Each part is preceded by its length, so that different plans never give the same bytes.
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        let flags = [
            self.has_deferred_before,
            self.uses_second_names,
            self.counts_tokens,
            self.only_checks_calls,
            self.context_window.is_some(),
        ];
        add(self.api.name().as_bytes());
        add(self.mode.name().as_bytes());
        add(self.mode.variant_name().as_bytes());
        add(self.model.as_bytes());
        add(&self.context_window.unwrap_or_default().to_le_bytes());
        add(&flags.map(u8::from));
        add(&self.send_in_full.len().to_le_bytes());
        self.send_in_full.iter().for_each(|name| add(name.as_bytes()));
        add(tools.as_bytes());
        *hasher.finalize().as_bytes()
    }
}
