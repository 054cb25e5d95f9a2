//! What a text becomes, seen from outside.

#![allow(clippy::unwrap_used, clippy::float_cmp)]

mod agreement;
#[cfg(feature = "folder")]
mod folder;
mod foreign;
mod meaning;
mod table;
