//! The vectors of a catalog: what each tool is about, whatever words it says it in.
//!
//! A tool's vector comes from a table of token vectors, the one inside the program or another that the
//! caller brings. They are made when the first search asks for them: much of what has a catalog never
//! searches, and then the table is not touched either. The next generation of a catalog copies the
//! vectors of the tools that stayed and makes only the others.

use std::sync::OnceLock;

use toolcrib_embed::{EmbeddedField, EmbeddingModel, FlatIndex, QuantisedVector};

use super::table::VectorTable;
use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::limits::Limits;
use crate::tool::Tool;

/// The vectors of one catalog, made or to be made.
#[derive(Debug, Default)]
pub(crate) struct Vectors {
    table: VectorTable,
    made: OnceLock<Made>,
}

/// One vector for each tool, in the order of the catalog.
#[derive(Debug)]
struct Made {
    rows: FlatIndex,
    work: EmbeddingWork,
    /// How much of a description was read.
    description_bytes: usize,
}

/// What it took to have a vector for every tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddingWork {
    /// Tools that were embedded.
    pub embedded: usize,
    /// Tools whose vectors the catalog before had already.
    pub reused: usize,
}

impl Vectors {
    /// Vectors from this table, none made yet.
    pub(crate) fn of(table: &VectorTable) -> Self {
        Self { table: table.clone(), made: OnceLock::new() }
    }

    /// Whether they are made from this table.
    pub(crate) fn are_of(&self, table: &VectorTable) -> bool {
        self.table == *table
    }

    /// The vector of a query.
    pub(super) fn query(&self, text: &str) -> QuantisedVector {
        self.table.model().embed(text).quantised()
    }

    /// Whether the table has a vector for this word as a whole.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.table.model().pieces(word).len() == 1
    }

    /// A vector for each tool of `catalog`, of which these are the vectors.
    pub(super) fn rows(&self, catalog: &Catalog, limits: &Limits) -> &FlatIndex {
        &self.made(catalog, limits).rows
    }

    /// Makes what is not made yet.
    pub(crate) fn prepare(&self, catalog: &Catalog, limits: &Limits) -> EmbeddingWork {
        self.made(catalog, limits).work
    }

    fn made(&self, catalog: &Catalog, limits: &Limits) -> &Made {
        self.made.get_or_init(|| Made::of(self.table.model(), catalog, limits, |_| None))
    }

    /// The vectors of the catalog that takes the place of `before`, whose vectors these are. Where nobody
    /// has searched yet, there is nothing to keep, and nothing is made.
    pub(crate) fn next(&self, before: &Catalog, catalog: &Catalog, limits: &Limits) -> Self {
        let next = Self::of(&self.table);
        let same = |made: &&Made| made.description_bytes == limits.indexed_description_bytes;
        if let Some(made) = self.made.get().filter(same) {
            let kept = |tool: &Tool| {
                let id = before.find(tool.name())?;
                (before.tool(id) == tool).then_some((&made.rows, id.index()))
            };
            next.made.get_or_init(|| Made::of(self.table.model(), catalog, limits, kept));
        }
        next
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.made.get().map_or(0, |made| made.rows.bytes())
    }
}

impl Made {
    /// A vector for each tool: the one that `kept` knows, or a new one.
    fn of<'a>(
        model: &EmbeddingModel,
        catalog: &Catalog,
        limits: &Limits,
        kept: impl Fn(&Tool) -> Option<(&'a FlatIndex, usize)>,
    ) -> Self {
        let description_bytes = limits.indexed_description_bytes;
        let mut rows = model.new_index();
        rows.reserve(catalog.len());
        let mut work = EmbeddingWork::default();
        for tool in catalog.tools() {
            if let Some((before, at)) = kept(tool) {
                rows.push_from(before, at);
                work.reused += 1;
            } else {
                rows.push(&embedded(model, tool, description_bytes));
                work.embedded += 1;
            }
        }
        Self { rows, work, description_bytes }
    }
}

/// The vector of one tool.
fn embedded(model: &EmbeddingModel, tool: &Tool, description_bytes: usize) -> QuantisedVector {
    let beginning = |text| beginning(text, description_bytes);
    let schema = tool.schema_value();
    let mut texts = vec![
        (EmbeddedField::Name, tool.name_without_server()),
        (EmbeddedField::Description, beginning(tool.description())),
        (EmbeddedField::Server, tool.server().unwrap_or_default()),
    ];
    texts.extend(tool.title().map(|title| (EmbeddedField::Title, title)));
    texts.extend(tool.keywords().map(|word| (EmbeddedField::Title, word)));
    walk(&schema, &mut |part| match part {
        Part::Name(name) => texts.push((EmbeddedField::ParameterNames, name)),
        Part::Text(text) => texts.push((EmbeddedField::ParameterDescriptions, beginning(text))),
        // Values are words of their own kind; the words find them.
        Part::Value(_) => {}
    });
    model.embed_fields(&texts).quantised()
}

fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
