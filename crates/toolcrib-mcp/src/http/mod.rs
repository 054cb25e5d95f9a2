//! The gateway's own HTTP door: who may knock, and with which key.

pub mod guard;
pub mod token;
