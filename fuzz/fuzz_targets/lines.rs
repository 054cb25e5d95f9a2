//! Splits the output of a server into pieces of any size. The pieces must give the same lines as all bytes at once, and
//! no line may exceed the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::lines::{LineEvent, LineSplitter};

fuzz_target!(|data: (u8, Vec<u8>, Vec<u8>)| {
    let (limit, cuts, bytes) = data;
    let limit = usize::from(limit) + 1;
    let whole = lines(limit, std::iter::once(&bytes[..]));
    let mut rest = &bytes[..];
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, tail) = rest.split_at(usize::from(cut).min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    assert_eq!(whole, lines(limit, pieces.into_iter()));
});

/// Returns every line, or `None` in place of a line that is too long.
fn lines<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Option<Vec<u8>>> {
    let mut lines = LineSplitter::new(limit);
    let mut found = Vec::new();
    let mut note = |event: LineEvent<'_>| match event {
        LineEvent::Line(line) => {
            assert!(line.len() <= limit && !line.contains(&b'\n'));
            found.push(Some(line.to_vec()));
        }
        LineEvent::TooLong { .. } => found.push(None),
    };
    for mut piece in pieces {
        while let Some(event) = lines.next_event(&mut piece) {
            note(event);
        }
    }
    if let Some(event) = lines.finish() {
        note(event);
    }
    found
}
