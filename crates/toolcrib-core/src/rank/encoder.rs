//! Uses the encoder of `toolcrib-embed` for deep vectors.

use std::ops::Range;

use toolcrib_embed::{Encoder, GeneralTypes, QuantisedVector, Vector};

use super::deep_vectors::{EncodedQuery, TextEncoder};

/// Maximum number of tokens of a tool's text, including two special ones. The encoder was trained with this limit.
const TOOL_TOKENS: usize = 112;
/// Maximum number of tokens of a query, including two special ones: the limit of requests with several needs in training.
const QUERY_TOKENS: usize = 128;

impl TextEncoder for Encoder {
    fn dims(&self) -> usize {
        self.dims()
    }

    fn id(&self) -> [u8; 16] {
        *self.id()
    }

    fn embed_tool(&self, text: &str) -> QuantisedVector {
        self.embed(text, TOOL_TOKENS, &[]).whole.quantised()
    }

    fn embed_query(&self, text: &str, needs: &[Range<usize>]) -> Option<EncodedQuery> {
        if !knows_script(text) {
            return None;
        }
        let encoded = self.embed(text, QUERY_TOKENS, needs);
        let quantised = |vector: &Option<Vector>| vector.as_ref().map(Vector::quantised);
        let needs = encoded.parts.iter().map(quantised).collect();
        Some(EncodedQuery { whole: encoded.whole.quantised(), needs })
    }

    fn general_types(&self) -> Option<&GeneralTypes> {
        Some(self.general_types())
    }
}

/// Whether at least half of the letters are Latin or Cyrillic. The encoder was trained on English. Measured on queries in
/// other languages (training/README.md), it is better than the table for languages in Latin script, about equal in
/// Cyrillic, and worse in other scripts if the tools are described in the same language.
fn knows_script(text: &str) -> bool {
    let is_known = |c: &char| matches!(c, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{400}'..='\u{52f}' | '\u{1e00}'..='\u{1eff}');
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (known, all) = letters
        .fold((0_usize, 0_usize), |(known, all), c| (known + usize::from(is_known(&c)), all + 1));
    2 * known >= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_known_by_the_script_of_most_of_its_letters() {
        for text in
            ["", "42", "list issues", "Größe ändern", "удали файлы", "查 open issues", "Ưu tiên"]
        {
            assert!(knows_script(text), "{text}");
        }
        for text in
            ["查询天气", "メールを送信 API", "पाठ का अनुवाद", "احذف الملفات", "이메일 보내줘"]
        {
            assert!(!knows_script(text), "{text}");
        }
    }
}
