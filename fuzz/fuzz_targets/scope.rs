//! Requests of all four APIs with tools in every place: nothing outside the caller's scope is sent to the provider.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| toolcrib_fuzz::check_scope(data));
