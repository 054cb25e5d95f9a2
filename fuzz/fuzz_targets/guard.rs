//! Checks requests with any `Host` and `Origin`. Only loopback names may be accepted.

#![no_main]

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use libfuzzer_sys::fuzz_target;
use toolcrib_server::access::Access;
use toolcrib_server::guard::Guard;

fuzz_target!(|data: (Vec<u8>, Option<Vec<u8>>)| {
    let (host, origin) = data;
    let Ok(guard) = Guard::new(&[], &[], Access::Open) else { return };
    let Ok(host_value) = HeaderValue::from_bytes(&host) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, host_value);
    if let Some(value) = origin.as_ref().and_then(|origin| HeaderValue::from_bytes(origin).ok()) {
        headers.insert(header::ORIGIN, value);
    }
    if guard.check(&Method::POST, &Uri::from_static("/mcp"), &headers).is_ok() {
        let text = String::from_utf8(host).expect("an accepted host is text");
        let name = text.rsplit_once(':').map_or(&*text, |(name, port)| {
            if port.bytes().all(|b| b.is_ascii_digit()) { name } else { &text }
        });
        let loopback = name == "localhost" || name == "[::1]" || name.starts_with("127.");
        assert!(loopback && !name.contains(['@', '/']), "{text}");
    }
});
