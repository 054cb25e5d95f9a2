//! Paths that the config opens to callers, in addition to generation, counting and lists of models.

use axum::http::Method;
use toolcrib_core::policy::Glob;

use crate::path::NormalizedPath;

/// The parsed entries of `paths`: `POST /v1/embeddings`, or `/v1/files/*` for every method.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedPaths(Vec<(Option<Method>, Glob)>);

/// The error about an entry of `paths` that no request can match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` in `paths` is not a path: write `/v1/files/*`, or `POST /v1/embeddings` for one method"
)]
pub struct InvalidPathEntry(String);

impl AllowedPaths {
    pub(crate) fn new<'a>(
        entries: impl IntoIterator<Item = &'a String>,
    ) -> Result<Self, InvalidPathEntry> {
        let read = |entry: &String| {
            let invalid = || InvalidPathEntry(entry.clone());
            let (method, path) = match entry.trim().split_once(' ') {
                Some((method, path)) if method.bytes().all(|byte| byte.is_ascii_uppercase()) => (
                    Some(Method::from_bytes(method.as_bytes()).map_err(|_| invalid())?),
                    path.trim(),
                ),
                Some(_) => return Err(invalid()),
                None => (None, entry.trim()),
            };
            // Requests are compared in their normalised spelling, so a pattern in any other spelling matches nothing.
            let is_normal =
                NormalizedPath::read(path.as_bytes()).is_ok_and(|normal| normal.as_str() == path);
            if is_normal { Ok((method, Glob::new(path))) } else { Err(invalid()) }
        };
        entries.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a request to this path is allowed.
    pub(crate) fn allow(&self, method: &Method, path: &NormalizedPath) -> bool {
        self.0.iter().any(|(only, glob)| {
            only.as_ref().is_none_or(|only| only == method) && glob.matches_name(path.as_str())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_path_with_an_optional_method() {
        let texts = ["POST /v1/embeddings".to_owned(), "/v1/files/*".to_owned()];
        let open = AllowedPaths::new(&texts).unwrap();
        for (method, path, allowed) in [
            (Method::POST, "/v1/embeddings", true),
            (Method::GET, "/v1/embeddings", false),
            (Method::POST, "/v1/embeddings/x", false),
            (Method::DELETE, "/v1/files/f", true),
            (Method::GET, "/v1/files", false),
            (Method::GET, "/v1/filesystem", false),
        ] {
            let path = NormalizedPath::read(path.as_bytes()).unwrap();
            assert_eq!(open.allow(&method, &path), allowed, "{method} {path}");
        }
        for text in ["v1/files", "post /v1/files", "/v1/../files", "/v1//files", "/v1/files/", ""] {
            assert!(AllowedPaths::new(&[text.to_owned()]).is_err(), "{text}");
        }
    }
}
