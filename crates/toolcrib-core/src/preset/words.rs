//! Ours without its vectors: what a query says, and nothing that it only means.

use crate::rank::{RankSettings, RankerKind};
use crate::settings::Settings;

pub(super) fn settings() -> Settings {
    let rank = RankSettings { ranker: RankerKind::Words, ..RankSettings::default() };
    Settings { rank, ..Settings::default() }
}
