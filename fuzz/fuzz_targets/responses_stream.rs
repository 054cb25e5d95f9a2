//! Any answer of an upstream of this API, streamed or whole, to a client with forty tools.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_dialect::Api;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::response_checks::check(Api::Responses, data));
