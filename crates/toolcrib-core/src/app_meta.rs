//! What a tool says about its user interface (the MCP extension `io.modelcontextprotocol/ui`, "MCP Apps").
//!
//! A host shows the interface of a tool when the tool is called. It finds the interface's address in the `_meta` of the
//! tool's definition. The definition of a deferred tool is not in the tool list, so the replies to searches contain
//! these fields as well.

use serde_json::value::RawValue;
use toolcrib_text::json::{Fields, quote};

use crate::tool::Tool;

/// The field of `_meta` that describes the interface.
const UI: &str = "ui";
/// The field of `_meta` with the interface's address, as earlier drafts of the extension named it.
const RESOURCE_URI: &str = "ui/resourceUri";
/// The start of the address of every user interface.
const SCHEME: &str = "ui://";
/// Maximum size of the fields, in bytes. They are repeated in every reply that contains the tool, and real ones have
/// less than 200 bytes.
const MAX_BYTES: usize = 2 << 10;

impl Tool {
    /// The fields of the tool's `_meta` that describe its user interface, as a JSON object. Returns `None` if the tool
    /// has no interface, or if the fields are too large to be repeated in replies.
    pub fn app_meta(&self) -> Option<Box<RawValue>> {
        // Few tools have an interface, and parsing a definition is slow.
        if !self.definition().contains("\"_meta\"") {
            return None;
        }
        let definition = Fields::read(self.definition())?;
        let meta = Fields::read(definition.get("_meta")?)?;
        let is_object = |text: &&str| Fields::read(text).is_some();
        let ui = meta.get(UI).filter(is_object).map(|text| (UI, text));
        let uri = meta.get(RESOURCE_URI).filter(|text| text.starts_with('"'));
        let fields: Vec<String> = ui
            .into_iter()
            .chain(uri.map(|text| (RESOURCE_URI, text)))
            .map(|(key, text)| format!("{}:{text}", quote(key)))
            .collect();
        let object = format!("{{{}}}", fields.join(","));
        let fits = !fields.is_empty() && object.len() <= MAX_BYTES;
        fits.then(|| RawValue::from_string(object).ok()).flatten()
    }

    /// The address of the tool's user interface, if it has one. Unlike [`Self::app_meta`], this does not depend on the size
    /// of the fields: if it did, a tool with large fields would lose its address to any server that claims it.
    pub fn app_uri(&self) -> Option<String> {
        if !self.definition().contains("\"_meta\"") {
            return None;
        }
        let definition = Fields::read(self.definition())?;
        let meta = Fields::read(definition.get("_meta")?)?;
        let stated = meta.get(UI).and_then(Fields::read).and_then(|ui| ui.string("resourceUri"));
        stated.or_else(|| meta.string(RESOURCE_URI)).filter(|uri| is_app_uri(uri))
    }
}

/// Whether a URI is the address of a user interface. The scheme of a URI is case-insensitive.
pub fn is_app_uri(uri: &str) -> bool {
    uri.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;

    use super::*;

    fn of(meta: &str) -> (Option<String>, Option<String>) {
        let text = format!(r#"[{{"name":"a","inputSchema":{{"type":"object"}},"_meta":{meta}}}]"#);
        let catalog = Catalog::from_json(text.as_bytes()).unwrap();
        let tool = &catalog.tools()[0];
        (tool.app_meta().map(|meta| meta.get().to_owned()), tool.app_uri())
    }

    #[test]
    fn only_the_fields_about_the_interface_are_repeated() {
        let ui = r#"{"visibility":["app"], "resourceUri":"ui://a/b"}"#;
        assert_eq!(
            of(&format!(r#"{{"x":1,"ui":{ui}}}"#)),
            (Some(format!(r#"{{"ui":{ui}}}"#)), Some("ui://a/b".into()))
        );
        let older = r#"{"ui/resourceUri":"ui://c"}"#;
        assert_eq!(of(older), (Some(older.into()), Some("ui://c".into())));
        for none in ["{}", "1", r#"{"ui":"ui://a"}"#, r#"{"ui/resourceUri":1}"#] {
            assert_eq!(of(none), (None, None), "{none}");
        }
    }

    #[test]
    fn large_fields_are_not_repeated() {
        let sized = |bytes: usize| {
            let fixed = r#"{"ui":{"resourceUri":""}}"#.len();
            let uri = format!("ui://{}", "x".repeat(bytes - fixed - SCHEME.len()));
            let (meta, found) = of(&format!(r#"{{"ui":{{"resourceUri":"{uri}"}}}}"#));
            assert_eq!(found, Some(uri), "the tool still has its interface");
            meta
        };
        assert!(sized(MAX_BYTES).is_some() && sized(MAX_BYTES + 1).is_none());
    }

    #[test]
    fn an_interface_has_an_address_of_its_own_scheme() {
        for other in ["http://a.example", "file:///a", "ui:a", "", "\u{fc}i://a"] {
            assert_eq!(of(&format!(r#"{{"ui":{{"resourceUri":"{other}"}}}}"#)).1, None, "{other}");
        }
        assert_eq!(of(r#"{"ui/resourceUri":"UI://a"}"#).1, Some("UI://a".into()));
    }
}
