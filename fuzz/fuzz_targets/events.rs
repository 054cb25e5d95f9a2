//! Splits the event stream of an HTTP+SSE server at arbitrary positions. The pieces must give the same events as all bytes at
//! once, and no event may exceed the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::fuzzing::events_in;

fuzz_target!(|data: (u8, Vec<u8>, Vec<u8>)| {
    let (limit, cuts, bytes) = data;
    let limit = usize::from(limit) + 1;
    let whole = events_in(std::iter::once(&bytes[..]), limit);
    for (name, data) in whole.iter().flatten() {
        assert!(name.len() + data.len() <= limit);
        assert!(!data.contains(&b'\r'));
    }
    let mut rest = &bytes[..];
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, tail) = rest.split_at(usize::from(cut).min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    assert_eq!(whole, events_in(pieces.into_iter(), limit));
    // After an empty line, earlier bytes must not affect how the next event is read.
    let mut after = bytes;
    after.extend_from_slice(b"\n\n");
    let before = events_in(std::iter::once(&after[..]), limit).len();
    after.extend_from_slice(b"data:\n\n");
    if limit > b"data:".len() {
        let events = events_in(std::iter::once(&after[..]), limit);
        assert_eq!(events.len(), before + 1);
        assert_eq!(events[before], Some((String::new(), Vec::new())));
    }
});
