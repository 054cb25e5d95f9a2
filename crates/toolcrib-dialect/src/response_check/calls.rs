//! Finds the calls in a JSON value, and checks that the request declares the called tools.
//!
//! The complete value is searched, not only the places in which its API has calls. The reason is that some clients also
//! read a second choice, a `message` in place of a `delta`, or a block in the first event of a stream. The search
//! includes the forms of all four APIs, whichever API the client uses.
//!
//! | form | allowed if the request declares |
//! |---|---|
//! | an item of `tool_calls`; `function_call`, `functionCall`; type `function_call`, `custom_tool_call`, `tool_use` | a tool of this name, in this namespace if there is one |
//! | type `mcp_call`, `mcp_approval_request`, `mcp_tool_use`, `mcp_list_tools` | a hosted server that has these tools |
//! | another type that ends in `_call`, such as `shell_call` | a tool of this type (`shell`) |
//! | type `server_tool_use`; `toolCall`, `executableCode` | a hosted tool that makes such calls |
//! | type `tool_search_output`, `additional_tools` | all tools that it loads |
//!
//! Values with free-form data (arguments, schemas, metadata) are not searched.

use std::collections::HashMap;

use toolcrib_text::json::{self, Fields};

use super::WithheldReason;
use super::declared_tools::DeclaredTools;
use crate::limits::MAX_CALLS;
use crate::scope::fold_key;
use crate::tool_list;

/// Maximum nesting depth of a value that is searched. Responses of the four APIs have about twelve levels.
const MAX_DEPTH: usize = 32;

/// Keys whose values are not searched, in the form that `fold_key` returns.
const FREE_FORM_KEYS: [&str; 12] = [
    "arguments",
    "args",
    "input",
    "parameters",
    "schema",
    "inputschema",
    "responseschema",
    "properties",
    "metadata",
    // These are attributes of files that a search found. The owner of the files sets them.
    "attributes",
    // The Responses API repeats the tools and the tool choice of the request.
    "tools",
    "toolchoice",
];

/// Keys that this check reads, in the form that `fold_key` returns. If an object contains such a key in two spellings,
/// the key counts as occurring twice.
const READ_KEYS: [&str; 22] = [
    "candidates",
    "choices",
    "content",
    "contentblock",
    "custom",
    "delta",
    "executablecode",
    "function",
    "functioncall",
    "item",
    "message",
    "name",
    "namespace",
    "output",
    "parts",
    "response",
    "serverlabel",
    "servername",
    "toolcall",
    "toolcalls",
    "tooltype",
    "type",
];

/// Maximum number of calls that arrive in pieces. It is higher than the limit for a turn, so that the turn reports an
/// error first. That error names the limit.
const MAX_STREAMED_CALLS: usize = 4 * MAX_CALLS;

/// Suffixes of types that may be calls in an unknown form. They are compared with the type after `fold_key`.
const SUSPICIOUS_SUFFIXES: [&str; 4] = ["call", "calls", "tooluse", "approvalrequest"];

/// The kind of response that a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseKind {
    Complete,
    /// An event of a stream. A later event may continue a call.
    Event,
}

/// The names of calls that arrive in pieces. The keys consist of the index of the choice and the index of the call.
#[derive(Debug, Default)]
pub(super) struct StreamedCallNames(HashMap<(String, String), PartialCall>);

/// A call of which some pieces have arrived.
#[derive(Debug, Default)]
struct PartialCall {
    id: Option<String>,
    name: String,
}

/// Checks every call in an object.
pub(super) fn check(
    text: &str,
    form: ResponseKind,
    declared: &DeclaredTools,
    names: &mut StreamedCallNames,
) -> Result<(), WithheldReason> {
    let fields = Fields::read(text).ok_or(WithheldReason::NotAnObject)?;
    CallSearch { form, declared, names }.object(&fields, "", 0)
}

struct CallSearch<'a> {
    form: ResponseKind,
    declared: &'a DeclaredTools,
    names: &'a mut StreamedCallNames,
}

impl CallSearch<'_> {
    /// Searches a value for calls. `index` is the `index` field of the innermost enclosing object that has one.
    fn value(&mut self, raw: &str, index: &str, depth: usize) -> Result<(), WithheldReason> {
        if depth == MAX_DEPTH {
            return Err(WithheldReason::TooComplex);
        }
        match raw.as_bytes().first() {
            Some(b'{') => self.object(&object(raw)?, index, depth),
            Some(b'[') => {
                let items = json::items(raw).ok_or(WithheldReason::UnknownForm)?;
                items.iter().try_for_each(|item| self.value(item.get(), index, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        fields: &Fields<'_>,
        index: &str,
        depth: usize,
    ) -> Result<(), WithheldReason> {
        let words = folded_keys(fields)?;
        let index = fields.get("index").unwrap_or(index);
        if fields.get("type").is_some_and(|raw| raw.starts_with('"')) {
            let kind = fields.string("type").ok_or(WithheldReason::UnknownForm)?;
            self.typed(&kind, fields)?;
        }
        for ((key, raw), word) in fields.iter().zip(&words).filter(|((_, raw), _)| *raw != "null") {
            match word.as_str() {
                "toolcalls" => {
                    let calls = json::items(raw).ok_or(WithheldReason::UnknownForm)?;
                    calls.iter().try_for_each(|call| self.call(call.get(), index, None))?;
                }
                // In Chat Completions, the legacy `function_call` arrives in pieces without an index. Gemini's
                // `functionCall` arrives complete.
                "functioncall" => self.call(raw, index, (key == "function_call").then_some(""))?,
                "toolcall" => {
                    let kind =
                        object(raw)?.string("toolType").ok_or(WithheldReason::UnknownForm)?;
                    allow(self.declared.has_hosted_prefix(&kind))?;
                }
                "executablecode" => allow(self.declared.has_hosted_prefix("codeExecution"))?,
                word if FREE_FORM_KEYS.contains(&word) => {}
                _ => self.value(raw, index, depth + 1)?,
            }
        }
        Ok(())
    }

    /// Checks a call or a piece of a call. All its names are checked: its own, and those of the objects directly inside
    /// it. `at` is the index for a piece that has none.
    fn call(&mut self, raw: &str, index: &str, at: Option<&str>) -> Result<(), WithheldReason> {
        let call = object(raw)?;
        let words_of_call = folded_keys(&call)?;
        let mut all = Vec::new();
        all.extend(name(&call)?);
        for ((_, raw), word) in call.iter().zip(&words_of_call) {
            if raw.starts_with('{') && !FREE_FORM_KEYS.contains(&word.as_str()) {
                let inner = object(raw)?;
                folded_keys(&inner)?;
                all.extend(name(&inner)?);
            }
        }
        if all.is_empty() && self.form == ResponseKind::Complete {
            return Err(WithheldReason::UnknownForm);
        }
        let namespace = text(&call, "namespace")?;
        for name in all {
            allow(self.declared.has(namespace.as_deref(), &name))?;
            if let (ResponseKind::Event, Some(at)) = (self.form, call.get("index").or(at)) {
                let id = text(&call, "id")?;
                self.names.begin((index.to_owned(), at.to_owned()), id, name)?;
            }
        }
        Ok(())
    }

    /// Checks an object that has a `type`.
    fn typed(&self, kind: &str, fields: &Fields<'_>) -> Result<(), WithheldReason> {
        let declared = self.declared;
        let name = || name(fields)?.ok_or(WithheldReason::UnknownForm);
        let server = |key| text(fields, key)?.ok_or(WithheldReason::UnknownForm);
        match kind {
            "function_call" | "custom_tool_call" | "tool_use" => {
                let namespace = text(fields, "namespace")?;
                allow(declared.has(namespace.as_deref(), &name()?))
            }
            "mcp_call" | "mcp_approval_request" => {
                allow(declared.has_member(&server("server_label")?, &name()?))
            }
            "mcp_tool_use" => allow(declared.has_member(&server("server_name")?, &name()?)),
            "server_tool_use" => allow(declared.has_hosted_suffix(&name()?)),
            "mcp_list_tools" => {
                let server = server("server_label")?;
                let names = tool_list::names(fields.get("tools").unwrap_or("[]"));
                allow(names.iter().all(|name| declared.has_member(&server, name)))
            }
            "tool_search_output" | "additional_tools" => {
                allow(declared.has_all(fields.get("tools").unwrap_or("[]")))
            }
            // The value is an event of the Responses API. Some of these events repeat the name of the tool.
            _ if kind.starts_with("response.") => match text(fields, "name")? {
                Some(name) => allow(declared.has(None, &name) || declared.has_member_of_any(&name)),
                None => Ok(()),
            },
            _ => match kind.strip_suffix("_call") {
                Some(tool) => allow(declared.has_type(tool)),
                None if is_suspicious(kind) => Err(WithheldReason::UnknownForm),
                None => Ok(()),
            },
        }
    }
}

impl StreamedCallNames {
    /// Records the name of a call, and returns an error if a later piece has a different name: clients concatenate
    /// different names, and the result could be the name of an undeclared tool. A repeated name is allowed, because
    /// some servers repeat it in every piece. A piece with another id starts a new call, because some servers use one
    /// index for several calls.
    fn begin(
        &mut self,
        place: (String, String),
        id: Option<String>,
        name: String,
    ) -> Result<(), WithheldReason> {
        let is_full = self.0.len() == MAX_STREAMED_CALLS;
        match self.0.get_mut(&place) {
            Some(begun) if begun.name == name => Ok(()),
            Some(begun) if id.is_some() && begun.id != id => {
                *begun = PartialCall { id, name };
                Ok(())
            }
            Some(_) => Err(WithheldReason::UndeclaredTool),
            None if is_full => Err(WithheldReason::TooComplex),
            None => {
                self.0.insert(place, PartialCall { id, name });
                Ok(())
            }
        }
    }
}

fn allow(is_allowed: bool) -> Result<(), WithheldReason> {
    if is_allowed { Ok(()) } else { Err(WithheldReason::UndeclaredTool) }
}

fn is_suspicious(kind: &str) -> bool {
    let kind = fold_key(kind);
    SUSPICIOUS_SUFFIXES.iter().any(|end| kind.ends_with(end))
}

fn object(raw: &str) -> Result<Fields<'_>, WithheldReason> {
    Fields::read(raw).ok_or(WithheldReason::UnknownForm)
}

/// Returns the string under a key. An empty string and `null` count as absent.
fn text(fields: &Fields<'_>, key: &str) -> Result<Option<String>, WithheldReason> {
    match fields.get(key) {
        None | Some("null") => Ok(None),
        Some(_) => {
            let text = fields.string(key).ok_or(WithheldReason::UnknownForm)?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
    }
}

fn name(fields: &Fields<'_>) -> Result<Option<String>, WithheldReason> {
    text(fields, "name")
}

/// Returns the keys of an object after `fold_key`. Returns an error if a key occurs twice, or if a key that is read
/// here is not spelled as in the APIs.
fn folded_keys(fields: &Fields<'_>) -> Result<Vec<String>, WithheldReason> {
    let keys: Vec<&str> = fields.iter().map(|(key, _)| key).collect();
    let words: Vec<String> = keys.iter().map(|key| fold_key(key)).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    let mut read: Vec<&String> =
        words.iter().filter(|word| READ_KEYS.contains(&word.as_str())).collect();
    read.sort_unstable();
    let is_double = sorted.windows(2).any(|two| two[0] == two[1])
        || read.windows(2).any(|two| two[0] == two[1]);
    // A key in a different spelling is an error. A client that ignores case would read it, but this check would not.
    let is_variant = |(key, word): (&&str, &String)| {
        key.bytes().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii())
            && !is_gemini_key(key)
            && READ_KEYS.contains(&word.as_str())
    };
    if is_double || keys.iter().zip(&words).any(is_variant) {
        return Err(WithheldReason::DuplicateKey);
    }
    Ok(words)
}

/// Whether a key is one of the keys of Gemini that are read and contain capital letters.
fn is_gemini_key(key: &str) -> bool {
    matches!(key, "functionCall" | "toolCall" | "toolType" | "executableCode")
}
