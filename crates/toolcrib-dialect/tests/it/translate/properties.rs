//! Property tests with generated conversations.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use toolcrib_dialect::Api;
use toolcrib_dialect::translate::adapter;

use super::{CLIENTS, call_chunk, chunk, piece, streamed, translated, whole};

/// The model's output: text, and calls with their arguments.
#[derive(Debug, Clone)]
struct ModelOutput {
    text: String,
    calls: Vec<(String, Value)>,
}

/// The output of a tool.
#[derive(Debug, Clone)]
struct ToolOutput {
    text: String,
    image: bool,
    failed: bool,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z .,\"\\\\\n]{1,12}", "\\PC{1,6}"]
}

fn arguments() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!([1.5, {"}": "{"}])),
    ];
    proptest::collection::vec(("[a-z]{1,4}", scalar), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn model_output() -> impl Strategy<Value = ModelOutput> {
    let calls = proptest::collection::vec(("[a-z_]{1,8}", arguments()), 0..4);
    (prop_oneof![Just(String::new()), text()], calls)
        .prop_map(|(text, calls)| ModelOutput { text, calls })
}

fn result() -> impl Strategy<Value = ToolOutput> {
    (text(), any::<bool>(), any::<bool>()).prop_map(|(text, image, failed)| ToolOutput {
        text,
        image,
        failed,
    })
}

/// A user message and what follows: the model's outputs, each with the outputs of the tools that it called.
type UserTurn = (String, Vec<(ModelOutput, Vec<ToolOutput>)>);

fn exchange() -> impl Strategy<Value = UserTurn> {
    let round = (model_output(), proptest::collection::vec(result(), 4));
    (text(), proptest::collection::vec(round, 0..3))
}

/// Returns the history of a client, split at the points at which the client sends a request.
fn history(api: Api, exchanges: &[UserTurn]) -> Vec<Vec<Value>> {
    let mut pieces = Vec::new();
    let mut calls = 0;
    let mut piece = Vec::new();
    for (user, rounds) in exchanges {
        piece.push(json!({"role": "user", "content": user}));
        let mut is_clients_turn = true;
        for (output, results) in rounds {
            if is_clients_turn {
                pieces.push(std::mem::take(&mut piece));
            }
            let ids: Vec<String> =
                output.calls.iter().enumerate().map(|(n, _)| format!("c{}", calls + n)).collect();
            is_clients_turn = !ids.is_empty();
            calls += ids.len();
            piece.extend(echo(api, output, &ids));
            piece.extend(match api {
                Api::Messages if ids.is_empty() => Vec::new(),
                Api::Messages => {
                    let results: Vec<Value> = ids
                        .iter()
                        .zip(results)
                        .map(|(id, result)| {
                            let mut content = vec![json!({"type": "text", "text": result.text})];
                            if result.image {
                                content.push(json!({"type": "image", "source":
                                    {"type": "url", "url": "https://x.test/i.png"}}));
                            }
                            json!({"type": "tool_result", "tool_use_id": id, "content": content,
                                "is_error": result.failed})
                        })
                        .collect();
                    vec![json!({"role": "user", "content": results})]
                }
                _ => ids
                    .iter()
                    .zip(results)
                    .map(|(id, result)| {
                        let mut output = vec![json!({"type": "input_text", "text": result.text})];
                        if result.image {
                            output.push(
                                json!({"type": "input_image", "image_url": "https://x.test/i.png"}),
                            );
                        }
                        json!({"type": "function_call_output", "call_id": id, "output": output})
                    })
                    .collect(),
            });
        }
        if is_clients_turn {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces
}

/// Returns the model's output as the client sends it back.
fn echo(api: Api, model_output: &ModelOutput, ids: &[String]) -> Vec<Value> {
    let calls = ids.iter().zip(&model_output.calls);
    if api == Api::Messages {
        let mut blocks = Vec::new();
        if !model_output.text.is_empty() {
            blocks.push(json!({"type": "text", "text": model_output.text}));
        }
        blocks.extend(calls.map(
            |(id, (name, input))| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        ));
        return vec![json!({"role": "assistant", "content": blocks})];
    }
    let mut items = Vec::new();
    if !model_output.text.is_empty() {
        items.push(json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": model_output.text}]}));
    }
    items.extend(calls.map(|(id, (name, arguments))| {
        json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()})
    }));
    items
}

fn request(api: Api, history: &[Value]) -> Value {
    match api {
        Api::Messages => json!({"model": "m", "system": "Be brief.", "messages": history,
            "tools": [{"name": "t", "input_schema": {"type": "object"}}]}),
        _ => json!({"model": "m", "instructions": "Be brief.", "input": history,
            "tools": [{"type": "function", "name": "t"}]}),
    }
}

/// Returns the text and the calls in a message of the client's API.
fn read(api: Api, response: &Value) -> (String, Vec<(String, String, Value)>) {
    let mut text = String::new();
    let mut calls = Vec::new();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let key = if api == Api::Messages { "content" } else { "output" };
    for part in response[key].as_array().unwrap() {
        match part["type"].as_str().unwrap() {
            "text" => text += part["text"].as_str().unwrap(),
            "message" => text += part["content"][0]["text"].as_str().unwrap(),
            "tool_use" => {
                calls.push((word(&part["id"]), word(&part["name"]), part["input"].clone()));
            }
            _ => {
                let arguments = serde_json::from_str(part["arguments"].as_str().unwrap()).unwrap();
                calls.push((word(&part["call_id"]), word(&part["name"]), arguments));
            }
        }
    }
    (text, calls)
}

/// Assembles the events of a stream into a message, as the SDKs do.
pub(super) fn gather(api: Api, events: &[Value]) -> Value {
    if api == Api::Responses {
        let mut output = Vec::new();
        for event in events {
            if event["type"] == "response.output_item.done" {
                assert_eq!(event["output_index"], output.len());
                output.push(event["item"].clone());
            }
        }
        assert_eq!(events.last().unwrap()["response"]["output"], json!(output));
        return json!({"output": output});
    }
    let mut content: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    let mut open = None;
    for event in events {
        let index = event["index"].as_u64().map(|index| index as usize);
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!((open, index), (None, Some(content.len())));
                open = index;
                content.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                assert_eq!(open, index);
                let (block, delta) = (content.last_mut().unwrap(), &event["delta"]);
                if let Some(piece) = delta["partial_json"].as_str() {
                    inputs.last_mut().unwrap().push_str(piece);
                } else {
                    let piece = delta["text"].as_str().unwrap();
                    block["text"] = json!(block["text"].as_str().unwrap().to_owned() + piece);
                }
            }
            "content_block_stop" => {
                assert_eq!(open.take(), index);
                let input = inputs.last().unwrap();
                if !input.is_empty() {
                    content.last_mut().unwrap()["input"] = serde_json::from_str(input).unwrap();
                }
            }
            _ => {}
        }
    }
    json!({"content": content})
}

/// Returns chunks of an output, split and interleaved arbitrarily: each chunk has the next piece of the text,
/// the next piece of a call that has begun, or the start of the next call.
fn mixed(model_output: &ModelOutput, choices: &[(Index, Index)]) -> Vec<Value> {
    let mut texts: Vec<String> =
        model_output.calls.iter().map(|(_, input)| input.to_string()).collect();
    let mut chunks = Vec::new();
    if !model_output.text.is_empty() {
        chunks.push(chunk(&json!({"role": "assistant", "content": model_output.text}), None));
    }
    let begin = |n: usize| {
        call_chunk(&[piece(n, Some(&format!("call_{n}")), Some(&model_output.calls[n].0), "")])
    };
    let mut begun = 0;
    for (which, length) in choices {
        if texts.is_empty() {
            break;
        }
        let n = which.index((begun + 1).min(texts.len()));
        if n == begun {
            chunks.push(begin(n));
            begun += 1;
        }
        let at = texts[n].floor_char_boundary(length.index(texts[n].len() + 1));
        let rest = texts[n].split_off(at);
        let now = std::mem::replace(&mut texts[n], rest);
        chunks.push(call_chunk(&[piece(n, None, None, &now)]));
    }
    for (n, rest) in texts.iter().enumerate() {
        if n >= begun {
            chunks.push(begin(n));
        }
        chunks.push(call_chunk(&[piece(n, None, None, rest)]));
    }
    let finish = if model_output.calls.is_empty() { "stop" } else { "tool_calls" };
    chunks.push(chunk(&json!({}), Some(finish)));
    chunks.push(json!("[DONE]"));
    chunks
}

proptest! {
    #[test]
    fn a_longer_history_begins_with_the_bytes_of_the_shorter(
        exchanges in proptest::collection::vec(exchange(), 1..4),
    ) {
        for api in CLIENTS {
            let pieces = history(api, &exchanges);
            let bodies: Vec<String> = (1..=pieces.len())
                .map(|count| {
                    let body = request(api, &pieces[..count].concat());
                    adapter(api, Api::Chat).unwrap().request(&body.to_string()).unwrap().body
                })
                .collect();
            for pair in bodies.windows(2) {
                let shorter = pair[0].strip_suffix("]}").unwrap();
                prop_assert!(pair[1].starts_with(shorter), "{api}\n{shorter}\n{}", pair[1]);
            }
        }
    }

    #[test]
    fn text_and_calls_survive_the_round_trip(
        model_output in model_output(),
        choices in proptest::collection::vec(any::<(Index, Index)>(), 0..12),
    ) {
        let ids: Vec<String> = (0..model_output.calls.len()).map(|n| format!("call_{n}")).collect();
        let calls: Vec<_> = ids.iter().zip(&model_output.calls)
            .map(|(id, (name, input))| (id.clone(), name.clone(), input.clone()))
            .collect();
        let tool_calls: Vec<Value> = calls.iter()
            .map(|(id, name, input)| json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": input.to_string()}}))
            .collect();
        let mut message = json!({"role": "assistant", "content": model_output.text});
        if model_output.text.is_empty() {
            message["content"] = Value::Null;
        }
        if !tool_calls.is_empty() {
            message["tool_calls"] = json!(tool_calls);
        }
        let body = json!({"id": "chatcmpl-1", "choices": [{"message": message, "finish_reason": "stop"}]});
        for api in CLIENTS {
            let expected = (model_output.text.clone(), calls.clone());
            let (mut adapter, _) = translated(api, &request(api, &[]));
            let answer = whole(&mut adapter, 200, &body.to_string()).1;
            prop_assert_eq!(read(api, &answer), expected.clone());

            let received = gather(api, &streamed(&mut adapter, &mixed(&model_output, &choices)));
            prop_assert_eq!(read(api, &received), expected);

            let sent = translated(api, &request(api, &echo(api, &model_output, &ids))).1;
            let same = message["content"].is_null() && tool_calls.is_empty();
            prop_assert_eq!(&sent["messages"][1], if same { &Value::Null } else { &message });
        }
    }
}
