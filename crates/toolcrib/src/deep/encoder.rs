//! The encoder: the one inside the binary, or one from a folder.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use toolcrib_embed::Encoder;

use crate::output::Failure;

/// Name of the file that contains an encoder written by `training/`.
pub(crate) const ENCODER_FILE: &str = "encoder.bin";

/// The weights inside the binary. The build script sets `has_encoder` if the file exists. A crate from a registry does
/// not contain it, because registries limit the size of a crate.
#[cfg(has_encoder)]
const WEIGHTS: &[u8] = include_bytes!("../../weights/encoder.bin");
#[cfg(not(has_encoder))]
const WEIGHTS: &[u8] = &[];

/// The encoder inside the binary, or `None` if this build has none.
pub(super) fn builtin_encoder() -> Option<Arc<Encoder>> {
    static BUILTIN: LazyLock<Option<Arc<Encoder>>> = LazyLock::new(|| {
        // A test checks that the weights in the repository can be parsed.
        Encoder::parse(Cow::Borrowed(WEIGHTS)).ok().map(Arc::new)
    });
    BUILTIN.clone()
}

/// Parses the encoder of a folder.
pub(crate) fn parse_encoder(folder: &Path, bytes: Vec<u8>) -> Result<Arc<Encoder>, Failure> {
    Encoder::parse(Cow::Owned(bytes)).map(Arc::new).map_err(|error| {
        Failure::input(format!("`{}`", folder.join(ENCODER_FILE).display()), &error, error.hint())
    })
}
