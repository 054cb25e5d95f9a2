//! Ours without its vectors: what a query says, and nothing that it only means.

use crate::rank::{By, RankSettings};
use crate::settings::Settings;

pub(super) fn settings() -> Settings {
    let rank = RankSettings { by: By::Words, ..RankSettings::default() };
    Settings { rank, ..Settings::default() }
}
