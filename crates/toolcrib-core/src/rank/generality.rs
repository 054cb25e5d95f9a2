//! How general a tool is: whether it serves requests about any subject.
//!
//! A web search, a shell or a database serves requests that say nothing about searching, commands or SQL: "train strikes
//! in Italy" names only its subject. So such a request is not similar to any tool. The generality of a tool is its
//! similarity to descriptions of general tools. A general tool gets a bonus, which decides only if no other tool is
//! clearly more similar. If a tool that finds information about any subject comes first, it more likely serves the request.

use toolcrib_embed::FlatIndex;

/// The texts of tools that find information about any subject. All texts have the form of the texts of tools.
const INFORMATION: [&str; 3] = [
    "web search: Search the web for any topic and return the results (query)",
    "search news: Search for news articles about any topic (query)",
    "ask: Ask a large language model any question and return the answer (prompt)",
];
/// The texts of other tools that work on any subject.
const OTHER: [&str; 6] = [
    "fetch url: Fetch a web page or call any HTTP API and return its content (url method)",
    "execute sql: Run a SQL query against the database and return the rows (query)",
    "run command: Run a shell command and return its output (command)",
    "run code: Execute Python code and return its output (code)",
    "create record: Create, find or update a record of any object type (object type fields)",
    "browser: Open a web page in a browser, click and type (url)",
];
/// A tool is general only if its cosine to one of the texts is above this. training/README.md reports the effect of the
/// bonus.
const MIN_COSINE: f32 = 0.45;
/// By how much the cosine must exceed the minimum for the full generality.
const COSINE_RANGE: f32 = 0.15;
/// The bonus of a tool with full generality.
const BONUS: f32 = 0.15;

/// The generality of a tool, from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Generality {
    /// Whether the tool works on any subject.
    pub(super) any: f32,
    /// Whether the tool finds information about any subject.
    pub(super) information: f32,
}

impl Generality {
    /// The texts that a tool is compared with, in the order of the cosines that [`of`](Self::of) takes.
    pub(super) fn texts() -> impl Iterator<Item = &'static str> {
        INFORMATION.into_iter().chain(OTHER)
    }

    /// The generality of each tool. `texts` has the vectors of all [`texts`](Self::texts).
    pub(super) fn of_each(
        tools: &FlatIndex,
        texts: &[toolcrib_embed::QuantisedVector],
    ) -> Box<[Self]> {
        let mut all = vec![Self::default(); tools.len()];
        let mut cosines = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            tools.scan(text, &mut cosines);
            for (tool, cosine) in all.iter_mut().zip(&cosines) {
                let value = ((cosine - MIN_COSINE) / COSINE_RANGE).clamp(0.0, 1.0);
                tool.any = tool.any.max(value);
                if at < INFORMATION.len() {
                    tool.information = tool.information.max(value);
                }
            }
        }
        all.into()
    }

    /// The bonus that the tool gets.
    pub(super) fn bonus(self) -> f32 {
        BONUS * self.any
    }
}
