//! Splits text, including identifiers, into words in lower case.
//!
//! Tool names are code and descriptions are prose, often mixed in one sentence, so one splitter handles both.
//! `create_issue`, `createIssue`, `create-issue` and "create issue" are the same two words. `HTTPServer` is `http` and
//! `server`. `base64` is `base` and `64`, while `s3`, `mp3` and `2fa` are not split, because one or two letters alone
//! carry no meaning. Text in scripts without spaces between words becomes overlapping pairs of characters.

use unicode_normalization::UnicodeNormalization;

/// How the splitter treats a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Lower,
    Upper,
    Digit,
    /// A letter of a script that is written without spaces between words.
    Unspaced,
    Other,
}

fn class(c: char) -> CharClass {
    match c {
        'a'..='z' => CharClass::Lower,
        'A'..='Z' => CharClass::Upper,
        '0'..='9' => CharClass::Digit,
        _ if c.is_ascii() => CharClass::Other,
        _ if is_unspaced(c) => CharClass::Unspaced,
        _ if c.is_uppercase() => CharClass::Upper,
        _ if c.is_numeric() => CharClass::Digit,
        _ if c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c) => {
            CharClass::Lower
        }
        _ => CharClass::Other,
    }
}

/// Whether a character is Thai, Lao, Myanmar, Khmer, kana, Han or Hangul, including half-width forms.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Calls `visit` with every word of `text`, in order, in lower case and without accents.
pub(crate) fn each(text: &str, visit: &mut impl FnMut(&str)) {
    if text.is_ascii() {
        return each_ascii(text, visit);
    }
    for run in text.split(|c: char| class(c) == CharClass::Other) {
        if run.is_ascii() {
            each_ascii(run, visit);
        } else {
            each_unicode(run, visit);
        }
    }
}

/// Does the same as [`each`], but faster and only for ASCII. Nearly all text in catalogs is ASCII.
fn each_ascii(text: &str, visit: &mut impl FnMut(&str)) {
    let mut folded = String::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        // A run of lower-case letters, possibly after one capital letter, need not be split.
        at += 1;
        while at < bytes.len() && bytes[at].is_ascii_lowercase() {
            at += 1;
        }
        let simple = bytes[start].is_ascii_alphabetic();
        let ended = at == bytes.len() || !bytes[at].is_ascii_alphanumeric();
        if simple && ended {
            folded.clear();
            folded.push_str(&text[start..at]);
            folded.make_ascii_lowercase();
            visit(&folded);
            continue;
        }
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        split_run(&text[start..at], |piece| {
            folded.clear();
            folded.push_str(piece);
            folded.make_ascii_lowercase();
            visit(&folded);
        });
    }
}

/// All folded words of `text`.
pub(crate) fn all(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each(text, &mut |word| words.push(word.to_owned()));
    words
}

/// The folded words of a name, joined by `_`.
pub(crate) fn fold_name(name: &str) -> String {
    all(name).join("_")
}

fn each_unicode(run: &str, visit: &mut impl FnMut(&str)) {
    // Compatibility forms are normalised first: full-width Latin becomes Latin, and half-width kana becomes kana.
    let run: String = run.nfkc().collect();
    let mut rest = run.as_str();
    while let Some(first) = rest.chars().next() {
        let pairs = class(first) == CharClass::Unspaced;
        let end = rest.find(|c| (class(c) == CharClass::Unspaced) != pairs).unwrap_or(rest.len());
        let (part, tail) = rest.split_at(end);
        rest = tail;
        if pairs {
            each_pair(part, visit);
        } else {
            split_run(part, |piece| visit(&fold(piece)));
        }
    }
}

fn each_pair(run: &str, visit: &mut impl FnMut(&str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    if starts.len() < 3 {
        return visit(run);
    }
    for i in 0..starts.len() - 1 {
        visit(&run[starts[i]..starts.get(i + 2).copied().unwrap_or(run.len())]);
    }
}

/// Converts to lower case and removes Latin accents, so that `cafe` finds `Café`.
fn fold(word: &str) -> String {
    word.nfkd()
        .filter(|c| !('\u{300}'..='\u{36f}').contains(c))
        .flat_map(char::to_lowercase)
        .filter(|c| c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(*c))
        .collect()
}

/// Splits a run of letters and digits at camel-case boundaries, at the ends of acronyms, and between letters and
/// digits.
fn split_run(run: &str, mut visit: impl FnMut(&str)) {
    if run.is_empty() {
        return;
    }
    let mut start = 0;
    let mut chars = run.char_indices().peekable();
    let mut before = CharClass::Other;
    while let Some((at, c)) = chars.next() {
        let here = class(c);
        let next = chars.peek().map(|(_, c)| class(*c));
        let hump =
            matches!(before, CharClass::Lower | CharClass::Digit) && here == CharClass::Upper;
        let acronym_end = before == CharClass::Upper
            && here == CharClass::Upper
            && next == Some(CharClass::Lower);
        let digits = (before == CharClass::Digit) != (here == CharClass::Digit)
            && before != CharClass::Other
            && splits_at_digit(&run[start..], at - start);
        if at > start && (hump || acronym_end || digits) {
            visit(&run[start..at]);
            start = at;
        }
        before = here;
    }
    visit(&run[start..]);
}

/// Whether a piece is split at `at`, where letters and digits meet. It is split only if there are more than two
/// letters.
fn splits_at_digit(piece: &str, at: usize) -> bool {
    let is_digit = |c: char| class(c) == CharClass::Digit;
    let after = &piece[at..];
    let digit_first = piece.starts_with(is_digit);
    let after_len = if digit_first {
        after.find(|c| class(c) != CharClass::Lower).unwrap_or(after.len())
    } else {
        usize::MAX
    };
    let letters = if digit_first { after_len } else { at };
    letters > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_in_every_style_are_the_same_words() {
        for name in ["create_issue", "createIssue", "create-issue", "Create.Issue", "CREATE_ISSUE"]
        {
            assert_eq!(all(name), ["create", "issue"], "{name}");
        }
        assert_eq!(
            all("mcp__github__list_pullRequests"),
            ["mcp", "github", "list", "pull", "requests"]
        );
        assert_eq!(all("getHTTPServerURL"), ["get", "http", "server", "url"]);
    }

    #[test]
    fn digits_are_split_from_words_but_not_from_one_or_two_letters() {
        assert_eq!(
            all("base64 top10 utf8Decode"),
            ["base", "64", "top", "10", "utf", "8", "decode"]
        );
        assert_eq!(
            all("s3 mp3 ec2 2fa v2Beta 64bit"),
            ["s3", "mp3", "ec2", "2fa", "v2", "beta", "64", "bit"]
        );
    }

    #[test]
    fn accents_and_character_widths_are_folded() {
        assert_eq!(all("Café ＡＰＩ naïve Über"), ["cafe", "api", "naive", "uber"]);
        assert_eq!(all("ПоискФайлов"), ["поиск", "фаилов"]);
    }

    #[test]
    fn scripts_without_spaces_become_pairs_of_characters() {
        assert_eq!(all("搜索工具 API"), ["搜索", "索工", "工具", "api"]);
        assert_eq!(all("天気"), ["天気"]);
        assert_eq!(all("ファイル"), ["ファ", "ァイ", "イル"]);
    }
}
