//! Reads any body as a Messages request, and checks what is sent to the upstream. The input selects how tools are
//! deferred.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_dialect::Api;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::request_checks::check(Api::Messages, data));
