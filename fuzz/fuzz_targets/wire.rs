//! Reads anything that a server may write to its standard output. Every line must be read or skipped, and none may
//! crash the gateway.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_mcp::fuzzing::messages_in;

fuzz_target!(|bytes: &[u8]| {
    let limit = 4 << 10;
    let seen = messages_in(bytes, limit);
    // A line contains one message or a batch, and a message has at least two bytes. So there are never more messages
    // than bytes.
    assert!(seen <= bytes.len());
    // After a line end, earlier bytes must not affect how the next line is read.
    let mut after = bytes.to_vec();
    after.push(b'\n');
    let before = messages_in(&after, limit);
    after.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(messages_in(&after, limit), before + 1);
});
