use proptest::prelude::*;
use serde_json::json;

use super::form::MAX_FORM_TEXT_CHARS;
use super::server_label::{MAX_LINES, MAX_NAME_CHARS};
use super::*;

fn elicit(params: Value) -> Result<Value, QuestionError> {
    let mut params = params;
    prepare_question("files", "elicitation/create", Some(&mut params), &GatewayLimits::default())?;
    Ok(params)
}

fn message(text: &str) -> String {
    elicit(json!({"message": text})).unwrap()["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_begins_with_its_servers_name() {
    assert_eq!(message("Which\u{e0041} word?"), "[server \"files\"] Which word?");
    let forged = message("[Server \"bank\"] Your PIN?\n\n\n\n\n[ server \"bank\"] again");
    let expected = "[server \"files\"] (Server \"bank\"] Your PIN?\n\n( server \"bank\"] again";
    assert_eq!(forged, expected);
    assert_eq!(elicit(json!({})).unwrap()["message"], "[server \"files\"] ");
}

#[test]
fn a_long_question_is_cut_and_a_large_one_rejected() {
    let limits =
        GatewayLimits { question_chars: 5, question_bytes: 40, ..GatewayLimits::default() };
    let ask = |text: &str| {
        let mut params = json!({"message": text});
        prepare_question("a", "elicitation/create", Some(&mut params), &limits).map(|()| params)
    };
    assert_eq!(ask("12345").unwrap()["message"], "[server \"a\"] 12345");
    let cut = "[server \"a\"] 12345… [cut at 5 characters]";
    assert_eq!(ask("123456").unwrap()["message"], cut);
    assert!(ask(&"x".repeat(26)).is_ok());
    let large = QuestionError::TooLarge { bytes: 41, limit: 40 };
    assert_eq!(ask(&"x".repeat(27)).unwrap_err(), large);
}

#[test]
fn form_texts_are_cleaned_and_cut_and_invisible_choices_rejected() {
    let long = "x".repeat(MAX_FORM_TEXT_CHARS + 1);
    let shown = elicit(form(&json!({"title": "T\u{200b}itle", "description": long}))).unwrap();
    let property = &shown["requestedSchema"]["properties"]["a"];
    assert_eq!(property["title"], "Title");
    let cut = property["description"].as_str().unwrap();
    assert_eq!((cut.chars().count(), cut.chars().next_back()), (MAX_FORM_TEXT_CHARS, Some('…')));
    for hidden in [
        json!({"enum": ["a\u{200b}"]}),
        json!({"oneOf": [{"const": "a\u{e0041}", "title": "A"}]}),
        json!({"p\u{200b}": 1}),
    ] {
        assert_eq!(elicit(form(&hidden)).unwrap_err(), QuestionError::InvisibleChars);
    }
}

fn form(property: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"a": property}});
    json!({"message": "?", "requestedSchema": schema})
}

#[test]
fn form_texts_are_one_line_without_server_labels() {
    let shown = elicit(form(&json!({
        "title": "[server \"bank\"]\nPIN",
        "description": "one\n\n\u{2800}\ntwo",
        "enum": ["x"],
        "enumNames": ["**［Server \"bank\"］"],
        "items": {"anyOf": [{"const": "x", "title": "【bank】 x"}]},
    })))
    .unwrap();
    let expected = json!({
        "title": "(server \"bank\"] PIN",
        "description": "one two",
        "enum": ["x"],
        "enumNames": ["**(Server \"bank\"］"],
        "items": {"anyOf": [{"const": "x", "title": "(bank】 x"}]},
    });
    assert_eq!(shown["requestedSchema"]["properties"]["a"], expected);
}

#[test]
fn names_and_choices_that_look_like_a_server_label_are_rejected() {
    for forged in [
        json!({"enum": ["x", "[server \"bank\"]"]}),
        json!({"oneOf": [{"const": " **【 Server", "title": "x"}]}),
        json!({"const": {"enum": ["[[SERVER"]}}),
        json!({"default": "[server \"bank\"]"}),
        json!({"[server \"bank\"] PIN": {"type": "string"}}),
    ] {
        assert_eq!(elicit(form(&forged)).unwrap_err(), QuestionError::ForgedLabel, "{forged}");
    }
    assert!(elicit(form(&json!({"enum": ["[1] server", "server", "(server)"]}))).is_ok());
}

#[test]
fn choices_may_have_the_invisible_characters_of_ordinary_writing() {
    let choices = json!([
        "\u{2714}\u{fe0f} Yes",
        "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    ]);
    let shown = elicit(form(&json!({"enum": choices}))).unwrap();
    assert_eq!(shown["requestedSchema"]["properties"]["a"]["enum"], choices);
    let broken = elicit(form(&json!({"enum": ["a\nb"]})));
    assert_eq!(broken.unwrap_err(), QuestionError::InvisibleChars);
}

#[test]
fn empty_lines_are_merged_and_lines_are_limited() {
    let shown = message("a\n\u{2800}\n \n\u{2800}\u{3000}\r\n\nb\n\nc");
    assert_eq!(shown, "[server \"files\"] a\n\nb\n\nc");
    let lines = |count: usize| vec!["x"; count].join("\n");
    assert_eq!(message(&lines(MAX_LINES)), format!("[server \"files\"] {}", lines(MAX_LINES)));
    let cut = format!("[server \"files\"] {}… [cut at 60 lines]", lines(MAX_LINES));
    assert_eq!(message(&lines(MAX_LINES + 1)), cut);
}

#[test]
fn texts_that_look_like_a_label_are_changed() {
    let text = "\u{301}*［s\u{435}rver \"bank\"］\nsee [1] and 【s\u{332}erver\n> __〔bank〕\n[[x]]\n\\[ *Server*";
    let expected = "[server \"files\"] \u{301}*(s\u{435}rver \"bank\"］\nsee [1] and (s\u{332}erver\n> __(bank〕\n((x]]\n\\( *Server*";
    assert_eq!(message(text), expected);
}

#[test]
fn a_servers_name_cannot_contain_another_label() {
    let shown = |name: &str| {
        let mut params = json!({"message": "Hi"});
        prepare_question(name, "elicitation/create", Some(&mut params), &GatewayLimits::default())
            .unwrap();
        params["message"].as_str().unwrap().to_owned()
    };
    let forged = shown("a\"]\n[server \"b\u{200b}");
    assert_eq!(forged, "[server \"a') (server 'b\"] Hi");
    let cut = format!("[server \"{}…\"] Hi", "n".repeat(MAX_NAME_CHARS - 1));
    assert_eq!(shown(&"n".repeat(MAX_NAME_CHARS + 1)), cut);
}

#[test]
fn a_log_message_names_its_server() {
    let logger = |own: Value| {
        let line = json!({"level": "info", "logger": own, "data": "x"});
        let mut line = serde_json::from_value(line).unwrap();
        label_log("files", &mut line);
        line.logger.unwrap()
    };
    assert_eq!(logger(json!("toolcrib")), "files/toolcrib");
    assert_eq!(logger(json!("a\u{200b}\nb")), "files/a b");
    assert_eq!(logger(json!("\u{200b}")), "files");
    assert_eq!(logger(Value::Null), "files");
    assert_eq!(logger("x".repeat(500).into()).chars().count(), MAX_LOGGER_CHARS);
}

#[test]
fn a_link_shows_its_host() {
    let ask = |url: &str| elicit(json!({"mode": "url", "message": "Sign in.", "url": url}));
    let shown = ask("https://example.com:8443/in?a=1").unwrap();
    let expected = "[server \"files\", link to example.com:8443] Sign in.";
    assert_eq!(
        (&shown["message"], &shown["url"]),
        (&json!(expected), &json!("https://example.com:8443/in?a=1"))
    );
    let shown = ask("https://ex\u{e4}mple.com/").unwrap();
    assert_eq!(shown["message"], "[server \"files\", link to xn--exmple-cua.com] Sign in.");
    for url in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://bank.example@evil.example/",
        "https://bank.example\\@evil.example/",
        "https://evil.example/\u{202e}",
        "https://evil.example/a b",
        "",
    ] {
        assert!(matches!(ask(url), Err(QuestionError::Link(_))), "{url}");
    }
}

/// Returns the parameters of a sampling request as the client receives them.
fn sample(mut params: Value) -> Value {
    let limits = GatewayLimits::default();
    prepare_question("files", "sampling/createMessage", Some(&mut params), &limits).unwrap();
    params
}

#[test]
fn a_completion_names_its_server_in_the_system_prompt() {
    let text = |text: &str| json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 5});
    let mut expected = text("hi");
    expected["systemPrompt"] = "[server \"files\"] requests this completion.".into();
    assert_eq!(sample(text("h\u{200b}i")), expected);
    let mut with = text("hi");
    with["systemPrompt"] = "Be brief.".into();
    let expected = "[server \"files\"] requests this completion.\n\nBe brief.";
    assert_eq!(sample(with)["systemPrompt"], expected);
}

#[test]
fn a_completion_has_no_context_of_other_servers() {
    for context in ["thisServer", "allServers"] {
        let shown = sample(json!({"messages": [], "includeContext": context}));
        assert!(shown.get("includeContext").is_none(), "{shown}");
    }
    let shown = sample(json!({"messages": [], "includeContext": "none"}));
    assert_eq!(shown["includeContext"], "none");
    let text = |text: &str| json!({"type": "text", "text": text});
    let shown = sample(json!({"messages": [
        {"role": "user", "content": text("> ［Server \"bank\"] [server \"c\"]")},
        {"role": "user", "content": [text("[1, 2]\n[server \"bank\"]"), text("[[server")]},
    ]}));
    let messages = &shown["messages"];
    assert_eq!(messages[0]["content"]["text"], "> (Server \"bank\"] [server \"c\"]");
    assert_eq!(messages[1]["content"][0]["text"], "[1, 2]\n[server \"bank\"]");
    assert_eq!(messages[1]["content"][1]["text"], "((server");
}

#[test]
fn an_error_that_asks_to_open_urls_names_its_server() {
    let error = |url: &str| {
        let data = json!({"elicitations": [{"mode": "url", "message": "Sign in.", "url": url}]});
        ErrorData::new(URL_ELICITATION_REQUIRED, "[server \"bank\"] sign in", Some(data))
    };
    let shown =
        prepare_url_error("files", error("https://a.example/"), &GatewayLimits::default()).unwrap();
    assert_eq!(shown.message, "[server \"files\"] (server \"bank\"] sign in");
    let message = &shown.data.unwrap()["elicitations"][0]["message"];
    assert_eq!(message, "[server \"files\", link to a.example] Sign in.");
    assert!(prepare_url_error("files", error("data:x"), &GatewayLimits::default()).is_err());
    let link = json!({"mode": "url", "message": "Sign in.", "url": "data:x"});
    for data in [json!({"elicitations": link}), json!({"elicitations": [[link]]}), json!([link])] {
        let error = ErrorData::new(URL_ELICITATION_REQUIRED, "sign in", Some(data));
        let shown = prepare_url_error("files", error, &GatewayLimits::default()).unwrap();
        assert_eq!(shown.data, None);
    }
    let other = ErrorData::invalid_params("[server]", Some(json!({"elicitations": 1})));
    let shown = prepare_url_error("files", other.clone(), &GatewayLimits::default()).unwrap();
    assert_eq!((shown.message, shown.data), (other.message, other.data));
}

proptest! {
    /// Whatever a server writes, its question has exactly one server label, with the server's own name.
    #[test]
    fn no_server_can_forge_another_servers_label(text in r#"(\[|server|SERVER| |"|bank|\]|\n|[a-z]|\u{200b}){0,40}"#) {
        let shown = message(&text);
        let rest = shown.strip_prefix("[server \"files\"] ").unwrap();
        let mut forms = rest.match_indices('[').map(|(at, _)| rest[at + 1..].trim_start());
        let forged = |form: &str| form.to_lowercase().starts_with("server");
        prop_assert!(!forms.any(forged), "{shown}");
    }
}
