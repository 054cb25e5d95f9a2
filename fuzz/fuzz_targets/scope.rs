//! Generates requests of all four APIs with tools in every possible position. Nothing outside the caller's scope may be
//! sent to the provider.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::check_scope(data));
