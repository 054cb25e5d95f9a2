//! Translates any request of a client, and any response of an upstream that uses a different API. The translation must
//! be well-formed, whatever the input is.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::translation_checks::check(data));
