//! Any body as a request of this API, with any tools deferred in any way.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcrib_dialect::Api;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::request_checks::check(Api::Chat, data));
