//! The tokenizer that a published table comes with.

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::Error;
use crate::tensors::MODEL;

/// The file that the tokenizer comes in.
const TOKENIZER: &str = "tokenizer.json";

/// The tokenizer of a `tokenizer.json`.
pub(crate) struct FileTokenizer {
    tokenizer: Tokenizer,
    /// The token for text that is not in the vocabulary. Its vector means nothing, so it is left out.
    unknown: Option<u32>,
}

impl FileTokenizer {
    /// Reads a `tokenizer.json` whose token ids must be below `tokens`.
    pub(crate) fn parse(json: &[u8], tokens: usize) -> Result<Self, Error> {
        let wrong = |error: tokenizers::Error| refused(error.to_string());
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(wrong)?;
        // MiniLM's file asks for exactly 128 tokens.
        tokenizer.with_truncation(None).map_err(wrong)?;
        tokenizer.with_padding(None);
        if let Some(most) = tokenizer.get_vocab(true).into_values().max()
            && most as usize >= tokens
        {
            let problem = format!("token {most} has no row among the {tokens} of `{MODEL}`");
            return Err(refused(problem));
        }
        // A tokenizer without a token for the unknown fails on text it does not know. A cuneiform sign,
        // which no vocabulary has, shows that now instead of in the middle of a search.
        tokenizer.encode_fast("\u{12000}", false).map_err(wrong)?;
        let unknown = unknown_token(json, &tokenizer);
        Ok(Self { tokenizer, unknown })
    }
}

impl toolcrib_embed::Tokenizer for FileTokenizer {
    fn tokenize(&self, text: &str, visit: &mut dyn FnMut(u32)) {
        // The tokenizer was tried when it was read; text that it rejects after all has no tokens.
        let Ok(encoding) = self.tokenizer.encode_fast(text, false) else { return };
        let known = encoding.get_ids().iter().filter(|token| Some(**token) != self.unknown);
        known.copied().for_each(visit);
    }

    fn token(&self, id: u32) -> String {
        self.tokenizer.id_to_token(id).unwrap_or_default()
    }
}

/// By name in most files, by number in Unigram's.
fn unknown_token(json: &[u8], tokenizer: &Tokenizer) -> Option<u32> {
    let file: Value = serde_json::from_slice(json).unwrap_or_default();
    let model = &file["model"];
    match model["unk_token"].as_str() {
        Some(token) => tokenizer.token_to_id(token),
        None => model["unk_id"].as_u64().and_then(|id| u32::try_from(id).ok()),
    }
}

fn refused(problem: String) -> Error {
    Error::format(TOKENIZER, problem)
}
