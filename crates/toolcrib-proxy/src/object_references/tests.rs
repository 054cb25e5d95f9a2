//! Tests of which values are references, and which bodies are rejected.

use super::*;

fn ids(body: &str) -> Option<Vec<String>> {
    ids_of(Api::Responses, body)
}

fn ids_of(api: Api, body: &str) -> Option<Vec<String>> {
    ObjectReferences::read(api, body.as_bytes()).ok().map(|found| found.ids)
}

#[test]
fn references_are_found_in_every_field() {
    for (body, found) in [
        (r#"{"input":"Hi"}"#, &[][..]),
        (r#"{"input":null,"previous_response_id":null}"#, &[]),
        (r#"{"previous_response_id":"resp_1","input":[]}"#, &["resp_1"]),
        (r#"{"Previous_Response_ID":"resp_1"}"#, &["resp_1"]),
        (r#"{"previous\u005fresponse_id":"resp_1"}"#, &["resp_1"]),
        (
            r#"{"input":[{"type":"item_reference","id":"msg_1"},{"id":"rs_1"},{"role":"user","id":"x","content":"Hi"},{"type":"message","id":"y"}]}"#,
            &["msg_1", "rs_1", "y"],
        ),
        (
            r#"{"input":[{"role":null,"id":"a","content":"x"},{"role":"user","id":"b","content":[]},{"role":"user","id":"c","Content":"x"}]}"#,
            &["a", "b", "c"],
        ),
        (
            r#"{"input":[{"type":"reasoning","id":"a","summary":[{"text":"x"}]},{"type":"reasoning","id":"b","encrypted_content":"x"},{"type":"reasoning","id":"c","encrypted_content":null}]}"#,
            &["a", "c"],
        ),
        (
            r#"{"input":[{"type":"image_generation_call","id":"a","status":"completed"},{"type":"image_generation_call","id":"b","result":"AA"}]}"#,
            &["a"],
        ),
        (
            r#"{"input":[{"type":"function_call","id":"a","call_id":"c","name":"f","arguments":""},{"type":"function_call","id":"b","call_id":"c","name":"f"},{"type":"function_call_output","id":"d","call_id":"c","output":""}]}"#,
            &["b"],
        ),
        (
            r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"},{"type":"code_interpreter","container":{"type":"auto"}},{"type":"function","parameters":{"default":{"container":"x"}}}]}"#,
            &["cntr_1"],
        ),
        (
            r#"{"input":[{"type":"additional_tools","tools":[{"type":"shell","environment":{"container_id":"cntr_1"}}]}]}"#,
            &["cntr_1"],
        ),
    ] {
        assert_eq!(ids(body).unwrap(), found, "{body}");
    }
    let read = |body: &str| ObjectReferences::read(Api::Responses, body.as_bytes()).unwrap();
    let conversation = |body: &str| read(body).has_conversation;
    assert!(
        conversation(r#"{"conversation":{"id":"c"}}"#) && conversation(r#"{"conversation":"c"}"#)
    );
    assert!(!conversation(r#"{"conversation":null}"#));
}

#[test]
fn an_ambiguous_body_is_rejected() {
    for body in [
        r#"{"previous_response_id":"a","previous_response_id":"b"}"#,
        r#"{"previous_response_id":null,"PREVIOUS_response_id":"b"}"#,
        r#"{"input":[],"input":[{"id":"b"}]}"#,
        r#"{"input":[{"id":"a","id":"b"}]}"#,
        r#"{"input":[{"id":"a","role":"user","content":"x","content":null}]}"#,
        r#"{"input":[{"id":"a","Type":"message","content":"x"}]}"#,
        r#"{"tools":[],"tools":[]}"#,
        r#"{"input":[7]}"#,
        r#"{"input":{"id":"a"}}"#,
        r#"{"previous_response_id":7}"#,
        "[]",
        "{",
    ] {
        assert_eq!(ids(body), None, "{body}");
    }
}

#[test]
fn containers_are_found_at_any_depth() {
    for (body, found) in [
        (
            r#"{"input":[{"type":"code_interpreter_call","id":"a","code":"1","container_id":"c1"}]}"#,
            &["c1"][..],
        ),
        (
            r#"{"input":[{"type":"shell_call","action":{},"environment":{"container_id":"c1","ContainerId":"c2"}}]}"#,
            &["c1", "c2"],
        ),
        (
            r#"{"input":[{"role":"assistant","content":[{"text":"x","annotations":[{"container_id":"c1"},{"container_id":"c1"}]}]}]}"#,
            &["c1"],
        ),
        (r#"{"input":[{"type":"x","y":1,"container":{"id":"c1","id":"c2"}}]}"#, &["c1", "c2"]),
        (
            r#"{"input":[{"type":"x","container":["c1",{"id":"c2"}],"names":["n"],"more":[{"id":"m"}]}]}"#,
            &["c1", "c2"],
        ),
        (r#"{"previou\u017f_response_id":"r1"}"#, &["r1"]),
        (r#"{"previous-response-id ":"r1"}"#, &["r1"]),
    ] {
        assert_eq!(ids(body).unwrap(), found, "{body}");
    }
}

#[test]
fn each_api_has_its_own_references() {
    for (api, body, found) in [
        (Api::Messages, r#"{"container":"c1","messages":[]}"#, &["c1"][..]),
        (Api::Messages, r#"{"container":{"id":"c1","skills":[{"skill_id":"s"}]}}"#, &["c1"]),
        (Api::Messages, r#"{"container":null,"metadata":{"container":"x"}}"#, &[]),
        (Api::Messages, r#"{"previous_response_id":"x","input":[{"id":"y"}]}"#, &[]),
        (
            Api::Chat,
            r#"{"messages":[{"role":"assistant","audio":{"id":"a1"}},{"role":"user","content":[{"type":"audio","audio":"https://x"}]}],"audio":{"voice":"x"}}"#,
            &["a1"],
        ),
        (Api::Chat, r#"{"messages":[{"role":"user","content":"x","container":"y"}]}"#, &[]),
        (Api::Gemini, r#"{"container":"x"}"#, &[]),
    ] {
        assert_eq!(ids_of(api, body).unwrap(), found, "{body}");
    }
    for (api, body) in [
        (Api::Messages, r#"{"container":null,"Container":"c1"}"#),
        (Api::Chat, r#"{"messages":[],"messages":[]}"#),
        (Api::Chat, "[]"),
    ] {
        assert_eq!(ids_of(api, body), None, "{body}");
    }
}

#[test]
fn the_number_of_references_and_keys_is_limited() {
    let items = |count: usize| {
        let items: Vec<String> = (0..count).map(|at| format!(r#"{{"id":"msg_{at}"}}"#)).collect();
        format!(r#"{{"input":[{}]}}"#, items.join(","))
    };
    assert_eq!(ids(&items(MAX_IDS)).unwrap().len(), MAX_IDS);
    assert_eq!(ids(&items(MAX_IDS + 1)), None);
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|at| format!(r#""k{at}":0"#)).collect();
        format!(r#"{{"input":[{{{}}}]}}"#, keys.join(","))
    };
    assert!(ids(&keys(1_024)).is_some());
    assert_eq!(ids(&keys(1_025)), None);
}
