//! Anything a client or a backend of another API may say, translated.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::translation_checks::check(data));
