//! Sends any bytes as the upstream's Responses response, streamed or complete, to a client with forty tools, and checks
//! what the client gets.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_dialect::Api;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::response_checks::check(Api::Responses, data));
