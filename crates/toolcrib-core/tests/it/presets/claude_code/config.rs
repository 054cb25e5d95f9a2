//! Tests of reading Claude Code's own configuration.

use serde_json::{Value, json};
use toolcrib_core::policy::{ActivationMode, ActivationReason, ThresholdSource};
use toolcrib_core::{Conversation, Crib, Preset, Scope, TurnContext};

use super::{array, mcp, session, show};
use crate::presets::{configured, warnings};
use crate::support::{Chat, catalog};

fn enabled(value: &Value) -> Value {
    json!({"env": {"ENABLE_TOOL_SEARCH": value}})
}

#[test]
fn the_variable_means_always_never_or_a_share_of_the_context() {
    for (value, mode, percent) in [
        (json!(""), ActivationMode::On, 10.0),
        (json!("true"), ActivationMode::On, 10.0),
        (json!(true), ActivationMode::On, 10.0),
        (json!("1"), ActivationMode::On, 10.0),
        (json!("false"), ActivationMode::Off, 10.0),
        (json!(0), ActivationMode::Off, 10.0),
        (json!("auto"), ActivationMode::Auto, 10.0),
        (json!("AUTO:25"), ActivationMode::Auto, 25.0),
        (json!("auto:0"), ActivationMode::On, 0.0),
    ] {
        let activation = configured(Preset::ClaudeCode, &enabled(&value)).activation;
        assert_eq!((activation.mode, activation.context_percent), (mode, percent), "{value}");
    }
    let settings = configured(Preset::ClaudeCode, &json!({"env": {}}));
    assert_eq!(settings, Preset::ClaudeCode.settings(), "tool search is on by default");
}

#[test]
fn auto_defers_from_a_tenth_of_the_context_on() {
    let auto = configured(Preset::ClaudeCode, &enabled(&json!("auto")));
    let long = "word ".repeat(500);
    let tools: Vec<Value> =
        (0..40).map(|i| mcp("acme", &format!("job{i}"), &long, &json!({}))).collect();
    let crib = Crib::new(catalog(&tools), auto);
    let tokens: usize = crib.definition_tokens().iter().sum();
    let scope = Scope::all(crib.catalog());
    let decide = |context| {
        let turn = TurnContext::new(&scope).with_context_window(context);
        crib.disclose(&turn, &mut Conversation::new()).decision.reason
    };
    assert_eq!(
        decide(10 * tokens),
        ActivationReason::Tokens {
            tokens,
            threshold: tokens,
            source: ThresholdSource::Share { window: 10 * tokens }
        }
    );
    assert!(
        matches!(decide(10 * tokens + 10), ActivationReason::Below { .. }),
        "the 40 tools have {tokens} tokens"
    );
}

#[test]
fn auto_never_defers_at_a_loss() {
    let auto = configured(Preset::ClaudeCode, &enabled(&json!("auto")));
    let crib = Crib::new(catalog(&session()[..1]), auto);
    let scope = Scope::all(crib.catalog());
    let turn = TurnContext::new(&scope).with_context_window(100);
    let shown = crib.disclose(&turn, &mut Conversation::new());
    assert!(
        matches!(shown.decision.reason, ActivationReason::NoSaving { .. }),
        "{:?}",
        shown.decision
    );
    assert!(shown.passes_through());
}

#[test]
fn a_server_that_says_always_load_is_not_deferred() {
    let config = json!({"mcpServers": {
        "github": {"command": "github-mcp", "alwaysLoad": true},
        "slack": {"command": "slack-mcp", "alwaysLoad": false},
        "figma": {"url": "https://mcp.figma.example"}
    }});
    let crib = Crib::new(catalog(&session()), configured(Preset::ClaudeCode, &config));
    assert_eq!(
        array(&show(&mut Chat::new(&crib))),
        [
            "mcp__github__search_code",
            "mcp__github__create_pull_request",
            "mcp__github__get_file_contents",
            "tool_search"
        ]
    );
}

#[test]
fn any_other_value_of_the_variable_means_on() {
    let config = enabled(&json!("Maybe"));
    let read = Preset::ClaudeCode.configured(&config).unwrap();
    assert_eq!(read.settings, Preset::ClaudeCode.settings());
    assert_eq!(
        warnings(Preset::ClaudeCode, &config),
        [
            "`env.ENABLE_TOOL_SEARCH`: \"Maybe\" is not one of `true`, `false`, `auto`, `auto:N`; tool search is on"
        ]
    );
}

#[test]
fn a_share_out_of_range_is_clamped_and_one_that_is_no_number_is_ten() {
    for (value, mode, percent, warning) in [
        ("auto:150", ActivationMode::Auto, 100.0, "\"150\" is not within 0 to 100; using 100"),
        ("auto:-5", ActivationMode::On, 0.0, "\"-5\" is not within 0 to 100; using 0"),
        ("auto:half", ActivationMode::Auto, 10.0, "\"half\" is not a number; using 10"),
        ("auto:", ActivationMode::Auto, 10.0, "\"\" is not a number; using 10"),
    ] {
        let config = enabled(&json!(value));
        let read = Preset::ClaudeCode.configured(&config).unwrap();
        let activation = read.settings.activation;
        assert_eq!((activation.mode, activation.context_percent), (mode, percent), "{value}");
        let warned = warnings(Preset::ClaudeCode, &config);
        assert_eq!(warned, [format!("`env.ENABLE_TOOL_SEARCH`: {warning}")]);
    }
}

#[test]
fn an_always_load_value_that_is_no_flag_is_ignored() {
    let config = json!({"mcpServers": {"github": {"alwaysLoad": "yes"}}});
    let read = Preset::ClaudeCode.configured(&config).unwrap();
    assert_eq!(read.settings, Preset::ClaudeCode.settings());
    assert_eq!(
        warnings(Preset::ClaudeCode, &config),
        ["`mcpServers.github.alwaysLoad`: \"yes\" is not a boolean; ignored"]
    );
    assert_eq!(
        warnings(Preset::ClaudeCode, &json!({"mcpServers": ["github"]})),
        ["`mcpServers`: [\"github\"] is not an object; ignored"]
    );
}

#[test]
fn its_configuration_is_recognised_by_its_keys() {
    for config in [enabled(&json!("auto")), json!({"mcpServers": {}})] {
        assert_eq!(Preset::of_config(&config), Some(Preset::ClaudeCode), "{config}");
    }
}

#[test]
fn a_file_of_another_program_means_on_with_a_warning() {
    let warning =
        "`env`: there is no object that could contain `ENABLE_TOOL_SEARCH`; tool search is on";
    for config in [json!(7), json!(null), json!({"env": []})] {
        assert_eq!(warnings(Preset::ClaudeCode, &config), [warning], "{config}");
    }
}
