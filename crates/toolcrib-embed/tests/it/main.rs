//! What a text becomes, seen from outside.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod agreement;
mod foreign;
mod meaning;
mod table;
