//! Tests of what a caller's key gives access to, and what it must not: other endpoints, other spellings of a path, and
//! headers that could widen its scope.

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Options, Provider};

use crate::http::{self, Response};
use crate::replica::Replica;

/// A proxy with two callers, whose keys it replaces by the real key: `ci` with a limited scope, and `free` without one.
struct TestProxy {
    provider: Provider,
    replica: Replica,
}

const CI: &str = "Authorization: Bearer virtual-ci-key\r\n";
const FREE: &str = "Authorization: Bearer virtual-free-key\r\n";

impl TestProxy {
    fn new(proxy: &str, ci: &str) -> Self {
        let provider = Provider::start(Options::default()).unwrap();
        let url = &provider.url;
        let keys =
            "upstream_keys = { openai = 'real-key', anthropic = 'real-key', gemini = 'real-key' }";
        let replica = Replica::start(&format!(
            "[proxy]\nopenai = '{url}'\nanthropic = '{url}'\ngemini = '{url}'\n{proxy}\n\
             [[proxy.callers]]\nname = 'ci'\nkey = 'virtual-ci-key'\ntools = ['github__*']\n{keys}\n{ci}\n\
             [[proxy.callers]]\nname = 'free'\nkey = 'virtual-free-key'\n{keys}\n",
        ));
        Self { provider, replica }
    }

    fn send(&self, method_and_path: &str, headers: &str, body: &str) -> Response {
        http::send(&self.replica.url, method_and_path, headers.as_bytes(), body).unwrap()
    }

    /// Returns the method and path of every request that reached the provider.
    fn reached(&self) -> Vec<String> {
        let requests = self.provider.requests();
        requests.iter().map(|sent| format!("{} {}", sent.method, sent.path)).collect()
    }
}

fn message(response: &Response) -> String {
    let body: Value = serde_json::from_str(&response.body).unwrap();
    body["error"]["message"].as_str().unwrap().to_owned()
}

fn chat() -> String {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    json!({
        "model": "any",
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [tool("github__issue"), tool("vault__open")],
    })
    .to_string()
}

#[test]
fn a_key_gives_access_to_generation_counting_and_models_only() {
    let proxy = TestProxy::new("", "");
    let closed = [
        "DELETE /v1/files/x",
        "GET /v1/files",
        "GET /v1/responses/resp_1",
        "DELETE /v1/responses/resp_1",
        "GET /v1/organization/admin_api_keys",
        "POST /v1/fine_tuning/jobs",
        "POST /v1/threads/runs",
        "POST /v1/assistants",
        "POST /v1/realtime/sessions",
        "GET /v1/realtime?model=x",
        "POST /v1/batches",
        "POST /v1/messages/batches",
        "POST /v1beta/cachedContents",
        "POST /v1beta/interactions",
        "POST /v1beta/models/x:batchGenerateContent",
        "POST /v1beta/openai/chat/completions",
        "POST /v1/projects/p/locations/l/publishers/google/models/g:generateContent",
        "POST /v1/embeddings",
        "GET /v1/chat/completions",
        "POST /v1/models",
        "DELETE /v1/models/x",
        "PUT /v1/chat/completions",
    ];
    for key in [CI, FREE] {
        for closed in closed {
            let got = proxy.send(closed, key, "{}");
            assert_eq!(got.status, 403, "{closed}: {}", got.body);
            let message_text = message(&got);
            assert!(
                message_text.contains("paths") && message_text.contains("[proxy]"),
                "{closed}: {message_text}"
            );
        }
        assert_eq!(proxy.reached(), [""; 0]);
        let open = [
            ("POST /v1/chat/completions", chat()),
            ("POST /v1/messages/count_tokens", r#"{"model":"m","messages":[]}"#.into()),
            ("POST /v1/responses/input_tokens", r#"{"model":"m","input":"Hi"}"#.into()),
            ("POST /v1beta/models/gemini-x:countTokens", r#"{"contents":[]}"#.into()),
            ("GET /v1/models", String::new()),
            ("GET /v1/models/gpt-5", String::new()),
            ("GET /v1/models/meta-llama/llama-3", String::new()),
            ("GET /v1beta/models?pageSize=2", String::new()),
            ("GET /v1beta/models/gemini-x", String::new()),
        ];
        for (open, body) in &open {
            proxy.send(open, key, body);
        }
        let expected: Vec<&str> = open.iter().map(|(open, _)| *open).collect();
        assert_eq!(proxy.reached(), expected);
        proxy.provider.clear();
    }
    // A client without a caller's key sends its own credential, so the proxy does not limit it.
    proxy.send("DELETE /v1/files/x", "Authorization: Bearer sk-own\r\n", "");
    assert_eq!(proxy.reached(), ["DELETE /v1/files/x"]);
}

#[test]
fn the_config_can_allow_more_paths_for_one_caller_or_for_all() {
    let proxy = TestProxy::new("paths = ['POST /v1/embeddings']", "paths = ['/v1/files/*']");
    for (key, request, status) in [
        (CI, "POST /v1/embeddings", 200),
        (FREE, "POST /v1/embeddings", 200),
        (CI, "GET /v1/embeddings", 403),
        (CI, "GET /v1/files/f_1", 200),
        (CI, "GET /v1//files/%66_1", 200),
        (FREE, "GET /v1/files/f_1", 403),
        (CI, "GET /v1/filesystem", 403),
    ] {
        assert_eq!(proxy.send(request, key, "{}").status, status, "{request} {key}");
    }
}

#[test]
fn every_forwarded_request_is_in_the_log() {
    let proxy = TestProxy::new("", "");
    proxy.send("GET /v1//models?limit=2&x=%0Aforged", CI, "");
    proxy.send("POST /v1/chat/completions", FREE, &chat());
    proxy.send("DELETE /v1/files/f%C3%A9", "Authorization: Bearer sk-own\r\n", "");
    let log = proxy.replica.log();
    let host = proxy.provider.url.strip_prefix("http://").unwrap();
    for (method, path, caller) in [
        ("GET", "/v1/models", "caller=\"ci\""),
        ("POST", "/v1/chat/completions", "caller=\"free\""),
        ("DELETE", "/v1/files/f%C3%A9", "caller=\"\""),
    ] {
        let words = [
            format!("method={method}"),
            format!("path=\"{path}\""),
            caller.into(),
            format!("host={host}"),
            "status=".into(),
        ];
        let lines = log.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        assert_eq!(lines.count(), 1, "{method} {path}: {log}");
    }
    for secret in ["virtual-", "real-key", "sk-own", "forged"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn another_spelling_of_a_path_does_not_bypass_the_scope() {
    let proxy = TestProxy::new("", "");
    for path in [
        "/v1/%63hat/completions",
        "/v1//chat//completions",
        "//v1/chat/completions",
        "/V1/chat/completions",
        "/v1/Chat/Completions",
        "/v1/chat/completions/",
        "/chat/completions",
        "/v1/chat;x=1/completions",
        "/v1/chat/completions;x",
        "/v1/chat/completions%20",
        "/v1/chat/completions%3f",
        "/v1beta/openai/chat/completions",
        "/x/v1/chat/completions",
        "/v1/chat/completions/x",
    ] {
        proxy.provider.clear();
        for headers in [CI, "x-toolcrib-tools: github__*\r\n"] {
            let got = proxy.send(&format!("POST {path}"), headers, &chat());
            for sent in proxy.provider.requests() {
                let body = String::from_utf8_lossy(&sent.body).into_owned();
                assert!(!body.contains("vault__open"), "{path} {headers}: {body}");
            }
            assert!(matches!(got.status, 200 | 400 | 403), "{path}: {} {}", got.status, got.body);
        }
    }
    let gemini = json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [{"functionDeclarations": [{"name": "github__issue"}, {"name": "vault__open"}]}],
    });
    for path in [
        "/v1beta/models/gemini-x:generateContent",
        "/v1beta/models/gemini-x%3AgenerateContent",
        "/v1beta/models/gemini-x:GenerateContent",
        "/v1beta/mod%65ls/gemini-x:generateContent",
        "/v1beta//models/gemini-x:generateContent",
        "/v1beta/models/a/models/gemini-x:generateContent",
        "/v1beta/models/gemini-x:generateContent:generateContent",
        "/v1beta/models/:generateContent",
        "/v1beta/tunedModels/x:generateContent",
        "/v1beta/models/x:streamGenerateContent?$alt=json&alt=sse",
    ] {
        proxy.provider.clear();
        let got = proxy.send(&format!("POST {path}"), CI, &gemini.to_string());
        for sent in proxy.provider.requests() {
            let body = String::from_utf8_lossy(&sent.body).into_owned();
            assert!(!body.contains("vault__open"), "{path}: {body}");
        }
        assert!(matches!(got.status, 200 | 400 | 403), "{path}: {} {}", got.status, got.body);
    }
    // The proxy does not filter the tools in requests that count tokens. So for a caller with a limited scope, the body
    // of such a request may contain only the conversation.
    proxy.provider.clear();
    let counted = json!({"generateContentRequest": gemini}).to_string();
    let got = proxy.send("POST /v1beta/models/gemini-x:countTokens", CI, &counted);
    assert_eq!((got.status, proxy.reached().len()), (403, 0), "{}", got.body);
}

#[test]
fn dot_segments_in_every_encoding_are_rejected_for_every_caller() {
    let proxy = TestProxy::new("", "");
    for path in [
        "/v1/../files",
        "/v1/./files",
        "/v1/%2e%2e/files",
        "/v1/.%2E/files",
        "/v1/%252e%252e/files",
        "/v1/%25252e%25252e/files",
        "/v1/%%32%65%%32%65/files",
        "/v1/..%2ffiles",
        "/v1/..%5cfiles",
        "/v1/..\\files",
        "/v1/..;/files",
        "/v1/..;x=1/files",
        "/v1/..%3b/files",
        "/v1/..%20/files",
        "/v1/%c0%ae%c0%ae/files",
        "/v1/%e0%80%ae/files",
        "/v1/a%2fb",
        "/v1/a%5Cb",
        "/v1/a%00b",
        "/v1/a%0Ab",
        "/v1/a%7Fb",
        "/v1/a%zzb",
        "/v1/a%2",
        "/v1/%u002e%u002e/files",
    ] {
        for headers in ["Authorization: Bearer sk-own\r\n", CI] {
            for method in ["GET", "POST"] {
                let got = proxy.send(&format!("{method} {path}"), headers, "{}");
                assert_eq!(got.status, 400, "{method} {path}: {}", got.body);
            }
        }
    }
    assert_eq!(proxy.reached(), [""; 0]);
    // Two dots inside a name are not a dot segment, so the path is forwarded.
    proxy.send("GET /v1/models/gemini-2.5..x", "Authorization: Bearer sk-own\r\n", "");
    assert_eq!(proxy.reached(), ["GET /v1/models/gemini-2.5..x"]);
}

#[test]
fn unreadable_toolcrib_headers_are_rejected() {
    let proxy = TestProxy::new("", "");
    let own = "Authorization: Bearer sk-own\r\n";
    for (headers, header) in [
        (&b"x-toolcrib-tools: github__\xe9*\r\n"[..], "x-toolcrib-tools"),
        (b"x-toolcrib-tools: github__*\r\nx-toolcrib-tools: *\r\n", "x-toolcrib-tools"),
        (b"x-toolcrib-tools:\r\n", "x-toolcrib-tools"),
        (b"x-toolcrib-tools: , ,\r\n", "x-toolcrib-tools"),
        (b"x-toolcrib-tools: -\r\n", "x-toolcrib-tools"),
        (b"x-toolcrib-tool: github__*\r\n", "x-toolcrib-tool"),
        (b"x-toolcrib-mode: \xff\r\n", "x-toolcrib-mode"),
        (b"x-toolcrib-mode: off\r\nx-toolcrib-mode: off\r\n", "x-toolcrib-mode"),
        (b"x-toolcrib-key: \xff\r\n", "x-toolcrib-key"),
        (
            b"x-toolcrib-key: virtual-ci-key\r\nx-toolcrib-key: virtual-free-key\r\n",
            "x-toolcrib-key",
        ),
    ] {
        let headers = [own.as_bytes(), headers].concat();
        for target in ["POST /v1/chat/completions", "GET /v1/models"] {
            let got = http::send(&proxy.replica.url, target, &headers, &chat()).unwrap();
            assert_eq!(got.status, 400, "{header}: {}", got.body);
            assert!(message(&got).contains(header), "{header}: {}", got.body);
        }
    }
    assert_eq!(proxy.reached(), [""; 0]);
}

#[test]
fn a_second_credential_does_not_change_the_caller_and_no_key_reaches_the_provider() {
    let proxy = TestProxy::new("", "");
    for headers in [
        "Authorization: Bearer sk-own\r\nAuthorization: Bearer virtual-ci-key\r\n",
        "x-api-key: virtual-free-key\r\nx-api-key: virtual-ci-key\r\n",
        "Authorization: Bearer virtual-ci-key\r\nx-api-key: virtual-free-key\r\n",
        "x-toolcrib-key: virtual-ci-key\r\nAuthorization: Bearer virtual-free-key\r\n",
    ] {
        let got = proxy.send("POST /v1/chat/completions", headers, &chat());
        assert_eq!(got.status, 400, "{headers}: {}", got.body);
    }
    assert_eq!(proxy.reached(), [""; 0]);
    for (target, headers) in [
        ("/v1/chat/completions", "Authorization: Bearer  virtual-ci-key\r\n"),
        ("/v1/chat/completions", "Authorization: bearer virtual-ci-key\r\nx-api-key: sk-own\r\n"),
        ("/v1/chat/completions?key=virtual-ci-key", ""),
        ("/v1/chat/completions?k%65y=virtual%2Dci-key&a=1", ""),
        ("/v1/chat/completions?access_token=virtual-ci-key", ""),
        ("/v1/chat/completions?a=1&key=sk-own&key=virtual-ci-key", ""),
    ] {
        proxy.provider.clear();
        let got = proxy.send(&format!("POST {target}"), headers, &chat());
        assert_eq!(got.status, 200, "{target} {headers}: {}", got.body);
        for sent in proxy.provider.requests() {
            let head = format!("{} {:?}", sent.path, sent.headers);
            assert!(!head.contains("virtual") && !head.contains("sk-own"), "{head}");
            assert_eq!(sent.header("authorization"), Some("Bearer real-key"), "{target}");
            let body = String::from_utf8_lossy(&sent.body).into_owned();
            assert!(!body.contains("vault__open"), "{target}: {body}");
        }
    }
    // These headers would make an upstream use another method, another path or another organization. They must be
    // removed.
    proxy.provider.clear();
    let headers = format!(
        "{CI}x-http-method-override: DELETE\r\nx-original-url: /v1/files\r\nopenai-organization: org-other\r\n"
    );
    assert_eq!(proxy.send("GET /v1/models/x", &headers, "").status, 200);
    let sent = format!("{:?}", proxy.provider.requests()[0].headers);
    assert!(
        !sent.contains("override") && !sent.contains("original") && !sent.contains("org-other"),
        "{sent}"
    );
}
