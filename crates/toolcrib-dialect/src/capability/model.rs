//! What a model's id says, whoever wrote it.
//!
//! One model goes by many ids: a vendor before it, a region, an ARN around it, a date or a window
//! behind it, `4.5` or `4-5`. All become one normal form, with the family and the version read as
//! numbers, so that a rule is a comparison and not a list of spellings.

use std::fmt;

/// Families whose versions decide what is native.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Claude Opus.
    Opus,
    /// Claude Sonnet.
    Sonnet,
    /// Claude Haiku.
    Haiku,
    /// Claude Fable.
    Fable,
    /// Claude Mythos.
    Mythos,
    /// GPT.
    Gpt,
    /// Any other, or an id that says too little.
    Other,
}

impl Family {
    fn claude(word: &str) -> Option<Self> {
        Some(match word {
            "opus" => Self::Opus,
            "sonnet" => Self::Sonnet,
            "haiku" => Self::Haiku,
            "fable" => Self::Fable,
            "mythos" => Self::Mythos,
            _ => return None,
        })
    }
}

/// A model, by its normal form. Two ids with one normal form are one model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Model {
    id: String,
    family: Family,
    version: Option<(u16, u16)>,
}

impl Model {
    /// The normal form: `claude-opus-4-5`, `gpt-5.4-mini`, and what is left of any other id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Major and minor version, where the family has one.
    pub fn version(&self) -> Option<(u16, u16)> {
        self.version
    }

    /// Whether the version is this one or a later one.
    pub(super) fn since(&self, major: u16, minor: u16) -> bool {
        self.version.is_some_and(|version| version >= (major, minor))
    }

    /// Whether a word stands in the id, between its dashes.
    pub(super) fn has(&self, word: &str) -> bool {
        self.id.split('-').any(|part| part == word)
    }

    fn other(id: &str) -> Self {
        Self { id: id.to_owned(), family: Family::Other, version: None }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// The normal form of a model's id.
///
/// ```
/// use toolcrib_dialect::capability::normalise;
/// assert_eq!(normalise("us.anthropic.claude-opus-4-5-20251101-v1:0").id(), "claude-opus-4-5");
/// assert_eq!(normalise("anthropic/claude-opus-4.5").id(), "claude-opus-4-5");
/// assert_eq!(normalise("openai/gpt-5-4-mini").version(), Some((5, 4)));
/// ```
pub fn normalise(model: &str) -> Model {
    let id = stripped(model);
    claude(&id).or_else(|| gpt(&id)).unwrap_or_else(|| Model::other(&id))
}

/// What clouds and gateways put before a name, a dot after it.
const PREFIXES: [&str; 10] =
    ["anthropic.", "openai.", "global.", "us.", "eu.", "apac.", "jp.", "au.", "ca.", "us-gov."];

/// The id without what is not the model. The steps go on until none finds anything to do: what comes
/// out goes in and comes out again.
fn stripped(model: &str) -> String {
    let mut id = model.to_ascii_lowercase();
    loop {
        id = if id.starts_with("claude") && id.contains('.') {
            id.replace('.', "-")
        } else if let Some(shorter) = shorter(&id) {
            shorter.to_owned()
        } else {
            return id;
        };
    }
}

fn shorter(id: &str) -> Option<&str> {
    let trimmed = id.trim_matches(|c: char| c == '-' || c == '/' || c.is_whitespace());
    if trimmed.len() < id.len() {
        return Some(trimmed);
    }
    // An ARN ends in the id, after a slash where it has one; a fine-tune has its base model first.
    for prefix in ["arn:", "ft:"] {
        if let Some(rest) = id.strip_prefix(prefix) {
            return Some(rest.rsplit_once('/').map_or(rest, |(_, last)| last));
        }
    }
    if let Some((_, last)) = id.rsplit_once('/') {
        return Some(last);
    }
    // A revision, a tier or a window.
    if let Some(at) = id.find(['@', ':', '[']) {
        return Some(&id[..at]);
    }
    if let Some(rest) = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix)) {
        return Some(rest);
    }
    id.strip_suffix("-latest").or_else(|| without_date(id)).or_else(|| without_revision(id))
}

/// Without `-20251101` or `-2025-11-01` at its end.
fn without_date(id: &str) -> Option<&str> {
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let (rest, last) = id.rsplit_once('-')?;
    if digits(last, 8) && last.starts_with("20") {
        return Some(rest);
    }
    let (rest, month) = rest.rsplit_once('-').filter(|_| digits(last, 2))?;
    let (rest, year) = rest.rsplit_once('-').filter(|_| digits(month, 2))?;
    (digits(year, 4) && year.starts_with("20")).then_some(rest)
}

/// Without the `-v1` that Bedrock puts behind a Claude.
fn without_revision(id: &str) -> Option<&str> {
    let (rest, last) = id.rsplit_once('-').filter(|_| id.starts_with("claude-"))?;
    let number = last.strip_prefix('v')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
}

/// A number of a version: one or two digits. Longer ones are dates and sizes.
fn number(word: &str) -> Option<u16> {
    let short = matches!(word.len(), 1 | 2) && word.bytes().all(|b| b.is_ascii_digit());
    short.then(|| word.parse().ok()).flatten()
}

/// `claude-opus-4-5-…`, or with the numbers before the family as the older ones had them.
fn claude(id: &str) -> Option<Model> {
    let rest = id.strip_prefix("claude-")?;
    let words: Vec<&str> = rest.split('-').collect();
    let at = words.iter().position(|word| Family::claude(word).is_some())?;
    let family = Family::claude(words[at])?;
    let before = &words[..at];
    let after = &words[at + 1..];
    let count = after.iter().take_while(|word| number(word).is_some()).count();
    let (numbers, more) = match (before.len(), count) {
        (0, 0..=2) => (&after[..count], &after[count..]),
        (1..=2, 0) if before.iter().all(|word| number(word).is_some()) => (before, after),
        _ => return None,
    };
    let mut numbers = numbers.iter().filter_map(|word| number(word));
    let version = numbers.next().map(|major| (major, numbers.next().unwrap_or(0)));
    let name = words[at];
    let id = match version {
        Some((major, 0)) => format!("claude-{name}-{major}"),
        Some((major, minor)) => format!("claude-{name}-{major}-{minor}"),
        None => format!("claude-{name}"),
    };
    Some(Model { id: with_words(id, more), family, version })
}

/// `gpt-5.4-…`, with a dash for the dot where somebody had no dots.
fn gpt(id: &str) -> Option<Model> {
    let words: Vec<&str> = id.strip_prefix("gpt-")?.split('-').collect();
    let (first, mut more) = words.split_first()?;
    let version = match (first.split_once('.'), number(first)) {
        (Some((major, minor)), _) => (number(major)?, number(minor)?),
        // Azure's 3.5, which must not pass for the thirty-fifth.
        (None, Some(35)) => (3, 5),
        (None, Some(major)) => match more.first().and_then(|word| number(word)) {
            Some(minor) => {
                more = &more[1..];
                (major, minor)
            }
            None => (major, 0),
        },
        (None, None) => return None,
    };
    // A third number is nothing we know.
    if more.first().is_some_and(|word| number(word).is_some()) {
        return None;
    }
    let id = match version {
        (major, 0) => format!("gpt-{major}"),
        (major, minor) => format!("gpt-{major}.{minor}"),
    };
    Some(Model { id: with_words(id, more), family: Family::Gpt, version: Some(version) })
}

fn with_words(mut id: String, words: &[&str]) -> String {
    for word in words {
        id.push('-');
        id.push_str(word);
    }
    id
}
