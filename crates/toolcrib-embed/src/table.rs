//! The file that a table of vectors is kept in.
//!
//! Little endian throughout: `TCRIBEM2`; four u32, the dimensions, the rows, the bytes of the
//! vocabulary and the number of field weights; the field weights as f32; the vocabulary, one entry a
//! line; a scale for each row in a query as f32, then one for each row in a tool; the rows as int8.
//! Lengths come from a stranger, so every part is checked against what is really there before anything
//! is made of it.

use std::borrow::Cow;

use crate::Error;
use crate::field::Field;

const MAGIC: &[u8; 8] = b"TCRIBEM2";
/// More than any static table has, and few enough for an exact i32 sum of int8 products.
pub(crate) const MOST_DIMS: u64 = 4096;

/// The parts of a file, lengths checked.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) dims: usize,
    pub(crate) weights: [f32; Field::ALL.len()],
    /// One entry a line.
    pub(crate) vocabulary: Cow<'static, str>,
    /// One a row, for queries.
    pub(crate) asked: Vec<f32>,
    /// One a row, for tools.
    pub(crate) told: Vec<f32>,
    /// Row after row; each byte is an i8.
    pub(crate) codes: Cow<'static, [u8]>,
}

impl Table {
    /// Reads a file. Of bytes that live as long as the program, the large parts are not copied.
    pub(crate) fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, Error> {
        let mut rest = Parts { bytes, taken: 0 };
        let magic = rest.take("magic", MAGIC.len() as u64);
        if !magic.is_ok_and(|magic| *magic == *MAGIC) {
            return Err(Error::NotATable);
        }
        let header = rest.take("header", 16)?;
        let mut header =
            header.as_chunks::<4>().0.iter().map(|n| u64::from(u32::from_le_bytes(*n)));
        let mut number = || header.next().unwrap_or_default();
        let (dims, rows, vocabulary, fields) = (number(), number(), number(), number());
        if rows == 0 || !(1..=MOST_DIMS).contains(&dims) {
            return Err(Error::Shape { dims, rows });
        }
        let needed = Field::ALL.len() as u64;
        if fields != needed {
            return Err(Error::FieldWeights { found: fields, needed });
        }
        let weights = floats("field weights", &rest.take("field weights", fields * 4)?)?;
        let vocabulary = text(rest.take("vocabulary", vocabulary)?)?;
        let asked = floats("query scales", &rest.take("query scales", rows * 4)?)?;
        let told = floats("tool scales", &rest.take("tool scales", rows * 4)?)?;
        let codes = rest.take("rows", rows * dims)?;
        if !rest.bytes.is_empty() {
            return Err(Error::Surplus { surplus: rest.bytes.len() as u64 });
        }
        let mut by_field = [0.0; Field::ALL.len()];
        by_field.copy_from_slice(&weights);
        Ok(Self { dims: dims as usize, weights: by_field, vocabulary, asked, told, codes })
    }
}

/// What is not yet read.
struct Parts {
    bytes: Cow<'static, [u8]>,
    taken: u64,
}

impl Parts {
    fn take(&mut self, part: &'static str, length: u64) -> Result<Cow<'static, [u8]>, Error> {
        let left = self.bytes.len() as u64;
        if length > left {
            let needed = self.taken + length;
            return Err(Error::Cut { part, needed, found: self.taken + left });
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

fn floats(part: &'static str, bytes: &[u8]) -> Result<Vec<f32>, Error> {
    let numbers: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(index) => Err(Error::NotFinite { part, index }),
        None => Ok(numbers),
    }
}

fn text(bytes: Cow<'static, [u8]>) -> Result<Cow<'static, str>, Error> {
    let offset =
        |error: std::str::Utf8Error| Error::VocabularyNotText { offset: error.valid_up_to() };
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

    /// Two rows of three dimensions.
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

    fn parse(file: &[u8]) -> Result<Table, Error> {
        Table::parse(Cow::Owned(file.to_vec()))
    }

    /// The file with the number `at` of its header replaced.
    fn with_header(at: usize, number: u32) -> Vec<u8> {
        let mut file = file();
        file[8 + at * 4..][..4].copy_from_slice(&number.to_le_bytes());
        file
    }

    #[test]
    fn a_whole_file_is_its_parts() {
        let leaked: &'static [u8] = Vec::leak(file());
        for bytes in [Cow::Owned(file()), Cow::Borrowed(leaked)] {
            let borrowed = matches!(bytes, Cow::Borrowed(_));
            let table = Table::parse(bytes).unwrap();
            assert_eq!(table.dims, 3);
            assert_eq!(table.weights, [1.0, 0.5, 0.25, 0.0, -1.0, 2.0]);
            assert_eq!(table.vocabulary, "ab\ncd");
            assert_eq!((table.asked, table.told), (vec![0.5, 0.25], vec![2.0, 4.0]));
            assert_eq!(*table.codes, [1, 2, 255, 128, 0, 127]);
            assert_eq!(matches!(table.codes, Cow::Borrowed(_)), borrowed);
        }
    }

    #[test]
    fn a_file_cut_anywhere_says_where_it_ends() {
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
                Error::Cut { part, needed: end as u64, found: length as u64 }
            };
            assert_eq!(parse(&whole[..length]).unwrap_err(), expected, "cut at {length}");
        }
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        assert_eq!(parse(&with_header(0, 0)).unwrap_err(), Error::Shape { dims: 0, rows: 2 });
        assert_eq!(parse(&with_header(0, 4097)).unwrap_err(), Error::Shape { dims: 4097, rows: 2 });
        assert_eq!(parse(&with_header(1, 0)).unwrap_err(), Error::Shape { dims: 3, rows: 0 });
        assert_eq!(
            parse(&with_header(1, u32::MAX)).unwrap_err(),
            Error::Cut { part: "query scales", needed: 53 + 4 * u64::from(u32::MAX), found: 75 }
        );
        assert_eq!(
            parse(&with_header(2, u32::MAX)).unwrap_err(),
            Error::Cut { part: "vocabulary", needed: 48 + u64::from(u32::MAX), found: 75 }
        );
        assert_eq!(
            parse(&with_header(3, 5)).unwrap_err(),
            Error::FieldWeights { found: 5, needed: 6 }
        );
        let mut longer = file();
        longer.push(0);
        assert_eq!(parse(&longer).unwrap_err(), Error::Surplus { surplus: 1 });
    }

    #[test]
    fn numbers_must_be_finite_and_entries_text() {
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
        assert_eq!(parse(&broken).unwrap_err(), Error::VocabularyNotText { offset: 1 });
    }
}
