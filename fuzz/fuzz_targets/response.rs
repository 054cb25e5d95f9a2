//! Any bytes as the response to a caller with a limited scope: no call of a tool that it does not have reaches it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::check_response(data));
