//! Toolcrib's defaults with a ranking by words alone, without vectors.

use crate::rank::{RankSettings, RankerKind};
use crate::settings::Settings;

pub(super) fn settings() -> Settings {
    let rank = RankSettings { ranker: RankerKind::Words, ..RankSettings::default() };
    Settings { rank, ..Settings::default() }
}
