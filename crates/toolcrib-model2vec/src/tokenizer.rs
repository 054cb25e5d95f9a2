//! The tokenizer of a published table.

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::Error;
use crate::tensors::TENSORS_FILE;

/// The name of the file with the tokenizer.
const TOKENIZER_FILE: &str = "tokenizer.json";

/// A tokenizer that was read from a `tokenizer.json`.
pub(crate) struct FileTokenizer {
    tokenizer: Tokenizer,
    /// The token for text that is not in the vocabulary. It is skipped, because its vector carries no meaning.
    unknown: Option<u32>,
}

impl FileTokenizer {
    /// Parses a `tokenizer.json`. Fails if the id of a token is not below `tokens`, because such a token has no row.
    pub(crate) fn parse(json: &[u8], tokens: usize) -> Result<Self, Error> {
        let invalid = |error: tokenizers::Error| format_error(error.to_string());
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(invalid)?;
        // MiniLM's file configures truncation and padding to exactly 128 tokens, so both are turned off.
        tokenizer.with_truncation(None).map_err(invalid)?;
        tokenizer.with_padding(None);
        if let Some(highest) = tokenizer.get_vocab(true).into_values().max()
            && highest as usize >= tokens
        {
            let problem =
                format!("token {highest} has no row: `{TENSORS_FILE}` has {tokens} tokens");
            return Err(format_error(problem));
        }
        // A tokenizer without an unknown token fails on text that is not in its vocabulary. Encoding a cuneiform sign,
        // which no vocabulary has, detects such a tokenizer now and not in the middle of a search.
        tokenizer.encode_fast("\u{12000}", false).map_err(invalid)?;
        let unknown = unknown_token(json, &tokenizer);
        Ok(Self { tokenizer, unknown })
    }
}

impl toolcrib_embed::Tokenizer for FileTokenizer {
    fn tokenize(&self, text: &str, visit: &mut dyn FnMut(u32)) {
        // The tokenizer was tested when it was read. Text that it rejects anyway has no tokens.
        let Ok(encoding) = self.tokenizer.encode_fast(text, false) else { return };
        let known = encoding.get_ids().iter().filter(|token| Some(**token) != self.unknown);
        known.copied().for_each(visit);
    }

    fn token(&self, id: u32) -> String {
        self.tokenizer.id_to_token(id).unwrap_or_default()
    }
}

/// Returns the id of the unknown token, or `None` if the tokenizer has none. Most files give the token's name, and
/// those of Unigram models give its id.
fn unknown_token(json: &[u8], tokenizer: &Tokenizer) -> Option<u32> {
    let file: Value = serde_json::from_slice(json).unwrap_or_default();
    let model = &file["model"];
    match model["unk_token"].as_str() {
        Some(token) => tokenizer.token_to_id(token),
        None => model["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok()),
    }
}

fn format_error(problem: String) -> Error {
    Error::format(TOKENIZER_FILE, problem)
}
