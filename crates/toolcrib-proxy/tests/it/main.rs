//! The proxy as it is served, between real sockets: what passes, what breaks, who sees what.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod credentials;
mod dialects;
mod headers;
mod leaving;
mod limited;
mod limits;
mod pass;
mod reading;
mod refusals;
mod scope;
mod state;
mod support;
mod translation;
mod upstream;
