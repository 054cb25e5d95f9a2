//! Limits on untrusted input.
//!
//! Everything whose size a server, client or model could inflate has a configurable limit here. A tool that exceeds a
//! limit is reported as a [`Finding`](crate::Finding). If a query exceeds one, a note in the reply says so. Other tools
//! and queries are not affected.

use serde::{Deserialize, Serialize};

/// Limits on catalogs, queries and patterns. The defaults suit catalogs from untrusted servers.
///
/// ```
/// let mut limits = toolcrib_core::Limits::default();
/// limits.query_words = 64;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum length of a tool's name with its server prefix, in bytes. Tools with longer names are withheld.
    pub name_bytes: usize,
    /// Maximum length of a description, in bytes. Longer descriptions are truncated, and a finding reports it.
    pub description_bytes: usize,
    /// Maximum number of bytes of a description that are indexed. A longer text gives a tool no advantage in searches.
    pub indexed_description_bytes: usize,
    /// Maximum size of one definition, in bytes. Tools with larger definitions are withheld.
    pub definition_bytes: usize,
    /// Maximum size of one input schema, in bytes. Tools with larger schemas are withheld, because a truncated schema
    /// would be wrong.
    pub schema_bytes: usize,
    /// Maximum nesting depth of one input schema. Tools with deeper schemas are withheld.
    pub schema_depth: usize,
    /// Maximum number of JSON values in one input schema. Tools with more are withheld.
    pub schema_nodes: usize,
    /// Maximum number of values in one `enum`. Tools with a longer `enum` are withheld.
    pub enum_values: usize,
    /// Maximum number of words that are indexed for one tool, in all its fields together.
    pub indexed_words: usize,
    /// Maximum length of a query, in bytes. Longer queries are truncated, and the reply says so.
    pub query_bytes: usize,
    /// Maximum number of distinct words in a query. Further words are ignored, and the reply says so.
    pub query_words: usize,
    /// Maximum number of queries in one call. Further queries are ignored, and the reply says so.
    pub asks: usize,
    /// Maximum number of names in one call. Further names are ignored, and the reply says so.
    pub names: usize,
    /// Maximum length of a `tool_search_regex` pattern, in bytes.
    pub pattern_bytes: usize,
    /// Maximum size of a compiled pattern, in bytes.
    ///
    /// The time to match grows with the size of the compiled pattern times the size of the text. With the default of
    /// the `regex` crate, 10 MiB, a 14-byte pattern needs minutes to search 5,000 tools. With a limit of 256 KiB, such
    /// a pattern is rejected when it is compiled.
    pub pattern_compiled_bytes: usize,
    /// Maximum number of bytes of catalog text that one pattern is matched against. If this limit is reached, the
    /// result is partial.
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
