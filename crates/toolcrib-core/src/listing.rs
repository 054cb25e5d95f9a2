//! The table of contents: what the model sees of the tools it has not loaded.
//!
//! Names must be visible: a model that sees a bare count uses the wrong tool or says that there is
//! none. So the listing keeps as much as its budget allows and degrades in steps: names with their
//! first sentences, names alone, names of the smaller servers with the largest ones folded up, the
//! servers, a count. Groups and names are sorted, so equal catalogs give equal bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ToolId};
use crate::tokens::TokenCounter;
use crate::wire_name;
use toolcrib_text::first_sentence;
use toolcrib_text::json::data;

/// Maximum size of the listing in tokens, if the settings name none: about 150 tools with their sentences,
/// 500 by name.
pub const DEFAULT_TOKENS: usize = 4_000;

/// How much room the listing has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ListingSettings {
    /// The most telling form it may have.
    pub form: ListingForm,
    /// Where it stands.
    #[serde(rename = "place")]
    pub placement: ListingPlacement,
    /// Maximum size in tokens. If not set, [`DEFAULT_TOKENS`], or less where the caller knows better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Maximum share of the context window, in percent, if `tokens` is not set and the window is known.
    pub context_percent: f64,
    /// Characters at most: some clients cut a tool's description.
    pub chars: usize,
    /// Characters of a tool's first sentence.
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

/// Where the listing stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListingPlacement {
    /// In the search tool's description, where it stays as it is for a whole conversation; what
    /// comes later is announced.
    #[default]
    Description,
    /// There too, but made anew each turn, at the price of a changed prompt.
    Fresh,
    /// In a message, as the first announcement: the tools of the request never change then.
    Message,
}

/// How far the listing had to degrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListingForm {
    /// Names and first sentences.
    Full,
    /// Names.
    Names,
    /// Names of some servers, sizes of the others.
    Mixed,
    /// Servers and their sizes.
    Groups,
    /// How many tools there are.
    Count,
    /// No word of them.
    None,
}

/// The listing as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// How far it had to degrade.
    pub form: ListingForm,
    /// The text.
    pub text: String,
    /// Its size.
    pub tokens: usize,
}

impl Listing {
    /// The most telling listing of `ids` that is wanted and fits; `None` where none is wanted.
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
        let room = Room {
            tokens: settings
                .tokens
                .unwrap_or_else(|| share.map_or(DEFAULT_TOKENS, |share| share.min(DEFAULT_TOKENS))),
            chars: settings.chars,
            counter,
        };
        let wanted = |form: ListingForm| settings.form <= form;
        let fits = |form: ListingForm, text: &dyn Fn() -> String| {
            if wanted(form) { room.fits(form, &text()) } else { None }
        };
        let fitting = fits(ListingForm::Full, &|| groups.full(settings.sentence_chars))
            .or_else(|| fits(ListingForm::Names, &|| groups.names()))
            .or_else(|| if wanted(ListingForm::Mixed) { groups.mixed(&room) } else { None })
            .or_else(|| fits(ListingForm::Groups, &|| groups.sizes()));
        Some(fitting.unwrap_or_else(|| {
            // A count always fits: whoever leaves no room for it still needs to know.
            let text = groups.count();
            Self { form: ListingForm::Count, tokens: counter.count(&text), text }
        }))
    }
}

struct Room<'a> {
    tokens: usize,
    chars: usize,
    counter: &'a dyn TokenCounter,
}

impl Room<'_> {
    fn fits(&self, form: ListingForm, text: &str) -> Option<Listing> {
        // No vocabulary has tokens of more than a few dozen characters on tool text; a text far over
        // budget is refused without counting it.
        if text.chars().nth(self.chars).is_some() || text.len() / 32 > self.tokens {
            return None;
        }
        let tokens = self.counter.count(text);
        (tokens <= self.tokens).then(|| Listing { form, text: text.to_owned(), tokens })
    }
}

/// Tools by server, both sorted.
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

    /// Folds up the largest servers, one after the other, until the rest fits.
    ///
    /// Whether it may fit is first told by its length, so that a catalog of a thousand servers is
    /// written out a few times and not a thousand.
    fn mixed(&self, room: &Room<'_>) -> Option<Listing> {
        let open: Vec<String> = self.by_server.iter().map(|(s, ids)| self.line(s, ids)).collect();
        let shut: Vec<String> =
            self.by_server.iter().map(|(s, ids)| folded_line(s, ids.len())).collect();
        let mut largest_first: Vec<usize> = (0..open.len()).collect();
        largest_first.sort_by_key(|i| std::cmp::Reverse(open[*i].len()));
        let mut folded = vec![false; open.len()];
        let mut chars: usize = open.iter().map(|line| line.chars().count()).sum();
        let mut most = room.chars;
        // The last one would make it the next form.
        for &next in largest_first.iter().take(open.len().saturating_sub(1)) {
            folded[next] = true;
            chars = chars + shut[next].chars().count() - open[next].chars().count();
            if chars > most {
                continue;
            }
            let lines = (0..open.len()).map(|i| if folded[i] { &shut[i] } else { &open[i] });
            let text: String = lines.map(String::as_str).collect();
            if let Some(listing) = room.fits(ListingForm::Mixed, &text) {
                return Some(listing);
            }
            // As many characters a token as this text has, and a little less, must do.
            let tokens = room.counter.count(&text).max(1);
            most = (chars * room.tokens / tokens).min(chars.saturating_sub(1));
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

fn folded_line(server: &str, tools: usize) -> String {
    format!("{} ({tools} tools, names not listed)\n", label(server))
}

fn label(server: &str) -> String {
    if server.is_empty() { "other".into() } else { shown_name(&toolcrib_text::shorten(server, 64)) }
}

/// A name as it is where it cannot be mistaken for anything else, quoted otherwise.
fn shown_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    if wire_name::is_valid(name) || name.chars().all(plain) { name.to_owned() } else { data(name) }
}
