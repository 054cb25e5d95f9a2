//! The vectors of the tools of a catalog.
//!
//! They are computed with a table of token vectors, which is built in or provided by the caller. They are not computed
//! before the first search, because many programs that have a catalog never search. In such programs the table is not
//! even parsed. The next generation of a catalog copies the vectors of unchanged tools and computes only those of the
//! other tools.

use std::sync::OnceLock;

use toolcrib_embed::{EmbeddedField, EmbeddingModel, FlatIndex, QuantisedVector};

use super::vector_table::VectorTable;
use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::tool::Tool;

/// The vectors of one catalog, computed on first use.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    table: VectorTable,
    computed: OnceLock<CatalogVectors>,
}

/// One vector for each tool, in the order of the catalog.
#[derive(Debug)]
struct CatalogVectors {
    index: FlatIndex,
    work: EmbeddingWork,
    /// The value of `Limits::indexed_description_bytes` with which these vectors were computed.
    description_bytes: usize,
}

/// How many vectors were computed and how many were reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddingWork {
    /// Number of tools that were embedded.
    pub embedded: usize,
    /// Number of tools whose vectors were copied from the previous catalog.
    pub reused: usize,
}

impl Vectors {
    /// Vectors that will be computed with this table on first use.
    pub(crate) fn of(table: &VectorTable) -> Self {
        Self { table: table.clone(), computed: OnceLock::new() }
    }

    /// Whether these vectors are computed with this table.
    pub(crate) fn are_of(&self, table: &VectorTable) -> bool {
        self.table == *table
    }

    fn model(&self) -> &EmbeddingModel {
        // Only the hybrid ranker uses vectors, and `rank::build` builds it only if there is a table.
        self.table.model().unwrap_or_else(|| unreachable!("vectors without a table"))
    }

    /// Embeds a query.
    pub(super) fn query(&self, text: &str) -> QuantisedVector {
        self.model().embed(text).quantised()
    }

    /// Whether the vector table contains the entire word, so that the word is not split into parts.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.model().pieces(word).len() == 1
    }

    /// The vectors of the tools of `catalog`, computed if necessary. `catalog` must be the catalog that these vectors
    /// belong to.
    pub(super) fn index(&self, catalog: &Catalog, limits: &Limits) -> &FlatIndex {
        &self.computed(catalog, limits).index
    }

    /// Computes the vectors, unless they were already computed, and returns how many were computed and how many were
    /// reused.
    pub(crate) fn prepare(&self, catalog: &Catalog, limits: &Limits) -> EmbeddingWork {
        self.computed(catalog, limits).work
    }

    fn computed(&self, catalog: &Catalog, limits: &Limits) -> &CatalogVectors {
        self.computed.get_or_init(|| CatalogVectors::of(self.model(), catalog, limits, |_| None))
    }

    /// Returns the vectors for `catalog`, which replaces the catalog `before`, to which `self` belongs. The vectors of
    /// tools that did not change are copied. If the vectors of `self` were never computed, there is nothing to copy,
    /// and the new ones are not computed yet either.
    pub(crate) fn next(&self, before: &Catalog, catalog: &Catalog, limits: &Limits) -> Self {
        let next = Self::of(&self.table);
        let same = |computed: &&CatalogVectors| {
            computed.description_bytes == limits.indexed_description_bytes
        };
        if let Some(computed) = self.computed.get().filter(same) {
            let kept = |tool: &Tool| {
                let id = before.find(tool.name())?;
                (before.tool(id) == tool).then_some((&computed.index, id.index()))
            };
            next.computed.get_or_init(|| CatalogVectors::of(self.model(), catalog, limits, kept));
        }
        next
    }

    /// Size of the computed vectors on the heap, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.computed.get().map_or(0, |computed| computed.index.bytes())
    }
}

impl CatalogVectors {
    /// Builds the vectors of a catalog. If `kept` returns a vector for a tool, it is copied; otherwise a new one is
    /// computed.
    fn of<'a>(
        model: &EmbeddingModel,
        catalog: &Catalog,
        limits: &Limits,
        kept: impl Fn(&Tool) -> Option<(&'a FlatIndex, usize)>,
    ) -> Self {
        let description_bytes = limits.indexed_description_bytes;
        let mut index = model.new_index();
        index.reserve(catalog.len());
        let mut work = EmbeddingWork::default();
        for tool in catalog.tools() {
            if let Some((before, at)) = kept(tool) {
                index.push_from(before, at);
                work.reused += 1;
            } else {
                index.push(&embed_tool(model, tool, description_bytes));
                work.embedded += 1;
            }
        }
        Self { index, work, description_bytes }
    }
}

fn embed_tool(model: &EmbeddingModel, tool: &Tool, description_bytes: usize) -> QuantisedVector {
    let truncated = |text| truncate(text, description_bytes);
    let schema = tool.schema_value();
    let mut texts = vec![
        (EmbeddedField::Name, tool.name_without_server()),
        (EmbeddedField::Description, truncated(tool.description())),
        (EmbeddedField::Server, tool.server().unwrap_or_default()),
    ];
    texts.extend(tool.title().map(|title| (EmbeddedField::Title, title)));
    texts.extend(tool.keywords().map(|word| (EmbeddedField::Title, word)));
    walk(&schema, &mut |part| match part {
        Part::Name(name) => texts.push((EmbeddedField::ParameterNames, name)),
        Part::Text(text) => texts.push((EmbeddedField::ParameterDescriptions, truncated(text))),
        // Enum values are not embedded. Only the word index finds them.
        Part::Value(_) => {}
    });
    model.embed_fields(&texts).quantised()
}

fn truncate(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
