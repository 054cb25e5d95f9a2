//! Which id is which model, what each may use where, and what each refusal teaches.

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

/// A capability in short: `b` both hosted, `r` regex, `o` OpenAI's; `d` references; `c` client search;
/// `t` additional tools; `a` addition; `i` inline; `f` forcing refused; `p` prefix bound.
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
        (capability.tool_addition, 'a'),
        (capability.inline_tools, 'i'),
        (capability.forced_choice_refused, 'f'),
        (capability.binds_prefix, 'p'),
    ];
    hosted.chars().chain(flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag)).collect()
}

#[test]
fn every_answer_says_why_and_what_else_it_needs() {
    for (api, host, model, reason, betas, addition) in [
        (
            Api::Messages,
            ANTHROPIC,
            "claude-opus-5",
            CapabilityReason::FirstParty,
            &[][..],
            Some("inline-tools-2026-09-15"),
        ),
        (Api::Messages, ANTHROPIC, "claude-opus-4-1", CapabilityReason::Model, &[], None),
        (
            Api::Messages,
            BEDROCK,
            "claude-opus-4-5",
            CapabilityReason::Cloud,
            &["tool-search-tool-2025-10-19"],
            None,
        ),
        (
            Api::Messages,
            VERTEX,
            "claude-opus-5",
            CapabilityReason::Cloud,
            &["tool-search-tool-2025-10-19"],
            Some("mid-conversation-tool-changes-2026-07-01"),
        ),
        (Api::Messages, "localhost", "claude-opus-5", CapabilityReason::Host, &[], None),
        (Api::Responses, "x.openai.azure.com", "gpt-5.4", CapabilityReason::Deployment, &[], None),
        (Api::Responses, OPENAI, "o3", CapabilityReason::FirstParty, &[], None),
        (Api::Chat, OPENAI, "gpt-5.4", CapabilityReason::Api, &[], None),
    ] {
        let got = plain(api, host, model);
        assert_eq!(
            (got.reason, got.betas, got.addition_beta),
            (reason, betas, addition),
            "{host} {model}"
        );
    }
}

#[test]
fn refusals_prevail_over_the_configuration_and_this_over_the_rules() {
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
    assert_eq!(got(None), ("t".into(), CapabilityReason::Refused(UnsupportedFeature::Search)));
    let configured =
        CapabilityOverrides { client_search: Some(true), ..CapabilityOverrides::default() };
    assert_eq!(
        got(Some(&configured)),
        ("t".into(), CapabilityReason::Refused(UnsupportedFeature::Search))
    );
    let configured =
        CapabilityOverrides { additional_tools: Some(false), ..CapabilityOverrides::default() };
    assert_eq!(
        got(Some(&configured)),
        (String::new(), CapabilityReason::Refused(UnsupportedFeature::Search))
    );
    let later = resolve_capability(
        Api::Responses,
        "API.openai.com",
        "gpt-5.4",
        Some(&configured),
        &learned,
        100 + HOURS * 3_600,
    );
    assert_eq!((short(&later).as_str(), later.reason), ("oc", CapabilityReason::Configured));
    assert_eq!(
        got(Some(&CapabilityOverrides::default())).1,
        CapabilityReason::Refused(UnsupportedFeature::Search)
    );
    // A deployment is what the configuration says it is.
    let stated =
        CapabilityOverrides { model: Some("gpt-5.4".into()), ..CapabilityOverrides::default() };
    let azure = |model, configured| {
        resolve_capability(Api::Responses, "x.openai.azure.com", model, configured, &learned, 200)
    };
    assert_eq!(short(&azure("ours", Some(&stated))), "oc");
    assert_eq!(short(&azure("ours", None)), "");
    let old = CapabilityOverrides { model: Some("gpt-4.1".into()), ..stated };
    assert_eq!(azure("ours", Some(&old)).reason, CapabilityReason::Model);
}

#[test]
fn what_was_refused_is_gone_with_what_builds_on_it() {
    for (api, host, model, missing, left) in [
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::Bm25, "rdaifp"),
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::Search, "daifp"),
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::References, "fp"),
        (Api::Messages, ANTHROPIC, "claude-opus-5-5", UnsupportedFeature::ToolAddition, "bdfp"),
        (Api::Messages, BEDROCK, "claude-opus-5-5", UnsupportedFeature::Bm25, "rdafp"),
        (Api::Responses, OPENAI, "gpt-5.6", UnsupportedFeature::Search, "t"),
        (Api::Responses, OPENAI, "gpt-5.6", UnsupportedFeature::AdditionalTools, "oc"),
    ] {
        let mut learned = LearnedUnsupported::default();
        learned.learn(api, host, model, missing, 0);
        let got = resolve_capability(api, host, model, None, &learned, 0);
        assert_eq!(short(&got), left, "{host} {missing:?}");
        // A refusal of what was never there explains nothing.
        let before = plain(api, host, model);
        let refused = short(&before) != left;
        let reason = if refused { CapabilityReason::Refused(missing) } else { before.reason };
        assert_eq!(got.reason, reason, "{host} {missing:?}");
        // Nobody else has learned it.
        assert_eq!(
            resolve_capability(api, host, "other", None, &learned, 0),
            plain(api, host, "other")
        );
    }
}

#[test]
fn a_refusal_holds_for_its_time_and_the_oldest_makes_room() {
    let holds = |learned: &LearnedUnsupported, model: &str, now| {
        learned.missing(Api::Messages, ANTHROPIC, model, now).count() == 1
    };
    let mut learned = LearnedUnsupported::new(2);
    learned.learn(Api::Messages, ANTHROPIC, "claude-opus-4-5", UnsupportedFeature::Bm25, 1_000_000);
    assert!(holds(&learned, "claude-opus-4.5", 1_000_000 + 7_199));
    assert!(!holds(&learned, "claude-opus-4.5", 1_000_000 + 7_200));
    // Another's clock may be a little ahead; one that is far ahead is broken.
    assert!(holds(&learned, "claude-opus-4.5", 1_000_000 - 60));
    assert!(!holds(&learned, "claude-opus-4.5", 1_000_000 - 7_200));
    learned.learn(Api::Messages, ANTHROPIC, "claude-opus-4-5", UnsupportedFeature::Bm25, 1_007_200);
    assert!(learned.len() == 1 && holds(&learned, "claude-opus-4-5", 1_014_399));
    for i in 0..REFUSALS as u64 {
        learned.learn(
            Api::Messages,
            ANTHROPIC,
            &format!("m{i}x"),
            UnsupportedFeature::Bm25,
            1_010_000 + i,
        );
    }
    assert_eq!(learned.len(), REFUSALS);
    assert!(!holds(&learned, "claude-opus-4-5", 1_010_000) && holds(&learned, "m0x", 1_010_000));
}

#[test]
fn what_was_learned_travels_and_is_put_together() {
    let mut here = LearnedUnsupported::default();
    here.learn(Api::Responses, OPENAI, "gpt-5.4", UnsupportedFeature::Search, 7);
    let text = serde_json::to_string(&here).unwrap();
    assert_eq!(
        text,
        r#"[{"api":"responses","host":"api.openai.com","model":"gpt-5.4","missing":"search","at":7}]"#
    );
    let mut there: LearnedUnsupported = serde_json::from_str(&text).unwrap();
    assert_eq!(there, here);
    there.learn(Api::Responses, OPENAI, "gpt-5.4", UnsupportedFeature::Search, 9);
    there.learn(Api::Responses, OPENAI, "gpt-5.5", UnsupportedFeature::Search, 3);
    here.merge(there.clone());
    assert_eq!(here, there);
    let many: Vec<String> = (0..2_000)
        .map(|i| format!(r#"{{"api":"chat","host":"h","model":"m{i}","missing":"bm25","at":{i}}}"#))
        .collect();
    let many: LearnedUnsupported = serde_json::from_str(&format!("[{}]", many.join(","))).unwrap();
    assert_eq!(many.len(), REFUSALS);
}

proptest! {
    #[test]
    fn a_normal_form_is_its_own(
        any in "\\PC{0,40}",
        made in "(us\\.|anthropic[./]|arn:[a-z:]{0,8}/|ft:|~)?(claude|gpt)([-.@:/\\[]{1,2}(opus|sonnet|3|35|0|04|5|4\\.5|2025|11|20251101|latest|v1|preview|mini)){0,6}",
    ) {
        for id in [any, made] {
            let once = normalise(&id);
            prop_assert_eq!(&normalise(once.id()), &once, "{:?}", id);
        }
    }

    #[test]
    fn no_body_is_too_strange(body in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
        let said = serde_json::json!({"error": {"message": text, "param": text}}).to_string();
        for body in [&body[..], said.as_bytes()] {
            for api in [Api::Messages, Api::Responses] {
                let _ = (detect_unsupported_feature(api, 400, body), is_feature_misused(api, 400, body), is_thinking_rejected(body));
            }
        }
    }
}
