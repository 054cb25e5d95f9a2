//! Finds the known name that a misspelled one probably means, such as a key of a config or a parameter of a tool.
//!
//! All readers of a config use [`did_you_mean`], so that a misspelled key gets a suggestion in every section.

/// Maximum length of a key that is compared with the known keys, in characters. No known key is longer.
const MAX_CHARS: usize = 64;

/// Returns the known name that is meant in an error message of serde about an unknown field or an unknown variant, or
/// `None` if no known name is similar.
///
/// ```
/// let message = "unknown field `comand`, expected one of `command`, `args`";
/// assert_eq!(toolcrib_text::did_you_mean(message), Some("command"));
/// ```
pub fn did_you_mean(message: &str) -> Option<&str> {
    let lead = ["unknown field `", "unknown variant `"];
    let rest = lead.into_iter().find_map(|lead| message.strip_prefix(lead))?;
    // The unknown name may contain this separator, but known names never do. So the last occurrence is the real one.
    let (unknown, known) = rest.rsplit_once("`, expected ")?;
    nearest_spelling(unknown, known.split('`').skip(1).step_by(2))
}

/// Returns the most similar of the known names: at most a third of its characters may differ. Case and separators are
/// ignored. If several are equally similar, the first is returned.
pub fn nearest_spelling<'k>(
    unknown: &str,
    known: impl Iterator<Item = &'k str>,
) -> Option<&'k str> {
    let unknown = folded(unknown);
    if unknown.is_empty() || unknown.len() > MAX_CHARS {
        return None;
    }
    let most = unknown.len() / 3;
    let candidates = known.map(|name| (distance(&unknown, &folded(name)), name));
    let near = candidates.filter(|(distance, _)| *distance <= most);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn folded(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The number of characters to insert, delete, replace or swap with their neighbour to turn one text into the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(from != to);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_typos() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("command", "command", 0),
            ("comand", "command", 1),
            ("idel", "idle", 1),
            ("prxoy", "proxy", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(&folded(a), &folded(b)), expected, "{a} {b}");
            assert_eq!(distance(&folded(b), &folded(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn a_similar_name_is_suggested_and_no_other() {
        for (message, expected) in [
            ("unknown field `idel`, expected one of `env`, `idle`, `url`", Some("idle")),
            (
                "unknown field `callTimeout`, expected `start_timeout` or `call_timeout`",
                Some("call_timeout"),
            ),
            ("unknown field `uri`, expected `url`", Some("url")),
            ("unknown field `x`, expected one of `env`, `url`", None),
            ("unknown field `weather`, expected one of `env`, `url`", None),
            ("unknown field `-`, expected `url`", None),
            ("unknown field `a`, there are no fields", None),
            ("unknown field `a`, expected `b`, expected `url`", None),
            ("unknown variant `eagr`, expected `lazy` or `eager`", Some("eager")),
            ("invalid type: map, expected a string", None),
        ] {
            assert_eq!(did_you_mean(message), expected, "{message}");
        }
    }
}
