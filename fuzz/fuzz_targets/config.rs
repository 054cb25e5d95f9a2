//! Reads any text as settings of Toolcrib or of another system.
//!
//! An error must say what to do. Settings that are accepted must be within the documented ranges, and a crib must be
//! able to serve with them, however unusual the numbers are.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use toolcrib_core::{Catalog, Conversation, Crib, Preset, SearchRequest, Settings, TurnContext};
use toolcrib_fuzz::{check_reply, every_second};

static CATALOG: LazyLock<Catalog> = LazyLock::new(toolcrib_fuzz::catalog);

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Settings::from_toml(text) {
        Err(error) => assert!(!error.hint().is_empty() && !error.to_string().is_empty()),
        Ok(settings) => {
            check_ranges(&settings);
            serve(settings);
        }
    }
    let Ok(config) = serde_json::from_str(text) else { return };
    for preset in [Preset::Everruns, Preset::Hermes, Preset::Opencode, Preset::ClaudeCode] {
        let configured = preset.configured(&config).expect("every configuration is read");
        check_ranges(&configured.settings);
        serve(configured.settings);
    }
});

fn check_ranges(settings: &Settings) {
    let search = &settings.search;
    assert!((1..=search.max_limit).contains(&search.limit), "limit {}", search.limit);
    assert!(search.max_limit <= 50, "max_limit {}", search.max_limit);
    assert!((0.0..=1.0).contains(&search.cutoff), "cutoff {}", search.cutoff);
    assert!(search.reply_tokens >= 200, "reply_tokens {}", search.reply_tokens);
    for percent in [settings.activation.context_percent, settings.listing.context_percent] {
        assert!((0.0..=100.0).contains(&percent), "context_percent {percent}");
    }
}

fn serve(settings: Settings) {
    let crib = Crib::new(CATALOG.clone(), settings);
    let scope = every_second(crib.catalog());
    let turn = TurnContext::new(&scope).with_context_window(100_000);
    let mut conversation = Conversation::new();
    let shown = crib.disclose(&turn, &mut conversation);
    assert!(
        shown.tools.iter().all(|shown| scope.contains(shown.id)),
        "a shown tool is not in scope"
    );
    let asks = [
        SearchRequest::query("open an issue in the repository"),
        SearchRequest::query("select:ping, tree/insert-node, vault__rotate_key"),
        SearchRequest::pattern("issue|node"),
        SearchRequest::default(),
    ];
    for ask in asks {
        check_reply(&crib, &scope, &crib.search(&turn, &mut conversation, &ask));
    }
    crib.disclose(&turn, &mut conversation);
}
