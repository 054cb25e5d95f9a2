//! The tools that a caller may know of.
//!
//! Searches, listings, counts, error messages and calls are all limited to a scope. A tool outside the scope does not
//! exist for the caller: a request for it is answered exactly like a request for an unknown name. The statistics for
//! the ranking are also computed within the scope, so a score cannot reveal that a hidden tool exists.

use crate::catalog::{Catalog, ToolId};

/// A set of tools of one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    bits: Vec<u64>,
    len: usize,
    /// Number of tools in the scope's catalog.
    catalog_len: usize,
    /// The identity of the scope's catalog.
    catalog: u64,
}

impl Scope {
    /// A scope with every tool of the catalog.
    pub fn all(catalog: &Catalog) -> Self {
        Self::of(catalog, catalog.ids())
    }

    /// A scope without tools, for a caller whose scope is unknown.
    pub fn none(catalog: &Catalog) -> Self {
        Self::of(catalog, [])
    }

    /// A scope with these tools.
    pub fn of(catalog: &Catalog, ids: impl IntoIterator<Item = ToolId>) -> Self {
        let catalog_len = catalog.len();
        let bits = vec![0; catalog_len.div_ceil(64)];
        let mut scope = Self { bits, len: 0, catalog_len, catalog: catalog.identity() };
        for id in ids {
            if id.index() < catalog_len && !scope.contains(id) {
                scope.bits[id.index() / 64] |= 1 << (id.index() % 64);
                scope.len += 1;
            }
        }
        scope
    }

    /// A scope with the tools of these names. Names that the catalog does not have are ignored.
    pub fn named<'a>(catalog: &Catalog, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(catalog, names.into_iter().filter_map(|name| catalog.find(name)))
    }

    /// Whether the caller may know of this tool.
    pub fn contains(&self, id: ToolId) -> bool {
        self.bits.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    /// The number of tools in scope.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no tool is in scope.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the scope belongs to this catalog. In another catalog, the same ids refer to different tools.
    pub(crate) fn is_of(&self, catalog: &Catalog) -> bool {
        self.catalog == catalog.identity() && self.catalog_len == catalog.len()
    }

    pub(crate) fn size_of_catalog(&self) -> usize {
        self.catalog_len
    }

    /// Whether all tools of the catalog are in scope.
    pub fn is_all(&self) -> bool {
        self.len == self.catalog_len
    }

    /// The tools in scope, in catalog order.
    pub fn ids(&self) -> impl Iterator<Item = ToolId> + '_ {
        (0..self.catalog_len).map(ToolId::at).filter(|id| self.contains(*id))
    }
}
