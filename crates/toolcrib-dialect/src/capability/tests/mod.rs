//! Tests of normalised model ids, of the capabilities of hosts and models, and of the errors that report an unsupported
//! feature.

use proptest::prelude::*;

use super::*;

mod models;
mod unsupported_features;

const ANTHROPIC: &str = "api.anthropic.com";
const OPENAI: &str = "api.openai.com";
const BEDROCK: &str = "bedrock-runtime.us-east-1.amazonaws.com";
const VERTEX: &str = "us-east5-aiplatform.googleapis.com";

fn plain(api: Api, host: &str, model: &str) -> Capability {
    resolve_capability(api, host, model, None, &LearnedUnsupported::default(), 0)
}

/// Writes a capability as letters: `b` for both of Anthropic's hosted searches, `r` for only the one by regular
/// expressions, `o` for OpenAI's hosted search, `d` for references, `c` for client search and `t` for additional tools.
fn short(capability: &Capability) -> String {
    let hosted = match capability.hosted {
        HostedSupport::None => "",
        HostedSupport::Regex => "r",
        HostedSupport::Both => "b",
        HostedSupport::OpenAi => "o",
    };
    let flags = [
        (capability.references, 'd'),
        (capability.client_search, 'c'),
        (capability.additional_tools, 't'),
    ];
    hosted.chars().chain(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag)).collect()
}

#[test]
fn a_capability_has_a_reason_and_its_betas() {
    let search_beta = &["tool-search-tool-2025-10-19"][..];
    for (api, host, model, reason, betas) in [
        (Api::Messages, ANTHROPIC, "claude-opus-5", CapabilityReason::FirstParty, &[][..]),
        (Api::Messages, ANTHROPIC, "claude-opus-4-1", CapabilityReason::Model, &[]),
        (Api::Messages, BEDROCK, "claude-opus-4-5", CapabilityReason::Cloud, search_beta),
        (Api::Messages, VERTEX, "claude-opus-5", CapabilityReason::Cloud, search_beta),
        (Api::Messages, "localhost", "claude-opus-5", CapabilityReason::Host, &[]),
        (Api::Responses, "x.openai.azure.com", "gpt-5.4", CapabilityReason::Deployment, &[]),
        (Api::Responses, OPENAI, "o3", CapabilityReason::FirstParty, &[]),
        (Api::Chat, OPENAI, "gpt-5.4", CapabilityReason::Api, &[]),
    ] {
        let got = plain(api, host, model);
        assert_eq!((got.reason, got.betas), (reason, betas), "{host} {model}");
    }
}

#[test]
fn learned_features_override_the_configuration_which_overrides_the_rules() {
    let mut learned = LearnedUnsupported::default();
    learned.learn(
        Api::Responses,
        "API.openai.com:443",
        "openai/gpt-5.4",
        UnsupportedFeature::Search,
        100,
    );
    let got = |configured: Option<&CapabilityOverrides>| {
        let got = resolve_capability(
            Api::Responses,
            "API.openai.com",
            "gpt-5.4",
            configured,
            &learned,
            200,
        );
        (short(&got), got.reason)
    };
    assert_eq!(got(None), ("t".into(), CapabilityReason::Unsupported(UnsupportedFeature::Search)));
    let configured =
        CapabilityOverrides { client_search: Some(true), ..CapabilityOverrides::default() };
    assert_eq!(
        got(Some(&configured)),
        ("t".into(), CapabilityReason::Unsupported(UnsupportedFeature::Search))
    );
    let configured =
        CapabilityOverrides { additional_tools: Some(false), ..CapabilityOverrides::default() };
    assert_eq!(
        got(Some(&configured)),
        (String::new(), CapabilityReason::Unsupported(UnsupportedFeature::Search))
    );
    let later = resolve_capability(
        Api::Responses,
        "API.openai.com",
        "gpt-5.4",
        Some(&configured),
        &learned,
        100 + LearnedUnsupported::DEFAULT_HOURS * 3_600,
    );
    assert_eq!((short(&later).as_str(), later.reason), ("oc", CapabilityReason::Configured));
    assert_eq!(
        got(Some(&CapabilityOverrides::default())).1,
        CapabilityReason::Unsupported(UnsupportedFeature::Search)
    );
    // A deployment can have any name, so its features are known only if the configuration names the model that it runs.
    let configured_model =
        CapabilityOverrides { model: Some("gpt-5.4".into()), ..CapabilityOverrides::default() };
    let azure = |model, configured| {
        resolve_capability(Api::Responses, "x.openai.azure.com", model, configured, &learned, 200)
    };
    assert_eq!(short(&azure("ours", Some(&configured_model))), "oc");
    assert_eq!(short(&azure("ours", None)), "");
    let old = CapabilityOverrides { model: Some("gpt-4.1".into()), ..configured_model };
    assert_eq!(azure("ours", Some(&old)).reason, CapabilityReason::Model);
}

#[test]
fn an_unsupported_feature_is_removed_with_those_that_depend_on_it() {
    for (api, host, model, missing, left) in [
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::Bm25, "rd"),
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::Search, "d"),
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::References, ""),
        (Api::Messages, BEDROCK, "claude-opus-5-5", UnsupportedFeature::Bm25, "rd"),
        (Api::Responses, OPENAI, "gpt-5.6", UnsupportedFeature::Search, "t"),
        (Api::Responses, OPENAI, "gpt-5.6", UnsupportedFeature::AdditionalTools, "oc"),
    ] {
        let mut learned = LearnedUnsupported::default();
        learned.learn(api, host, model, missing, 0);
        let got = resolve_capability(api, host, model, None, &learned, 0);
        assert_eq!(short(&got), left, "{host} {missing:?}");
        // The reason changes only if the upstream would otherwise have had the feature.
        let before = plain(api, host, model);
        let was_removed = short(&before) != left;
        let reason =
            if was_removed { CapabilityReason::Unsupported(missing) } else { before.reason };
        assert_eq!(got.reason, reason, "{host} {missing:?}");
        // A feature that is unsupported for one model may be supported for another, so other models must be unaffected.
        assert_eq!(
            resolve_capability(api, host, "other", None, &learned, 0),
            plain(api, host, "other")
        );
    }
}

#[test]
fn an_entry_expires_and_the_oldest_is_dropped_when_there_are_too_many() {
    let holds = |learned: &LearnedUnsupported, model: &str, now| {
        learned.unsupported(Api::Messages, ANTHROPIC, model, now).count() == 1
    };
    let mut learned = LearnedUnsupported::new(2);
    learned.learn(Api::Messages, ANTHROPIC, "claude-opus-4-5", UnsupportedFeature::Bm25, 1_000_000);
    assert!(holds(&learned, "claude-opus-4.5", 1_000_000 + 7_199));
    assert!(!holds(&learned, "claude-opus-4.5", 1_000_000 + 7_200));
    // An entry may be slightly in the future, because another machine's clock may be ahead. An entry far in the future
    // comes from a broken clock and must be ignored.
    assert!(holds(&learned, "claude-opus-4.5", 1_000_000 - 60));
    assert!(!holds(&learned, "claude-opus-4.5", 1_000_000 - 7_200));
    learned.learn(Api::Messages, ANTHROPIC, "claude-opus-4-5", UnsupportedFeature::Bm25, 1_007_200);
    assert!(learned.len() == 1 && holds(&learned, "claude-opus-4-5", 1_014_399));
    for i in 0..LearnedUnsupported::MAX_ENTRIES as u64 {
        learned.learn(
            Api::Messages,
            ANTHROPIC,
            &format!("m{i}x"),
            UnsupportedFeature::Bm25,
            1_010_000 + i,
        );
    }
    assert_eq!(learned.len(), LearnedUnsupported::MAX_ENTRIES);
    assert!(!holds(&learned, "claude-opus-4-5", 1_010_000) && holds(&learned, "m0x", 1_010_000));
}

#[test]
fn merging_keeps_the_latest_time_of_each_entry() {
    let learn = |entries: &[(&str, u64)]| {
        let mut learned = LearnedUnsupported::default();
        for (model, now) in entries {
            learned.learn(Api::Responses, OPENAI, model, UnsupportedFeature::Search, *now);
        }
        learned
    };
    let mut here = learn(&[("gpt-5.4", 7)]);
    let there = learn(&[("gpt-5.4", 9), ("gpt-5.5", 3)]);
    here.merge(there.clone());
    assert_eq!(here, there);
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(
        any in "\\PC{0,40}",
        made in "(us\\.|anthropic[./]|arn:[a-z:]{0,8}/|ft:|~)?(claude|gpt)([-.@:/\\[]{1,2}(opus|sonnet|3|35|0|04|5|4\\.5|2025|11|20251101|latest|v1|preview|mini)){0,6}",
    ) {
        for id in [any, made] {
            let once = normalise_model(&id);
            prop_assert_eq!(&normalise_model(once.id()), &once, "{:?}", id);
        }
    }

    #[test]
    fn any_error_body_is_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
        let said = serde_json::json!({"error": {"message": text, "param": text}}).to_string();
        for body in [&body[..], said.as_bytes()] {
            for api in [Api::Messages, Api::Responses] {
                let _ = (detect_unsupported_feature(api, 400, body), is_feature_misused(api, 400, body), is_thinking_rejected(body));
            }
        }
    }
}
