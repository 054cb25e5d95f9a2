//! The vectors of the tools of a catalog.
//!
//! Each tool has a vector from a table, and may have a deep vector from a transformer (see `deep_vectors`). The vectors
//! from the table are computed with a table of token vectors, which is built in or provided by the caller. They are not computed
//! before the first search, because many programs that have a catalog never search. In such programs the table is not
//! even parsed. The next generation of a catalog copies the vectors of unchanged tools and computes only those of the
//! other tools.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use toolcrib_embed::{EmbeddedField, EmbeddingModel, FlatIndex, GeneralTypes, QuantisedVector};

use super::deep_index::{DeepCatalog, DeepIndex};
use super::deep_vectors::{DeepVectors, EncodedQuery, ToolText};
use super::vector_table::VectorTable;
use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::scope::Scope;
use crate::tool::Tool;

/// The vectors of one catalog, computed on first use.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    table: VectorTable,
    computed: OnceLock<CatalogVectors>,
    deep: DeepVectors,
    deep_catalog: OnceLock<DeepCatalog>,
}

/// The vectors of all tools, as one search reads them.
#[derive(Debug)]
pub(super) struct VectorView<'a> {
    pub(super) table: &'a FlatIndex,
    /// `None` if no tool in scope has a deep vector.
    pub(super) deep: Option<Arc<DeepIndex>>,
}

impl VectorView<'_> {
    /// Leaves the deep vectors out if no tool in scope has one. Otherwise, hidden tools could decide how visible ones are
    /// ranked.
    fn within(self, scope: &Scope) -> Self {
        let has_any = |index: &Arc<DeepIndex>| scope.ids().any(|id| index.present[id.index()]);
        Self { deep: self.deep.filter(has_any), ..self }
    }
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
    /// Vectors that will be computed with this table on first use, and the deep vectors that there are.
    pub(crate) fn of(table: &VectorTable, deep: &DeepVectors) -> Self {
        Self { table: table.clone(), deep: deep.clone(), ..Self::default() }
    }

    /// Whether these vectors are from this table and this encoder.
    pub(crate) fn are_of(&self, table: &VectorTable, deep: &DeepVectors) -> bool {
        self.table == *table && self.deep == *deep
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

    /// Embeds a query with the encoder. Returns `None` if there is no encoder, or if it does not know the script of the query.
    pub(super) fn deep_query(&self, text: &str, needs: &[Range<usize>]) -> Option<EncodedQuery> {
        self.deep.encoder()?.embed_query(text, needs)
    }

    /// The types of general tools that the encoder can recognise.
    pub(super) fn general_types(&self) -> Option<&GeneralTypes> {
        self.deep.general_types()
    }

    /// The vectors of the tools of `catalog`, computed if necessary. `catalog` must be the catalog that these vectors
    /// belong to. Deep vectors are not computed here.
    pub(super) fn view(&self, catalog: &Catalog, limits: &Limits, scope: &Scope) -> VectorView<'_> {
        let table = &self.computed(catalog, limits).index;
        let deep = self.deep_catalog(catalog).and_then(|deep| deep.index(&self.deep));
        VectorView { table, deep }.within(scope)
    }

    /// Computes the vectors from the table, unless they were already computed, and returns how many were computed and
    /// how many were reused. Deep vectors that are missing are requested.
    pub(crate) fn prepare(&self, catalog: &Catalog, limits: &Limits) -> EmbeddingWork {
        self.request_deep(catalog);
        self.computed(catalog, limits).work
    }

    /// Requests the deep vectors that are missing, unless this was done before.
    pub(crate) fn request_deep(&self, catalog: &Catalog) {
        // The first call of `deep_catalog` requests the missing vectors.
        self.deep_catalog(catalog);
    }

    /// The texts of the tools without a deep vector. Empty if there is no encoder.
    pub(crate) fn missing_deep(&self, catalog: &Catalog) -> Vec<ToolText> {
        self.deep_catalog(catalog).map(|deep| deep.missing(catalog, &self.deep)).unwrap_or_default()
    }

    fn computed(&self, catalog: &Catalog, limits: &Limits) -> &CatalogVectors {
        self.computed.get_or_init(|| CatalogVectors::of(self.model(), catalog, limits, |_| None))
    }

    /// The deep vectors of the catalog, if there is an encoder. At the first call, the missing ones are requested.
    fn deep_catalog(&self, catalog: &Catalog) -> Option<&DeepCatalog> {
        self.deep.is_available().then(|| {
            self.deep_catalog.get_or_init(|| {
                let deep_catalog = DeepCatalog::new(catalog, &self.deep);
                if self.deep.accepts_requests() {
                    self.deep.request(deep_catalog.missing(catalog, &self.deep));
                }
                deep_catalog
            })
        })
    }

    /// Returns the vectors for `catalog`, which replaces the catalog `before`, to which `self` belongs. The vectors of
    /// tools that did not change are copied. If the vectors of `self` were never computed, there is nothing to copy,
    /// and the new ones are not computed yet either.
    pub(crate) fn next(&self, before: &Catalog, catalog: &Catalog, limits: &Limits) -> Self {
        let next = Self::of(&self.table, &self.deep);
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
            + self.deep_catalog.get().map_or(0, DeepCatalog::bytes)
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
