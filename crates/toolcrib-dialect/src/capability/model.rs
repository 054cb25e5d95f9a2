//! Normalises model ids.
//!
//! One model has many ids: with a vendor or a region as a prefix, inside an ARN, with a date or a context window as a
//! suffix, with `4.5` or `4-5`. All of them are reduced to one normal form, with the family and the version parsed, so
//! that a rule can compare versions instead of listing spellings.

/// The model families that the built-in rules distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ModelFamily {
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
    /// Any other family, or an id without a family.
    Other,
}

impl ModelFamily {
    fn from_claude_word(word: &str) -> Option<Self> {
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

/// A normalised model id. Two ids with the same normal form refer to the same model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ModelId {
    id: String,
    family: ModelFamily,
    version: Option<(u16, u16)>,
}

impl ModelId {
    /// Returns the normal form, such as `claude-opus-4-5` or `gpt-5.4-mini`. For an id of any other family, this is the
    /// id without prefixes and suffixes.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn family(&self) -> ModelFamily {
        self.family
    }

    /// Returns the major and the minor version number, or `None` if the id contains no version.
    pub(super) fn version(&self) -> Option<(u16, u16)> {
        self.version
    }

    /// Whether the version is `major.minor` or later. `false` if the id contains no version.
    pub(super) fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.version.is_some_and(|version| version >= (major, minor))
    }

    /// Whether one of the words between the id's dashes is `word`.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.id.split('-').any(|part| part == word)
    }

    fn other(id: &str) -> Self {
        Self { id: id.to_owned(), family: ModelFamily::Other, version: None }
    }
}

/// Normalises a model id: `us.anthropic.claude-opus-4-5-20251101-v1:0` and `anthropic/claude-opus-4.5` both become
/// `claude-opus-4-5`.
pub(crate) fn normalise_model(model: &str) -> ModelId {
    let id = stripped(model);
    parse_claude(&id).or_else(|| parse_gpt(&id)).unwrap_or_else(|| ModelId::other(&id))
}

/// Prefixes that clouds and gateways add, each including its dot.
const PREFIXES: [&str; 10] =
    ["anthropic.", "openai.", "global.", "us.", "eu.", "apac.", "jp.", "au.", "ca.", "us-gov."];

/// Removes everything from an id that does not identify the model. The steps repeat until none of them changes
/// anything, so the result is a fixed point.
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
    // An ARN ends with the model's id, after the last slash if there is one. In the id of a fine-tuned model, the base
    // model comes directly after `ft:`.
    for prefix in ["arn:", "ft:"] {
        if let Some(rest) = id.strip_prefix(prefix) {
            return Some(rest.rsplit_once('/').map_or(rest, |(_, last)| last));
        }
    }
    if let Some((_, last)) = id.rsplit_once('/') {
        return Some(last);
    }
    // Everything after one of these characters is a revision, a service tier or a context window.
    if let Some(at) = id.find(['@', ':', '[']) {
        return Some(&id[..at]);
    }
    if let Some(rest) = PREFIXES.iter().find_map(|prefix| id.strip_prefix(prefix)) {
        return Some(rest);
    }
    id.strip_suffix("-latest").or_else(|| without_date(id)).or_else(|| without_revision(id))
}

/// Removes a date such as `-20251101` or `-2025-11-01` from the end. Returns `None` if the id does not end with a date.
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

/// Removes a revision such as `-v1`, which Bedrock appends to the ids of Claude models. Returns `None` if there is
/// none.
fn without_revision(id: &str) -> Option<&str> {
    let (rest, last) = id.rsplit_once('-').filter(|_| id.starts_with("claude-"))?;
    let number = last.strip_prefix('v')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
}

/// Parses a version number of one or two digits. Longer numbers are dates and sizes.
fn version_number(word: &str) -> Option<u16> {
    let short = matches!(word.len(), 1 | 2) && word.bytes().all(|b| b.is_ascii_digit());
    short.then(|| word.parse().ok()).flatten()
}

/// Parses `claude-opus-4-5-…`, or an older id that has its numbers before the family, such as `claude-3-5-sonnet`.
fn parse_claude(id: &str) -> Option<ModelId> {
    let rest = id.strip_prefix("claude-")?;
    let words: Vec<&str> = rest.split('-').collect();
    let at = words.iter().position(|word| ModelFamily::from_claude_word(word).is_some())?;
    let family = ModelFamily::from_claude_word(words[at])?;
    let before = &words[..at];
    let after = &words[at + 1..];
    let count = after.iter().take_while(|word| version_number(word).is_some()).count();
    let (numbers, more) = match (before.len(), count) {
        (0, 0..=2) => (&after[..count], &after[count..]),
        (1..=2, 0) if before.iter().all(|word| version_number(word).is_some()) => (before, after),
        _ => return None,
    };
    let mut numbers = numbers.iter().filter_map(|word| version_number(word));
    let version = numbers.next().map(|major| (major, numbers.next().unwrap_or(0)));
    let name = words[at];
    let id = match version {
        Some((major, 0)) => format!("claude-{name}-{major}"),
        Some((major, minor)) => format!("claude-{name}-{major}-{minor}"),
        None => format!("claude-{name}"),
    };
    Some(ModelId { id: with_suffixes(id, more), family, version })
}

/// Parses `gpt-5.4-…`. Some services write a dash instead of the dot.
fn parse_gpt(id: &str) -> Option<ModelId> {
    let words: Vec<&str> = id.strip_prefix("gpt-")?.split('-').collect();
    let (first, mut more) = words.split_first()?;
    let version = match (first.split_once('.'), version_number(first)) {
        (Some((major, minor)), _) => (version_number(major)?, version_number(minor)?),
        // Azure writes 3.5 as 35.
        (None, Some(35)) => (3, 5),
        (None, Some(major)) => match more.first().and_then(|word| version_number(word)) {
            Some(minor) => {
                more = &more[1..];
                (major, minor)
            }
            None => (major, 0),
        },
        (None, None) => return None,
    };
    // An id with three numbers has an unknown form, so its version is not parsed.
    if more.first().is_some_and(|word| version_number(word).is_some()) {
        return None;
    }
    let id = match version {
        (major, 0) => format!("gpt-{major}"),
        (major, minor) => format!("gpt-{major}.{minor}"),
    };
    Some(ModelId { id: with_suffixes(id, more), family: ModelFamily::Gpt, version: Some(version) })
}

fn with_suffixes(mut id: String, words: &[&str]) -> String {
    for word in words {
        id.push('-');
        id.push_str(word);
    }
    id
}
