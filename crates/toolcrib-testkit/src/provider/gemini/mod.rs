//! Gemini `generateContent`. Each event is a complete object, calls have signatures, and there is no native search.

mod check;
mod read;
mod write;

pub(super) use check::check;
pub(super) use read::read;
pub(super) use write::write;

/// The prefix of this provider's thought signatures. Hexadecimal digits follow it, so that the signature is valid
/// base64.
const SIGNATURE: &str = "CiQB";

/// Placeholder signatures that a client may send for calls that the model did not make.
const FILLERS: [&str; 4] = [
    "skip_thought_signature_validator",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    "context_engineering_is_the_way_to_go",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
];
