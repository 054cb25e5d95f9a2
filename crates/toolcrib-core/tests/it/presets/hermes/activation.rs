//! Tests of when the `hermes` preset defers tools.

use serde_json::{Value, json};
use toolcrib_core::DefinitionFormat;
use toolcrib_core::policy::{ActivationReason, ThresholdSource};

use super::{array, auto, mcp, session, show};
use crate::support::{Chat, tool};

/// Tools of 1,000 tokens each, at four characters per token. The last tool is `short` characters shorter.
pub(super) fn thousands(count: usize, short: usize) -> Vec<Value> {
    let sized = |i: usize| {
        let chars = if i + 1 == count { 4_000 - short } else { 4_000 };
        let own = format!("t{i:02}");
        let empty = mcp("acme", &own, "", &json!({})).to_string().len();
        mcp("acme", &own, &"x".repeat(chars - empty), &json!({}))
    };
    (0..count).map(sized).collect()
}

#[test]
fn auto_activates_at_ten_percent_of_the_context_and_not_below() {
    let crib = auto(&thousands(15, 0));
    let decide = |context| show(&mut Chat::new(&crib), Some(context)).decision.reason;
    assert_eq!(
        decide(150_000),
        ActivationReason::Tokens {
            tokens: 15_000,
            threshold: 15_000,
            source: ThresholdSource::Share { window: 150_000 }
        }
    );
    assert!(matches!(decide(150_010), ActivationReason::Below { .. }));
}

#[test]
fn auto_decides_by_the_share_of_the_context_and_not_by_the_saving() {
    let crib = auto(&session()[2..3]);
    let shown = show(&mut Chat::new(&crib), Some(100));
    assert!(matches!(shown.decision.reason, ActivationReason::Tokens { threshold: 10, .. }));
    assert!(shown.tokens_after > shown.tokens_before, "the bridge costs more than one tool");
}

#[test]
fn core_tools_do_not_count_towards_the_threshold() {
    let mut tools = thousands(2, 0);
    tools.push(tool("terminal", &"x".repeat(8_000), &json!({})));
    let crib = auto(&tools);
    let decide = |context| show(&mut Chat::new(&crib), Some(context)).decision.reason;
    assert_eq!(
        decide(20_000),
        ActivationReason::Tokens {
            tokens: 2_000,
            threshold: 2_000,
            source: ThresholdSource::Share { window: 20_000 }
        }
    );
    assert!(matches!(decide(20_010), ActivationReason::Below { .. }));
}

#[test]
fn without_a_known_context_window_the_threshold_is_twenty_thousand_tokens() {
    let decide = |short, context| {
        show(&mut Chat::new(&auto(&thousands(20, short))), context).decision.reason
    };
    assert_eq!(
        decide(0, None),
        ActivationReason::Tokens {
            tokens: 20_000,
            threshold: 20_000,
            source: ThresholdSource::UnknownWindow
        }
    );
    let below = decide(4, None).to_string();
    let fixed = "the token threshold is 20000 because the context window is unknown";
    assert_eq!(below, format!("below the thresholds; {fixed}"));
    let share = Some((ThresholdSource::Share { window: 1_000_000 }, 100_000));
    assert_eq!(
        decide(0, Some(1_000_000)),
        ActivationReason::Below { threshold: share },
        "only the share of the context decides"
    );
}

#[test]
fn below_the_threshold_the_tools_array_is_unchanged() {
    let crib = auto(&session());
    let shown = show(&mut Chat::new(&crib), Some(200_000));
    let input = "[ {\"name\" : \"terminal\"},\n {\"type\":\"web_search_20250305\"} ]";
    assert_eq!(crib.tools_json(&shown, input, DefinitionFormat::Own), input);
    assert_eq!((shown.own_tools.len(), &shown.instruction), (0, &None));
    assert_eq!(shown.tokens_after, shown.tokens_before);
}

#[test]
fn every_request_is_decided_again_and_fewer_servers_end_deferral() {
    let (many, few) = (auto(&thousands(20, 0)), auto(&thousands(3, 0)));
    let mut chat = Chat::new(&many);
    assert!(!show(&mut chat, Some(100_000)).passes_through());
    let mut later = Chat { conversation: chat.conversation, ..Chat::new(&few) };
    let shown = show(&mut later, Some(100_000));
    assert_eq!(array(&shown), ["mcp_acme_t00", "mcp_acme_t01", "mcp_acme_t02"]);
    let mut again = Chat { conversation: later.conversation, ..Chat::new(&many) };
    assert!(!show(&mut again, Some(100_000)).passes_through());
    assert!(
        show(&mut again, Some(1_000_000)).passes_through(),
        "in a larger context window, nothing is deferred"
    );
}
