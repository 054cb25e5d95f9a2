//! Toolsets that were made before.
//!
//! A client sends the same tools on every turn. Reading, indexing and counting them takes milliseconds,
//! finding the result again takes a hash.

use std::num::NonZero;
use std::sync::Arc;

use moka::sync::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};
use toolcrib_core::TokenCounter;
use toolcrib_dialect::{Toolset, ToolsetPlan};
use toolcrib_tokens::VocabularyCounter;

/// Bytes of toolsets that are kept, roughly.
const MAX_BYTES: u64 = 48 << 20;

/// The toolsets of this process.
#[derive(Debug)]
pub(crate) struct ToolsetCache {
    toolsets: Cache<[u8; 32], Arc<Toolset>>,
    /// One permit for each core. Many requests that come at once with the same new tools wait here for the
    /// first of them, and not each on a thread of its own with a copy of the tools.
    building: Semaphore,
}

impl Default for ToolsetCache {
    fn default() -> Self {
        let weigh =
            |_: &[u8; 32], set: &Arc<Toolset>| u32::try_from(set.bytes()).unwrap_or(u32::MAX);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            toolsets: Cache::builder().max_capacity(MAX_BYTES).weigher(weigh).build(),
            building: Semaphore::new(cores),
        }
    }
}

impl ToolsetCache {
    /// The toolset of these tools, made if it was not before.
    pub(crate) async fn get_or_build(&self, plan: ToolsetPlan, tools: &str) -> Arc<Toolset> {
        let key = plan.cache_key(tools);
        if let Some(toolset) = self.get(&key) {
            return toolset;
        }
        let _permit = self.permit().await;
        if let Some(toolset) = self.get(&key) {
            return toolset;
        }
        self.build(key, plan, tools.to_owned()).await
    }

    /// The toolset under a key, if it was made before.
    fn get(&self, key: &[u8; 32]) -> Option<Arc<Toolset>> {
        self.toolsets.get(key)
    }

    /// Waits until there is a core to make a toolset. Another request may have made it meanwhile, so a
    /// copy of the tools is only worth its memory afterwards.
    async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.building.acquire().await.ok()
    }

    /// Makes a toolset.
    async fn build(&self, key: [u8; 32], plan: ToolsetPlan, tools: String) -> Arc<Toolset> {
        let cache = self.toolsets.clone();
        // Counting tokens of thousands of tools would block every other request on this thread.
        let build = move || cache.get_with(key, || Arc::new(Toolset::new(plan, &tools)));
        match tokio::task::spawn_blocking(build).await {
            Ok(toolset) => toolset,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// The counter for a model. Its vocabulary is loaded when it first counts.
pub(crate) fn token_counter(model: &str) -> Arc<dyn TokenCounter> {
    VocabularyCounter::for_model(model).shared()
}
