//! Anything a server may write to its standard output: it is read, or skipped, and never the end of us.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::fuzzing::messages_in;

fuzz_target!(|bytes: &[u8]| {
    let limit = 4 << 10;
    let seen = messages_in(bytes, limit);
    // A line has one message at least two bytes long, or a batch of such.
    assert!(seen <= bytes.len());
    // What came before does not change what comes after a line's end.
    let mut after = bytes.to_vec();
    after.push(b'\n');
    let before = messages_in(&after, limit);
    after.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(messages_in(&after, limit), before + 1);
});
