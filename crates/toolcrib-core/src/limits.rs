//! How large a foreign thing may be before it is cut or held.
//!
//! Every number a stranger could blow up has one place here and can be changed. Over a limit the
//! answer is a named [`Finding`](crate::Finding) or a note in the reply, and whatever stands beside
//! the offender is unaffected.

use serde::{Deserialize, Serialize};

/// Bounds on catalogs, queries and patterns. The defaults suit catalogs from strangers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a tool's name, server prefix included. Over it the tool is held.
    pub name_bytes: usize,
    /// Bytes of a description that are kept; the rest is cut, and the cut is reported.
    pub description_bytes: usize,
    /// Bytes of a description that reach the index. A longer text gains nothing by its length.
    pub indexed_description_bytes: usize,
    /// Bytes of one whole definition. Over it the tool is held.
    pub definition_bytes: usize,
    /// Bytes of one input schema. Over it the tool is held, never cut: a cut schema is a wrong one.
    pub schema_bytes: usize,
    /// Nesting of one input schema. Over it the tool is held.
    pub schema_depth: usize,
    /// JSON values in one input schema. Over it the tool is held.
    pub schema_nodes: usize,
    /// Values in one `enum`. Over it the tool is held.
    pub enum_values: usize,
    /// Words of one tool that reach the index, over all its fields.
    pub indexed_words: usize,
    /// Bytes of a query that are read; the rest is cut, and the reply says so.
    pub query_bytes: usize,
    /// Distinct words of a query that are scored; the rest is cut, and the reply says so.
    pub query_words: usize,
    /// Queries in one call; the rest is left out, and the reply says so.
    pub asks: usize,
    /// Names in one call; the rest is left out, and the reply says so.
    pub names: usize,
    /// Bytes of a `tool_search_regex` pattern.
    pub pattern_bytes: usize,
    /// Compiled size of a pattern, in bytes.
    ///
    /// The engine is linear in the text, but linear in (pattern × text): at the crate's own default
    /// of 10 MiB a 14-byte pattern needs minutes over 5,000 tools. At 256 KiB such a pattern is
    /// refused while it compiles.
    pub pattern_compiled_bytes: usize,
    /// Bytes of catalog text one pattern may read before it stops with a partial answer.
    pub pattern_scan_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            name_bytes: 256,
            description_bytes: 16 << 10,
            indexed_description_bytes: 2 << 10,
            definition_bytes: 512 << 10,
            schema_bytes: 256 << 10,
            schema_depth: 64,
            schema_nodes: 10_000,
            enum_values: 2_000,
            indexed_words: 2_000,
            query_bytes: 4 << 10,
            query_words: 128,
            asks: 16,
            names: 64,
            pattern_bytes: 256,
            pattern_compiled_bytes: 256 << 10,
            pattern_scan_bytes: 32 << 20,
        }
    }
}
