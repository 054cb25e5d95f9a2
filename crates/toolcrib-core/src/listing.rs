//! The listing: what the model sees of the tools that it has not loaded.
//!
//! Names must be visible, because a model that only sees a count uses the wrong tool or says that there is none. So the
//! listing keeps as much detail as its budget allows. The forms, from the most to the least detailed:
//!
//! - the name of each tool with the first sentence of its description;
//! - the names of the tools;
//! - the names of the tools of smaller servers, and only the number of tools of larger ones;
//! - the servers, each with its number of tools;
//! - the total number of tools.
//!
//! Servers and names are sorted, so equal catalogs give equal bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ToolId};
use crate::tokens::TokenCounter;
use crate::wire_name;
use toolcrib_text::first_sentence;
use toolcrib_text::json::data;

/// Default maximum size of the listing, in tokens. About 150 tools with their first sentences fit, or 500 names.
pub const DEFAULT_TOKENS: usize = 4_000;

/// How and where the listing is written, and its maximum size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ListingSettings {
    /// The most detailed form that the listing may have.
    pub form: ListingForm,
    /// Where the listing is placed.
    #[serde(rename = "place")]
    pub placement: ListingPlacement,
    /// Maximum size of the listing in tokens. If it is not set, the proxy computes a maximum from the size of the
    /// tools. Elsewhere, the maximum is then [`DEFAULT_TOKENS`], or less if the context window is small.
    #[cfg_attr(
        feature = "schema",
        schemars(
            description = "Maximum size of the listing in tokens. Default: computed by the proxy from the size of the tools, elsewhere 4,000, or less if the context window is small."
        )
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Maximum size of the listing as a percentage of the context window. It applies if `tokens` is not set and the
    /// window is known.
    pub context_percent: f64,
    /// Maximum length of the listing in characters. It exists because some clients truncate tool descriptions.
    pub chars: usize,
    /// Maximum length of the sentence that is shown for a tool, in characters.
    pub sentence_chars: usize,
}

impl Default for ListingSettings {
    fn default() -> Self {
        Self {
            form: ListingForm::Full,
            placement: ListingPlacement::Description,
            tokens: None,
            context_percent: 5.0,
            chars: 16_000,
            sentence_chars: 80,
        }
    }
}

/// Where the listing is placed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListingPlacement {
    /// In the search tool's description. The listing does not change during a conversation; tools that are added later
    /// are announced in a message.
    #[default]
    Description,
    /// In the search tool's description. The listing is written again each turn, which can invalidate the cached
    /// prompt.
    Fresh,
    /// In a message, which is the first announcement. A change of the listing then leaves the array of tools unchanged.
    Message,
}

/// How detailed the listing is. The variants are ordered from the most to the least detailed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListingForm {
    /// The names of the tools, with the first sentence of each description.
    Full,
    /// The names of the tools.
    Names,
    /// The names of the tools of some servers, and only the number of tools of the other servers.
    Mixed,
    /// The servers, each with its number of tools.
    Groups,
    /// The total number of tools.
    Count,
    /// There is no listing.
    None,
}

/// A listing of deferred tools.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// How detailed the listing is.
    pub form: ListingForm,
    /// The text of the listing.
    pub text: String,
    /// The size of the listing in tokens.
    pub tokens: usize,
}

impl Listing {
    /// Writes the most detailed listing of `ids` that the settings allow and that fits the budget. Returns `None` if
    /// the settings disable the listing.
    pub fn fit(
        catalog: &Catalog,
        ids: impl IntoIterator<Item = ToolId>,
        settings: &ListingSettings,
        context: Option<usize>,
        counter: &dyn TokenCounter,
    ) -> Option<Self> {
        if settings.form == ListingForm::None {
            return None;
        }
        let groups = Groups::of(catalog, ids);
        let share =
            context.map(|window| (window as f64 * settings.context_percent / 100.0) as usize);
        let budget = Budget {
            tokens: settings
                .tokens
                .unwrap_or_else(|| share.map_or(DEFAULT_TOKENS, |share| share.min(DEFAULT_TOKENS))),
            chars: settings.chars,
            counter,
        };
        let wanted = |form: ListingForm| settings.form <= form;
        let fits = |form: ListingForm, text: &dyn Fn() -> String| {
            if wanted(form) { budget.fits(form, &text()) } else { None }
        };
        let fitting = fits(ListingForm::Full, &|| groups.full(settings.sentence_chars))
            .or_else(|| fits(ListingForm::Names, &|| groups.names()))
            .or_else(|| if wanted(ListingForm::Mixed) { groups.mixed(&budget) } else { None })
            .or_else(|| fits(ListingForm::Groups, &|| groups.sizes()));
        Some(fitting.unwrap_or_else(|| {
            // The count is returned even if it does not fit the budget, because the model must know that there are
            // tools.
            let text = groups.count();
            Self { form: ListingForm::Count, tokens: counter.count(&text), text }
        }))
    }
}

struct Budget<'a> {
    tokens: usize,
    chars: usize,
    counter: &'a dyn TokenCounter,
}

impl Budget<'_> {
    fn fits(&self, form: ListingForm, text: &str) -> Option<Listing> {
        // No tokenizer has tokens of more than a few dozen bytes for names and sentences. So a text that is far over
        // the budget is rejected without counting its tokens, which is slow.
        if text.chars().nth(self.chars).is_some() || text.len() / 32 > self.tokens {
            return None;
        }
        let tokens = self.counter.count(text);
        (tokens <= self.tokens).then(|| Listing { form, text: text.to_owned(), tokens })
    }
}

/// Tools grouped by server. Servers and tools are sorted by name.
struct Groups<'a> {
    catalog: &'a Catalog,
    by_server: BTreeMap<&'a str, Vec<ToolId>>,
    total: usize,
}

impl<'a> Groups<'a> {
    fn of(catalog: &'a Catalog, ids: impl IntoIterator<Item = ToolId>) -> Self {
        let mut by_server: BTreeMap<&str, Vec<ToolId>> = BTreeMap::new();
        let mut total = 0;
        for id in ids {
            by_server.entry(catalog.tool(id).server().unwrap_or_default()).or_default().push(id);
            total += 1;
        }
        for ids in by_server.values_mut() {
            ids.sort_unstable_by_key(|id| catalog.tool(*id).name());
        }
        Self { catalog, by_server, total }
    }

    fn full(&self, sentence_chars: usize) -> String {
        let mut text = String::new();
        for (server, ids) in &self.by_server {
            let _ = writeln!(text, "{} ({}):", label(server), ids.len());
            for id in ids {
                let tool = self.catalog.tool(*id);
                let sentence = first_sentence(tool.description(), sentence_chars);
                let _ = match sentence.as_str() {
                    "" => writeln!(text, "- {}", shown_name(tool.name())),
                    some => writeln!(text, "- {}: {}", shown_name(tool.name()), data(some)),
                };
            }
        }
        text
    }

    fn names(&self) -> String {
        self.by_server.iter().map(|(server, ids)| self.line(server, ids)).collect()
    }

    /// Returns a listing that names the tools of some servers and only counts the tools of the others. Servers are
    /// changed from names to a count one by one, the server with the longest line first, until the text fits. Returns
    /// `None` if no such listing fits.
    ///
    /// Counting tokens is slow, so the length of a text is used to estimate whether it may fit. That way, only a few
    /// texts are counted even if the catalog has a thousand servers.
    fn mixed(&self, budget: &Budget<'_>) -> Option<Listing> {
        let expanded: Vec<String> =
            self.by_server.iter().map(|(s, ids)| self.line(s, ids)).collect();
        let collapsed: Vec<String> =
            self.by_server.iter().map(|(s, ids)| collapsed_line(s, ids.len())).collect();
        let mut largest_first: Vec<usize> = (0..expanded.len()).collect();
        largest_first.sort_by_key(|i| std::cmp::Reverse(expanded[*i].len()));
        let mut is_collapsed = vec![false; expanded.len()];
        let mut chars: usize = expanded.iter().map(|line| line.chars().count()).sum();
        let mut max_chars = budget.chars;
        // At least one server keeps its names. If every server were collapsed, the text would be the next form,
        // `Groups`.
        for &next in largest_first.iter().take(expanded.len().saturating_sub(1)) {
            is_collapsed[next] = true;
            chars = chars + collapsed[next].chars().count() - expanded[next].chars().count();
            if chars > max_chars {
                continue;
            }
            let lines = (0..expanded.len())
                .map(|i| if is_collapsed[i] { &collapsed[i] } else { &expanded[i] });
            let text: String = lines.map(String::as_str).collect();
            if let Some(listing) = budget.fits(ListingForm::Mixed, &text) {
                return Some(listing);
            }
            // Uses this text's ratio of characters to tokens to estimate how short the next text must be to fit.
            let tokens = budget.counter.count(&text).max(1);
            max_chars = (chars * budget.tokens / tokens).min(chars.saturating_sub(1));
        }
        None
    }

    fn line(&self, server: &str, ids: &[ToolId]) -> String {
        let names: Vec<_> =
            ids.iter().map(|id| shown_name(self.catalog.tool(*id).name())).collect();
        format!("{} ({}): {}\n", label(server), ids.len(), names.join(", "))
    }

    fn sizes(&self) -> String {
        let sizes: Vec<_> = self
            .by_server
            .iter()
            .map(|(server, ids)| format!("{} ({})", label(server), ids.len()))
            .collect();
        format!("Servers and how many tools each has: {}\n", sizes.join(", "))
    }

    fn count(&self) -> String {
        let tools = if self.total == 1 { "tool" } else { "tools" };
        match self.by_server.keys().filter(|server| !server.is_empty()).count() {
            0 => format!("{} {tools}.\n", self.total),
            1 => format!("{} {tools} on 1 server.\n", self.total),
            servers => format!("{} {tools} on {servers} servers.\n", self.total),
        }
    }
}

fn collapsed_line(server: &str, tools: usize) -> String {
    format!("{} ({tools} tools, names not listed)\n", label(server))
}

fn label(server: &str) -> String {
    if server.is_empty() { "other".into() } else { shown_name(&toolcrib_text::shorten(server, 64)) }
}

/// The name as written in the listing. It is quoted if it has characters that could be mistaken for other text.
fn shown_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    if wire_name::is_valid(name) || name.chars().all(plain) { name.to_owned() } else { data(name) }
}
