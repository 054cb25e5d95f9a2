//! Splits the bytes of an event stream into pieces of any size. The pieces must give the same events as all bytes at
//! once, and no byte may be lost.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_dialect::sse::{self, Decoder, Event};

fuzz_target!(|data: (Vec<u8>, Vec<u8>)| {
    let (cuts, bytes) = data;
    let (events, rest) = read(std::iter::once(&bytes[..]));
    let mut left = &bytes[..];
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, tail) = left.split_at(usize::from(cut).min(left.len()));
        pieces.push(piece);
        left = tail;
    }
    pieces.push(left);
    let cut = read(pieces.into_iter());
    assert_eq!((&events, &rest), (&cut.0, &cut.1));
    let mut all: Vec<u8> = events.iter().flat_map(|event| event.raw().to_vec()).collect();
    all.extend_from_slice(&rest);
    assert_eq!(all, bytes);
    for event in &events {
        let name = event.name();
        let Some(data) = event.data() else { continue };
        assert!(!data.contains('\r') && !name.is_some_and(|name| name.contains(['\n', '\r'])));
        let mut written = Vec::new();
        sse::write_event(name, &data, &mut written);
        let (again, rest) = read(std::iter::once(&written[..]));
        assert!(again.len() == 1 && rest.is_empty());
        assert_eq!((again[0].name(), again[0].data()), (name, Some(data)));
    }
    // Any text can be written as an event. Reading the event gives the same text, with a newline in place of each
    // carriage return.
    if let Ok(text) = std::str::from_utf8(&bytes) {
        let mut written = Vec::new();
        sse::write_event(Some("x"), text, &mut written);
        let (again, rest) = read(std::iter::once(&written[..]));
        assert!(again.len() == 1 && rest.is_empty());
        assert_eq!(again[0].data().as_deref(), Some(&*text.replace('\r', "\n")));
    }
});

/// Returns the events, and the bytes after the last event.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Event>, Vec<u8>) {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().expect("no event is that large") {
            assert!(event.raw().ends_with(b"\n") || event.raw().ends_with(b"\r"));
            events.push(event);
        }
    }
    (events, decoder.take_rest().to_vec())
}
