//! The file format of a table of vectors.
//!
//! All numbers are little-endian. The parts are, in order:
//!
//! - the magic bytes `TCRIBEM2`
//! - four u32: the number of dimensions, the number of rows, the size of the vocabulary in bytes, and the number of
//!   field weights
//! - the field weights as f32
//! - the vocabulary, one entry per line
//! - for each row, its scale in queries as f32
//! - for each row, its scale in tools as f32
//! - the rows as int8
//!
//! The lengths in the header are untrusted, so each is checked against the size of the file before it is used.

use std::borrow::Cow;

use crate::Error;
use crate::field::EmbeddedField;

const MAGIC: &[u8; 8] = b"TCRIBEM2";
/// Maximum number of dimensions. No static table has as many, and an i32 can hold the sum of this many int8 products
/// exactly.
pub(crate) const MAX_DIMS: u64 = 4096;

/// A parsed table file, with all lengths checked.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) dims: usize,
    pub(crate) field_weights: [f32; EmbeddedField::ALL.len()],
    /// The vocabulary, with one entry per line.
    pub(crate) vocabulary: Cow<'static, str>,
    /// One scale per row, for queries.
    pub(crate) query_scales: Vec<f32>,
    /// One scale per row, for tools.
    pub(crate) tool_scales: Vec<f32>,
    /// The int8 codes, row by row; each byte is an i8.
    pub(crate) codes: Cow<'static, [u8]>,
}

impl TableFile {
    /// Parses a file. The vocabulary and the codes are not copied if the bytes are `'static`.
    pub(crate) fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let mut rest = ByteCursor { bytes, taken: 0 };
        let magic = rest.take("magic", MAGIC.len() as u64);
        if !magic.is_ok_and(|magic| *magic == *MAGIC) {
            return Err(Error::NotATable);
        }
        let header = rest.take("header", 16)?;
        let mut header =
            header.as_chunks::<4>().0.iter().map(|n| u64::from(u32::from_le_bytes(*n)));
        let mut number = || header.next().unwrap_or_default();
        let (dims, rows, vocabulary, fields) = (number(), number(), number(), number());
        if rows == 0 || !(1..=MAX_DIMS).contains(&dims) {
            return Err(Error::Shape { dims, rows });
        }
        let needed = EmbeddedField::ALL.len() as u64;
        if fields != needed {
            return Err(Error::FieldWeights { found: fields, needed });
        }
        let weights = parse_floats("field weights", &rest.take("field weights", fields * 4)?)?;
        let vocabulary = parse_text(rest.take("vocabulary", vocabulary)?)?;
        let query_scales = parse_floats("query scales", &rest.take("query scales", rows * 4)?)?;
        let tool_scales = parse_floats("tool scales", &rest.take("tool scales", rows * 4)?)?;
        let codes = rest.take("rows", rows * dims)?;
        if !rest.bytes.is_empty() {
            return Err(Error::TrailingBytes { surplus: rest.bytes.len() as u64 });
        }
        let mut field_weights = [0.0; EmbeddedField::ALL.len()];
        field_weights.copy_from_slice(&weights);
        let dims = dims as usize;
        Ok(Self { dims, field_weights, vocabulary, query_scales, tool_scales, codes })
    }
}

/// The unread rest of a file, and how many bytes were read.
struct ByteCursor {
    bytes: Cow<'static, [u8]>,
    taken: u64,
}

impl ByteCursor {
    fn take(&mut self, part: &'static str, length: u64) -> Result<Cow<'static, [u8]>, Error> {
        let left = self.bytes.len() as u64;
        if length > left {
            let needed = self.taken + length;
            return Err(Error::Truncated { part, needed, found: self.taken + left });
        }
        self.taken += length;
        let at = length as usize;
        Ok(match &mut self.bytes {
            Cow::Borrowed(bytes) => {
                let (head, tail) = bytes.split_at(at);
                *bytes = tail;
                Cow::Borrowed(head)
            }
            Cow::Owned(bytes) => {
                let tail = bytes.split_off(at);
                Cow::Owned(std::mem::replace(bytes, tail))
            }
        })
    }
}

fn parse_floats(part: &'static str, bytes: &[u8]) -> Result<Vec<f32>, Error> {
    let numbers: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(index) => Err(Error::NotFinite { part, index }),
        None => Ok(numbers),
    }
}

fn parse_text(bytes: Cow<'static, [u8]>) -> Result<Cow<'static, str>, Error> {
    let offset =
        |error: std::str::Utf8Error| Error::VocabularyNotUtf8 { offset: error.valid_up_to() };
    Ok(match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).map_err(offset)?),
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).map_err(|error| offset(error.utf8_error()))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file with two rows of three dimensions.
    fn file() -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for number in [3_u32, 2, 5, 6] {
            file.extend(number.to_le_bytes());
        }
        for weight in [1.0_f32, 0.5, 0.25, 0.0, -1.0, 2.0] {
            file.extend(weight.to_le_bytes());
        }
        file.extend(b"ab\ncd");
        for scale in [0.5_f32, 0.25, 2.0, 4.0] {
            file.extend(scale.to_le_bytes());
        }
        file.extend([1, 2, 255, 128, 0, 127]);
        file
    }

    fn parse(file: &[u8]) -> Result<TableFile, Error> {
        TableFile::parse(Cow::Owned(file.to_vec()))
    }

    /// Returns the file of [`file`], with the number at position `at` of its header replaced.
    fn with_header(at: usize, number: u32) -> Vec<u8> {
        let mut file = file();
        file[8 + at * 4..][..4].copy_from_slice(&number.to_le_bytes());
        file
    }

    #[test]
    fn a_complete_file_is_parsed_into_its_parts() {
        let leaked: &'static [u8] = Vec::leak(file());
        for bytes in [Cow::Owned(file()), Cow::Borrowed(leaked)] {
            let borrowed = matches!(bytes, Cow::Borrowed(_));
            let table = TableFile::parse(bytes).unwrap();
            assert_eq!(table.dims, 3);
            assert_eq!(table.field_weights, [1.0, 0.5, 0.25, 0.0, -1.0, 2.0]);
            assert_eq!(table.vocabulary, "ab\ncd");
            assert_eq!((table.query_scales, table.tool_scales), (vec![0.5, 0.25], vec![2.0, 4.0]));
            assert_eq!(*table.codes, [1, 2, 255, 128, 0, 127]);
            assert_eq!(matches!(table.codes, Cow::Borrowed(_)), borrowed);
        }
    }

    #[test]
    fn the_error_for_a_truncated_file_names_the_part() {
        let whole = file();
        let ends = [
            (24, "header"),
            (48, "field weights"),
            (53, "vocabulary"),
            (61, "query scales"),
            (69, "tool scales"),
        ];
        for length in 0..whole.len() {
            let expected = if length < MAGIC.len() {
                Error::NotATable
            } else {
                let inside = ends.iter().find(|(end, _)| length < *end);
                let (end, part) = inside.copied().unwrap_or((whole.len(), "rows"));
                Error::Truncated { part, needed: end as u64, found: length as u64 }
            };
            assert_eq!(parse(&whole[..length]).unwrap_err(), expected, "truncated to {length}");
        }
    }

    #[test]
    fn a_wrong_header_is_rejected() {
        assert_eq!(parse(&with_header(0, 0)).unwrap_err(), Error::Shape { dims: 0, rows: 2 });
        assert_eq!(parse(&with_header(0, 4097)).unwrap_err(), Error::Shape { dims: 4097, rows: 2 });
        assert_eq!(parse(&with_header(1, 0)).unwrap_err(), Error::Shape { dims: 3, rows: 0 });
        assert_eq!(
            parse(&with_header(1, u32::MAX)).unwrap_err(),
            Error::Truncated {
                part: "query scales",
                needed: 53 + 4 * u64::from(u32::MAX),
                found: 75
            }
        );
        assert_eq!(
            parse(&with_header(2, u32::MAX)).unwrap_err(),
            Error::Truncated { part: "vocabulary", needed: 48 + u64::from(u32::MAX), found: 75 }
        );
        assert_eq!(
            parse(&with_header(3, 5)).unwrap_err(),
            Error::FieldWeights { found: 5, needed: 6 }
        );
        let mut longer = file();
        longer.push(0);
        assert_eq!(parse(&longer).unwrap_err(), Error::TrailingBytes { surplus: 1 });
    }

    #[test]
    fn numbers_must_be_finite_and_the_vocabulary_utf8() {
        for (at, number, part, index) in [
            (57, f32::NAN, "query scales", 1),
            (61, f32::NAN, "tool scales", 0),
            (24, f32::INFINITY, "field weights", 0),
        ] {
            let mut broken = file();
            broken[at..at + 4].copy_from_slice(&number.to_le_bytes());
            assert_eq!(parse(&broken).unwrap_err(), Error::NotFinite { part, index });
        }
        let mut broken = file();
        broken[49] = 0xff;
        assert_eq!(parse(&broken).unwrap_err(), Error::VocabularyNotUtf8 { offset: 1 });
    }
}
