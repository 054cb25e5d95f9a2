//! The deep vectors of the tools of one catalog.
//!
//! The vectors come from [`DeepVectors`], which other threads fill. An index is rebuilt in the first search after
//! vectors were added, until every tool has one. Rebuilding copies vectors and embeds nothing.

use std::sync::{Arc, PoisonError, RwLock};

use toolcrib_embed::{FlatIndex, Vector};

use super::deep_vectors::{DeepVectors, TextKey, ToolText};
use super::generality::ToolTypes;
use crate::catalog::Catalog;
use crate::ingest::{Part, walk};
use crate::tool::Tool;

/// Maximum length of a description that is embedded, in characters. The encoder was trained with the same limit, and
/// with the next one.
const DESCRIPTION_CHARS: usize = 400;
/// Maximum length of the list of parameter names, in characters.
const PARAMETERS_CHARS: usize = 120;

/// The deep vectors of one catalog.
#[derive(Debug)]
pub(super) struct DeepCatalog {
    /// The key of each tool, in the order of the catalog.
    keys: Box<[TextKey]>,
    /// The number of dimensions of a vector.
    dims: usize,
    /// The number of types of general tools.
    general_types: usize,
    index: RwLock<Arc<DeepIndex>>,
}

/// The deep vectors that the tools of a catalog have at one moment.
#[derive(Debug)]
pub(super) struct DeepIndex {
    /// One vector for each tool. A tool that has none yet has the zero vector.
    pub(super) vectors: FlatIndex,
    /// Whether each tool has a vector.
    pub(super) present: Box<[bool]>,
    /// The number of tools that have a vector.
    pub(super) count: usize,
    /// Which tools are general.
    pub(super) tool_types: ToolTypes,
    /// The version of [`DeepVectors`] from which the index was built.
    version: u64,
}

impl DeepCatalog {
    pub(super) fn new(catalog: &Catalog, deep: &DeepVectors) -> Self {
        let keys = catalog.tools().iter().map(|tool| ToolText::new(text_of(tool)).key).collect();
        let nothing = DeepIndex {
            vectors: FlatIndex::new(1),
            present: Box::default(),
            count: 0,
            tool_types: ToolTypes::default(),
            version: 0,
        };
        let dims = deep.encoder().map_or(1, |encoder| encoder.dims());
        let general_types = deep.general_types().map_or(0, |types| types.as_slice().len());
        Self { keys, dims, general_types, index: RwLock::new(Arc::new(nothing)) }
    }

    /// The texts of the tools that have no vector.
    pub(super) fn missing(&self, catalog: &Catalog, deep: &DeepVectors) -> Vec<ToolText> {
        let mut present = vec![false; self.keys.len()];
        deep.each(&self.keys, |at, _| present[at] = true);
        let tools = catalog.tools().iter().zip(&present).filter(|(_, present)| !**present);
        tools.map(|(tool, _)| ToolText::new(text_of(tool))).collect()
    }

    /// The index with all vectors that exist now, or `None` if no tool has one.
    pub(super) fn index(&self, deep: &DeepVectors) -> Option<Arc<DeepIndex>> {
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        // The version is read before the vectors, so an insertion in between leads to another rebuild.
        let version = deep.version();
        let is_current = known.version == version || known.count == self.keys.len();
        let index = if is_current {
            known
        } else {
            let built = Arc::new(DeepIndex::build(self, deep, &known, version));
            *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&built);
            built
        };
        (index.count > 0).then_some(index)
    }

    /// Approximate size on the heap, in bytes, when all tools have vectors. It is counted from the start, because caches
    /// of catalogs ask for the size only once.
    pub(super) fn bytes(&self) -> usize {
        let vector = self.dims + size_of::<f32>();
        let tool = size_of::<TextKey>() + size_of::<bool>();
        self.keys.len() * (vector + tool + ToolTypes::bytes_per_tool(self.general_types))
    }
}

impl DeepIndex {
    /// Copies the vectors of all keys. A tool that had a vector in `before` keeps it, even if `deep` has dropped it in the
    /// meantime.
    fn build(catalog: &DeepCatalog, deep: &DeepVectors, before: &Self, version: u64) -> Self {
        let (keys, dims) = (&*catalog.keys, catalog.dims);
        let zero = Vector::normalised(vec![0.0; dims]).quantised();
        let mut vectors = FlatIndex::new(dims);
        vectors.reserve(keys.len());
        let mut present = vec![false; keys.len()];
        let push_missing = |vectors: &mut FlatIndex, present: &mut [bool], until: usize| {
            while vectors.len() < until {
                let at = vectors.len();
                if before.present.get(at) == Some(&true) {
                    vectors.push_from(&before.vectors, at);
                    present[at] = true;
                } else {
                    vectors.push(&zero);
                }
            }
        };
        deep.each(keys, |at, vector| {
            push_missing(&mut vectors, &mut present, at);
            vectors.push(vector);
            present[at] = true;
        });
        push_missing(&mut vectors, &mut present, keys.len());
        let count = present.iter().filter(|present| **present).count();
        let tool_types = deep
            .general_types()
            .map_or_else(ToolTypes::default, |types| ToolTypes::new(types, &vectors, &present));
        Self { vectors, present: present.into(), count, tool_types, version }
    }
}

/// The text of a tool that is embedded. `training/data.py` builds the same text.
fn text_of(tool: &Tool) -> String {
    let mut parameters = String::new();
    walk(&tool.schema_value(), &mut |part| {
        if let Part::Name(name) = part
            && parameters.len() < PARAMETERS_CHARS
        {
            if !parameters.is_empty() {
                parameters.push(' ');
            }
            parameters.push_str(name);
        }
    });
    let mut text = String::new();
    if let Some(server) = tool.server() {
        text.push_str(server);
        text.push(' ');
    }
    text.push_str(&spaced(tool.name_without_server()));
    text.push_str(": ");
    text.push_str(first_chars(tool.description(), DESCRIPTION_CHARS));
    if !parameters.is_empty() {
        text.push_str(" (");
        text.push_str(first_chars(&parameters, PARAMETERS_CHARS));
        text.push(')');
    }
    text
}

fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// An identifier as separate words: `createIssue_v2` becomes `create Issue v2`.
fn spaced(name: &str) -> String {
    let mut result = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for c in name.chars() {
        let is_part =
            c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        let is_separator = !c.is_alphanumeric();
        if (is_part || is_separator) && !result.is_empty() && !result.ends_with(' ') {
            result.push(' ');
        }
        if !is_separator {
            result.push(c);
        }
        before = c;
    }
    result.truncate(result.trim_end().len());
    result
}
