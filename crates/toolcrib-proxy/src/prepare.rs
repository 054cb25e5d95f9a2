//! Toolsets that were made before.
//!
//! A client sends the same tools on every turn. Reading, indexing and counting them takes milliseconds,
//! finding the result again takes a hash.

use std::num::NonZero;
use std::sync::Arc;

use moka::sync::Cache;
use tokio::sync::Semaphore;
use toolcrib_core::TokenCounter;
use toolcrib_dialect::{Plan, Toolset};
use toolcrib_tokens::Counter;

/// Bytes of toolsets that are kept, roughly.
const BYTES: u64 = 48 << 20;

/// The toolsets of this process.
#[derive(Debug)]
pub(crate) struct Toolsets {
    made: Cache<[u8; 32], Arc<Toolset>>,
    /// One permit for each core. A crowd that comes with the same new tools waits here for the first of it,
    /// and not each on a thread of its own with a copy of them.
    making: Semaphore,
}

impl Default for Toolsets {
    fn default() -> Self {
        let weigh =
            |_: &[u8; 32], set: &Arc<Toolset>| u32::try_from(set.bytes()).unwrap_or(u32::MAX);
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            made: Cache::builder().max_capacity(BYTES).weigher(weigh).build(),
            making: Semaphore::new(cores),
        }
    }
}

impl Toolsets {
    /// The toolset of these tools under this plan.
    pub(crate) async fn get(&self, plan: Plan, tools: &str) -> Arc<Toolset> {
        let key = key(&plan, tools);
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let _permit = self.making.acquire().await;
        if let Some(made) = self.made.get(&key) {
            return made;
        }
        let (cache, tools) = (self.made.clone(), tools.to_owned());
        // Counting tokens of thousands of tools would hold up everybody else on this thread.
        let make = move || cache.get_with(key, || Arc::new(Toolset::new(plan, &tools)));
        match tokio::task::spawn_blocking(make).await {
            Ok(made) => made,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        }
    }
}

/// The counter for a model. Its vocabulary is loaded when it first counts.
pub(crate) fn counter(model: &str) -> Arc<dyn TokenCounter> {
    Counter::for_model(model).shared()
}

/// Everything a toolset depends on. The settings are the process's own and never change in it.
fn key(plan: &Plan, tools: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let rest = (
        (plan.api, plan.mode, &plan.model, plan.context),
        (plan.sticky, plan.second_names, plan.counts, &plan.loaded),
    );
    hasher.update(format!("{rest:?}").as_bytes()).update(&[0]).update(tools.as_bytes());
    *hasher.finalize().as_bytes()
}
