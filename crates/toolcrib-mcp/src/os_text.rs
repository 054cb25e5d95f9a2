//! Serializes text of the operating system, such as paths and variables, which is usually UTF-8 but need not be.
//!
//! Serde rejects a path that is not UTF-8, and writes any other text of the operating system as a list of numbers, which
//! takes four times the space. Here, UTF-8 becomes a JSON string, and only other text becomes a list of bytes.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text in the form in which it is sent.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OsText<'a> {
    Utf8(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> From<&'a OsStr> for OsText<'a> {
    fn from(text: &'a OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Utf8(text.into()),
            None => Self::Bytes(text.as_bytes().into()),
        }
    }
}

impl From<OsText<'_>> for OsString {
    fn from(text: OsText<'_>) -> Self {
        match text {
            OsText::Utf8(text) => text.into_owned().into(),
            OsText::Bytes(bytes) => Self::from_vec(bytes.into_owned()),
        }
    }
}

/// For `#[serde(with = "os_text")]` on a path.
pub fn serialize<S: Serializer>(text: &impl AsRef<OsStr>, to: S) -> Result<S::Ok, S::Error> {
    OsText::from(text.as_ref()).serialize(to)
}

/// For `#[serde(with = "os_text")]` on a path.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(from: D) -> Result<T, D::Error> {
    Ok(OsString::from(OsText::deserialize(from)?).into())
}

/// For `#[serde(with = "os_text::option")]` on an optional path.
pub mod option {
    use super::{Deserialize, Deserializer, OsStr, OsString, OsText, Serialize, Serializer};

    /// Writes `null`, or the text.
    pub fn serialize<S: Serializer>(
        text: &Option<impl AsRef<OsStr>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|text| OsText::from(text.as_ref())).serialize(to)
    }

    /// Reads `null`, or the text.
    pub fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<OsText<'_>>::deserialize(from)?;
        Ok(text.map(|text| OsString::from(text).into()))
    }
}

/// For `#[serde(with = "os_text::pairs")]` on variables.
pub mod pairs {
    use super::{Deserialize, Deserializer, OsString, OsText, Serializer};

    /// Writes a list of pairs.
    pub fn serialize<S: Serializer>(
        pairs: &[(OsString, OsString)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            pairs.iter().map(|(name, value)| (OsText::from(&**name), OsText::from(&**value))),
        )
    }

    /// Reads a list of pairs.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<(OsText<'_>, OsText<'_>)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        #[serde(with = "super")]
        path: PathBuf,
        #[serde(with = "super::option")]
        folder: Option<PathBuf>,
        #[serde(with = "super::pairs")]
        variables: Vec<(OsString, OsString)>,
    }

    #[test]
    fn text_is_the_same_after_it_was_sent() {
        let not_utf8 = || OsString::from_vec(vec![b'/', 0xff, b'"']);
        let sample = Sample {
            path: "/ü".into(),
            folder: Some(not_utf8().into()),
            variables: vec![("A".into(), "b".into()), (not_utf8(), not_utf8())],
        };
        let sent = serde_json::to_string(&sample).unwrap();
        let expected = r#"{"path":"/ü","folder":[47,255,34],"variables":[["A","b"],[[47,255,34],[47,255,34]]]}"#;
        assert_eq!(sent, expected);
        assert_eq!(serde_json::from_str::<Sample>(&sent).unwrap(), sample);
        let none = Sample { path: not_utf8().into(), folder: None, variables: Vec::new() };
        let sent = serde_json::to_value(&none).unwrap();
        assert_eq!(serde_json::from_value::<Sample>(sent).unwrap(), none);
    }
}
