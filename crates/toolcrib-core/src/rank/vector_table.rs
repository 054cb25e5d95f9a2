//! The table of token vectors that a catalog is embedded with.

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
/// let settings = Settings { vector_table: VectorTable::from(model), ..Settings::default() };
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct VectorTable(Option<Arc<EmbeddingModel>>);

impl VectorTable {
    /// The model. The built-in one is parsed on first use.
    pub(super) fn model(&self) -> &EmbeddingModel {
        self.0.as_deref().unwrap_or_else(|| EmbeddingModel::builtin())
    }
}

impl From<EmbeddingModel> for VectorTable {
    fn from(model: EmbeddingModel) -> Self {
        Self(Some(Arc::new(model)))
    }
}

/// Compares by identity. Comparing contents would read ten megabytes.
impl PartialEq for VectorTable {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
