//! The table of token vectors with which a catalog is embedded.

use std::sync::Arc;

use toolcrib_embed::EmbeddingModel;

/// The built-in table, or one that the caller has loaded.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (entry, codes) = ("issue", [1_u8, 2, 3]);
/// # let mut file = b"TCRIBEM2".to_vec();
/// # for number in [codes.len(), 1, entry.len(), 6] {
/// #     file.extend((number as u32).to_le_bytes());
/// # }
/// # file.extend([1.0_f32; 6].iter().flat_map(|weight| weight.to_le_bytes()));
/// # file.extend(entry.as_bytes());
/// # file.extend([1.0_f32; 2].iter().flat_map(|scale| scale.to_le_bytes()));
/// # file.extend(codes);
/// use toolcrib_core::rank::VectorTable;
/// use toolcrib_core::{EmbeddingModel, Settings};
/// let model = EmbeddingModel::parse(file.into())?;
/// let mut settings = Settings::default();
/// settings.vector_table = VectorTable::from(model);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct VectorTable(Option<Arc<EmbeddingModel>>);

impl VectorTable {
    /// The loaded table, or else the built-in one, which is parsed on first use. Returns `None` in a build without the
    /// feature `vectors` if no table was loaded.
    pub(super) fn model(&self) -> Option<&EmbeddingModel> {
        #[cfg(feature = "vectors")]
        let builtin = || Some(EmbeddingModel::builtin());
        #[cfg(not(feature = "vectors"))]
        let builtin = || None;
        self.0.as_deref().or_else(builtin)
    }

    /// Whether there is a table to rank with. If not, [`RankerKind::Hybrid`](super::RankerKind::Hybrid) ranks by words
    /// alone, and [`Explanation::vectors_missing`](super::Explanation::vectors_missing) is set.
    pub fn is_available(&self) -> bool {
        self.0.is_some() || cfg!(feature = "vectors")
    }
}

impl From<EmbeddingModel> for VectorTable {
    fn from(model: EmbeddingModel) -> Self {
        Self(Some(Arc::new(model)))
    }
}

/// Tables are compared by identity, because comparing their contents would read ten megabytes.
impl PartialEq for VectorTable {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
