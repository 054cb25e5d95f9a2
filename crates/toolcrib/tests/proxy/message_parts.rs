//! Tests that content which a Gemini client puts between the results of its calls keeps its position when hidden
//! results are added.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, Options, Provider, Step};

use crate::api::Api;
use crate::http::post;
use crate::replica::Replica;
use crate::rng::Rng;
use crate::tools::{Size, arguments, tools};

#[test]
fn content_between_results_keeps_its_position() {
    let tools = tools(60, Size::Usual);
    let call = |at: usize| {
        let tool = &tools[at];
        Action::call(&tool.name, arguments(tool, &mut Rng(1)))
    };
    for ids in [true, false] {
        let steps = [
            Step::new([call(7), call(20)]),
            // The model makes one call of Toolcrib's search tool and two calls of the client's tools.
            Step::new([Action::search("books"), call(7), call(20)]),
            Step::new([Action::text("Done.")]),
        ];
        let provider = Provider::start(Options { call_ids: ids, ..Options::steps(steps) }).unwrap();
        let url = &provider.url;
        let replica = Replica::start(&format!("[proxy]\ngemini = '{url}'\nmode = 'bridge'\n"));
        let declared = Api::Gemini.client().tools(&tools);
        let mut contents = vec![json!({"role": "user", "parts": [{"text": "Go."}]})];
        for turn in 0..3 {
            let body = json!({"contents": contents, "tools": declared});
            let path = "/v1beta/models/gemini-3-pro:generateContent";
            let answer = post(&replica.url, path, &body.to_string()).unwrap();
            assert_eq!(answer.status, 200, "turn {turn}: {}", answer.body);
            let answer: Value = serde_json::from_str(&answer.body).unwrap();
            let content = &answer["candidates"][0]["content"];
            contents.push(content.clone());
            let calls =
                content["parts"].as_array().unwrap().iter().map(|part| &part["functionCall"]);
            let mut results = calls.filter(|call| call.is_object()).map(|call| {
                let mut result = json!({"name": call["name"], "response": {"result": "ok"}});
                if let Some(id) = call.get("id") {
                    result["id"] = id.clone();
                }
                json!({"functionResponse": result})
            });
            let (first, second) = (results.next(), results.next());
            let image = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
            let parts = json!([{"text": "Both:"}, first, {"text": "the first"}, image, second, {"text": "the second"}]);
            contents.push(json!({"role": "user", "parts": parts}));
        }
        let requests = provider.requests();
        let last = requests.last().unwrap().json();
        let sent = last["contents"].as_array().unwrap().last().unwrap();
        let kinds: Vec<&str> = sent["parts"].as_array().unwrap().iter().map(kind).collect();
        let expected = [
            "Both:",
            "tool_search",
            "tool_call",
            "the first",
            "an image",
            "tool_call",
            "the second",
        ];
        assert_eq!(kinds, expected, "ids={ids}");
    }
}

fn kind(part: &Value) -> &str {
    let name = part["functionResponse"]["name"].as_str();
    name.or(part["text"].as_str()).unwrap_or("an image")
}
