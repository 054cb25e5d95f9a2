//! Sends any bytes as the response to a caller with a limited scope. No call of a tool outside the scope may reach the
//! caller.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::check_response(data));
