//! A cache of toolsets.
//!
//! A client sends the same tools on every turn. Reading and indexing them and counting their tokens takes milliseconds;
//! finding the result in the cache takes one hash computation.

use std::num::NonZero;
use std::sync::Arc;

use moka::sync::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};
use toolcrib_core::TokenCounter;
use toolcrib_dialect::{Toolset, ToolsetPlan};
use toolcrib_tokens::VocabularyCounter;

/// Approximate maximum size of the cache, in bytes.
const MAX_BYTES: u64 = 48 << 20;

/// The toolsets of this process.
#[derive(Debug)]
pub(crate) struct ToolsetCache {
    toolsets: Cache<[u8; 32], Arc<Toolset>>,
    /// One permit for each core. If many requests arrive together with the same new tools, most of them wait here until
    /// the toolset is built, instead of each occupying a thread with a copy of the tools.
    building: Semaphore,
}

impl Default for ToolsetCache {
    fn default() -> Self {
        let weigh = |_: &[u8; 32], set: &Arc<Toolset>| {
            u32::try_from(set.memory_bytes()).unwrap_or(u32::MAX)
        };
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            toolsets: Cache::builder().max_capacity(MAX_BYTES).weigher(weigh).build(),
            building: Semaphore::new(cores),
        }
    }
}

impl ToolsetCache {
    /// Returns the toolset of these tools from the cache, and builds it if necessary.
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

    fn get(&self, key: &[u8; 32]) -> Option<Arc<Toolset>> {
        self.toolsets.get(key)
    }

    /// Waits until a core is free for building a toolset. Another request may build the same toolset meanwhile, so the
    /// cache must be checked again after the wait.
    async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed, so this never returns `None`.
        self.building.acquire().await.ok()
    }

    /// Builds a toolset and adds it to the cache.
    async fn build(&self, key: [u8; 32], plan: ToolsetPlan, tools: String) -> Arc<Toolset> {
        let cache = self.toolsets.clone();
        // Builds on a blocking thread, because counting the tokens of thousands of tools would delay every other
        // request on this thread.
        let build = move || cache.get_with(key, || Arc::new(Toolset::new(plan, &tools)));
        match tokio::task::spawn_blocking(build).await {
            Ok(toolset) => toolset,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// Returns the token counter for a model. The counter loads its vocabulary when it is first used.
pub(crate) fn token_counter(model: &str) -> Arc<dyn TokenCounter> {
    VocabularyCounter::for_model(model).shared()
}
