//! The tools a caller may know of.
//!
//! Every search, listing, count, error and call takes a scope, and what is outside it does not
//! exist: asking for it is answered exactly as for a name nobody has. That includes the statistics
//! behind the ranking, so a score cannot tell that a hidden tool is there.

use crate::catalog::{Catalog, ToolId};

/// A set of tools of one catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    bits: Vec<u64>,
    len: usize,
    /// Tools in the catalog this is a scope of.
    of: usize,
    /// Which catalog that is.
    catalog: u64,
}

impl Scope {
    /// Every tool.
    pub fn all(catalog: &Catalog) -> Self {
        Self::of(catalog, catalog.ids())
    }

    /// No tool. A caller without a stated scope gets this one: absence fails closed.
    pub fn none(catalog: &Catalog) -> Self {
        Self::of(catalog, [])
    }

    /// These tools.
    pub fn of(catalog: &Catalog, ids: impl IntoIterator<Item = ToolId>) -> Self {
        let of = catalog.len();
        let bits = vec![0; of.div_ceil(64)];
        let mut scope = Self { bits, len: 0, of, catalog: catalog.identity() };
        for id in ids {
            if id.index() < of && !scope.contains(id) {
                scope.bits[id.index() / 64] |= 1 << (id.index() % 64);
                scope.len += 1;
            }
        }
        scope
    }

    /// The tools with these names; a name the catalog does not have adds nothing.
    pub fn named<'a>(catalog: &Catalog, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(catalog, names.into_iter().filter_map(|name| catalog.find(name)))
    }

    /// Whether the caller may know of this tool.
    pub fn contains(&self, id: ToolId) -> bool {
        self.bits.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 == 1)
    }

    /// How many tools that is.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it is a scope of this very catalog. One of another would mean other tools.
    pub(crate) fn is_of(&self, catalog: &Catalog) -> bool {
        self.catalog == catalog.identity() && self.of == catalog.len()
    }

    /// How many tools its catalog has.
    pub(crate) fn size_of_catalog(&self) -> usize {
        self.of
    }

    /// Whether it is every tool of its catalog.
    pub fn is_all(&self) -> bool {
        self.len == self.of
    }

    /// The tools, in catalog order.
    pub fn ids(&self) -> impl Iterator<Item = ToolId> + '_ {
        (0..self.of).map(ToolId::at).filter(|id| self.contains(*id))
    }
}
