//! Reads any bytes as the path of a request. A path that is accepted must mean the same to every program that reads it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_proxy::path::NormalizedPath;

/// Decodes percent escapes leniently, as a careless program does. Invalid escapes stay as they are.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        let byte = match (first, after) {
            (b'%', [high, low, ..]) => {
                digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low)
            }
            _ => None,
        };
        match byte {
            Some(byte) => {
                out.push(byte as u8);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let mut path = vec![b'/'];
    path.extend_from_slice(data);
    let Ok(normal) = NormalizedPath::read(&path) else { return };
    let text = normal.as_str();
    assert!(text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
    assert_eq!(NormalizedPath::read(text.as_bytes()).as_ref(), Ok(&normal), "twice");
    let slashes = text.matches('/').count();
    // For callers without a limited scope, the path is forwarded as the client sent it. So both the normalized path and
    // the original one must be safe.
    for mut bytes in [text.as_bytes().to_vec(), path] {
        for _ in 0..4 {
            for segment in bytes.split(|byte| *byte == b'/') {
                let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
                assert!(!matches!(name.trim_ascii(), b"." | b".."), "{text}");
            }
            assert!(!bytes.iter().any(|byte| byte.is_ascii_control() || *byte == b'\\'), "{text}");
            bytes = decoded(&bytes);
        }
        let left = String::from_utf8(bytes).expect("UTF-8");
        let doubled = left.split('/').skip(1).filter(|segment| segment.is_empty()).count();
        assert_eq!(
            left.matches('/').count() - doubled,
            if text == "/" { 0 } else { slashes },
            "{text}"
        );
    }
});
