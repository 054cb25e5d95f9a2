//! Tables that others publish: a folder with a `tokenizer.json` and a `model.safetensors`.
//!
//! That is Model2Vec's form, and WordLlama's under another name for the tensor. Newer folders have two
//! more tensors: `weights`, one for each piece, and `mapping`, the row of each piece, where many pieces
//! share one. Rows become int8 as those of our own table are. Their `config.json` is not read: all that
//! it could say here is whether vectors are normalised, and ours always are.

use serde_json::Value;
use tokenizers::Tokenizer;

use crate::field::Field;
use crate::reader::Reader as AnyReader;
use crate::tensors::{MODEL, Tensors};
use crate::{Error, Model, vector, words};

/// The file that the tokenizer comes in.
const TOKENIZER: &str = "tokenizer.json";

/// Not learned: published tables are trained on sentences and know no fields. In the order of [`Field`].
const WEIGHTS: [f32; Field::ALL.len()] = [1.0, 0.7, 1.0, 0.4, 0.3, 0.4];

/// A foreign tokenizer works on the whole text at once. A piece is rarely longer than 8 characters.
const MOST_CHARACTERS_A_PIECE: usize = 8;

/// A foreign tokenizer, and the rows of its pieces.
#[derive(Clone)]
pub(crate) struct Reader {
    tokenizer: Tokenizer,
    /// What stands for a piece that it does not know, and says nothing.
    unknown: Option<u32>,
    /// The row of each piece, where that is not the piece itself.
    mapping: Option<Vec<u32>>,
}

impl Model {
    /// Reads the two files of a Model2Vec folder, `tokenizer.json` and `model.safetensors`.
    pub fn from_model2vec(tokenizer: &[u8], tensors: &[u8]) -> Result<Self, Error> {
        let tensors = Tensors::parse(tensors)?;
        let (rows, dims) = (tensors.rows(), tensors.dims());
        let mut codes = Vec::with_capacity(rows * dims);
        let mut steps = Vec::with_capacity(rows);
        for row in tensors.values().chunks_exact(dims) {
            let (step, row) = vector::quantised(row);
            steps.push(step);
            codes.extend(row.map(i8::cast_unsigned));
        }
        let mapping = tensors.mapping()?;
        let pieces = mapping.as_ref().map_or(rows, Vec::len);
        let weights = tensors.weights(pieces)?;
        let reader = Reader::parse(tokenizer, pieces, mapping)?;
        let scales = (0..pieces).map(|piece| {
            let weight = weights.as_ref().map_or(1.0, |weights| weights[piece]);
            steps[reader.row(piece as u32)] * weight
        });
        let scales: Vec<f32> = scales.collect();
        Ok(Self {
            dims,
            told: scales.clone(),
            asked: scales,
            reader: AnyReader::Folder(Box::new(reader)),
            weights: WEIGHTS,
            codes: codes.into(),
        })
    }
}

impl Reader {
    fn parse(json: &[u8], pieces: usize, mapping: Option<Vec<u32>>) -> Result<Self, Error> {
        let wrong = |error: tokenizers::Error| refused(error.to_string());
        let mut tokenizer = Tokenizer::from_bytes(json).map_err(wrong)?;
        // MiniLM's file asks for 128 pieces, no fewer and no more.
        tokenizer.with_truncation(None).map_err(wrong)?;
        tokenizer.with_padding(None);
        if let Some(most) = tokenizer.get_vocab(true).into_values().max()
            && most as usize >= pieces
        {
            let problem = format!("piece {most} has no row among the {pieces} of `{MODEL}`");
            return Err(refused(problem));
        }
        // A tokenizer without a piece for the unknown fails on what it does not know. A cuneiform sign,
        // which no vocabulary has, tells now what would otherwise come up in the middle of a search.
        tokenizer.encode_fast("\u{12000}", false).map_err(wrong)?;
        let unknown = unknown_piece(json, &tokenizer);
        Ok(Self { tokenizer, unknown, mapping })
    }

    /// Calls `visit` with the first `most` pieces of `text`. Identifiers are read as prose, since that
    /// is what such a table was trained on: `createIssue` and `create_issue` are two words.
    pub(crate) fn each(&self, text: &str, most: usize, visit: impl FnMut(u32)) {
        let prose: String = words::with_humps_parted(text, ' ')
            .map(|c| if c == '_' { ' ' } else { c })
            .take(most * MOST_CHARACTERS_A_PIECE)
            .collect();
        // It was tried out when it was read; what it cannot read after all says nothing.
        let Ok(encoding) = self.tokenizer.encode_fast(prose, false) else { return };
        let known = encoding.get_ids().iter().filter(|piece| Some(**piece) != self.unknown);
        known.take(most).copied().for_each(visit);
    }

    pub(crate) fn row(&self, piece: u32) -> usize {
        self.mapping.as_ref().map_or(piece, |mapping| mapping[piece as usize]) as usize
    }

    pub(crate) fn written(&self, piece: u32) -> String {
        self.tokenizer.id_to_token(piece).unwrap_or_default()
    }
}

/// By name in most files, by number in Unigram's.
fn unknown_piece(json: &[u8], tokenizer: &Tokenizer) -> Option<u32> {
    let file: Value = serde_json::from_slice(json).unwrap_or_default();
    let model = &file["model"];
    match model["unk_token"].as_str() {
        Some(token) => tokenizer.token_to_id(token),
        None => model["unk_id"].as_u64().and_then(|piece| u32::try_from(piece).ok()),
    }
}

fn refused(problem: String) -> Error {
    Error::Folder { file: TOKENIZER, problem }
}
