//! What becomes of one item of a response.
//!
//! The same for streams and whole responses: a call of ours is answered and hidden, a deferred tool's is
//! shown under its real name, everything else is the client's as it came. What goes back up is the item
//! itself.

use toolcrib_text::json;

use super::frame::Frame;
use super::item::{Asked, Item};
use crate::desk::{Desk, Settled, Sort};
use crate::mode::Mode;
use crate::tools;
use crate::toolset::Toolset;

/// What becomes of an item.
#[derive(Debug)]
pub(super) struct Taken {
    /// What goes back up; nothing for what the API would refuse.
    pub(super) entry: Option<String>,
    pub(super) shown: Shown,
}

/// What the client gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    AsItCame,
    As(String),
    Nothing,
}

/// How an item is to be treated from its first event on.
pub(super) fn sort(raw: &str, desk: &Desk) -> Sort {
    match Item::read(raw) {
        Some(item) if item.kind == "function_call" => {
            item.name().map_or(Sort::Held, |name| desk.sort(&name))
        }
        Some(item) if is_stray(&item, desk) => Sort::Held,
        // Ours, or the provider's: a request of a client that has one of its own passes through.
        Some(item) if is_search(&item) => Sort::Held,
        _ => Sort::Live,
    }
}

/// Decides about an item that is whole. One that the client already has part of is `live`, and stays.
pub(super) fn take(raw: &str, live: bool, frame: &Frame, desk: &mut Desk) -> Taken {
    let whole = |shown| Taken { entry: Some(raw.to_owned()), shown };
    let Some(item) = Item::read(raw) else { return whole(Shown::AsItCame) };
    if is_search(&item) && !live {
        return searched(raw, &item, desk);
    }
    item.texts(&mut |text| desk.text(text));
    match item.asks() {
        Some(asked) if item.kind == "function_call" || is_stray(&item, desk) => {
            called(raw, &item, &asked, live, frame, desk)
        }
        Some(asked) => {
            desk.live(asked.id.as_deref(), &asked.name, &asked.arguments);
            whole(Shown::AsItCame)
        }
        None => {
            let lost = item.kind == "reasoning" && !frame.keeps && !is_sealed(&item);
            let entry = (!lost).then(|| raw.to_owned());
            Taken { entry, shown: Shown::AsItCame }
        }
    }
}

/// A search by the words of the API: ours, or the provider's own.
fn searched(raw: &str, item: &Item<'_>, desk: &mut Desk) -> Taken {
    if let Some(asked) = item.asks() {
        if !item.is_whole() {
            return Taken { entry: None, shown: Shown::Nothing };
        }
        let search = desk.toolset().names().search;
        desk.settle(asked.id.as_deref(), search, &asked.arguments);
    } else {
        desk.hide();
        desk.found(item.fields.get("tools").map(tools::names).unwrap_or_default());
    }
    Taken { entry: Some(raw.to_owned()), shown: Shown::Nothing }
}

fn called(
    raw: &str,
    item: &Item<'_>,
    asked: &Asked,
    live: bool,
    frame: &Frame,
    desk: &mut Desk,
) -> Taken {
    let (id, name) = (asked.id.as_deref(), asked.name.as_str());
    let entry = Some(entry(raw, item, name, desk));
    if live || desk.sort(name) == Sort::Live {
        desk.live(id, name, &asked.arguments);
        let untouched = desk.toolset().passes_through();
        return match shown(item, name, frame, desk.toolset()).filter(|_| !untouched) {
            Some(changed) => {
                desk.hide();
                Taken { entry, shown: Shown::As(changed) }
            }
            None => Taken { entry, shown: Shown::AsItCame },
        };
    }
    if !item.is_whole() {
        // Half a call that the client has not seen would wait for its answer forever.
        return Taken { entry: None, shown: Shown::Nothing };
    }
    let shown = match desk.settle(id, name, &asked.arguments) {
        Settled::Hidden => Shown::Nothing,
        Settled::Forward { name, arguments } => {
            let mut edits = vec![
                ("name", Some(json::quote(&name))),
                ("arguments", Some(json::quote(&arguments))),
            ];
            if item.kind == "custom_tool_call" {
                edits.extend([("type", Some(r#""function_call""#.to_owned())), ("input", None)]);
            }
            edits.extend(frame.namespace(&item.fields, &name, desk.toolset()));
            Shown::As(item.fields.with(&edits))
        }
    };
    Taken { entry, shown }
}

/// A call as the client is to see it, where that is not as it came.
pub(super) fn shown(
    item: &Item<'_>,
    name: &str,
    frame: &Frame,
    toolset: &Toolset,
) -> Option<String> {
    let edits = frame.namespace(&item.fields, name, toolset);
    (!edits.is_empty()).then(|| item.fields.with(&edits))
}

/// A call as it goes back up. A tool that is loaded by an item lives in a namespace of its own name,
/// and a call of it from before it was loaded is looked for there.
fn entry(raw: &str, item: &Item<'_>, name: &str, desk: &Desk) -> String {
    let toolset = desk.toolset();
    let loads = matches!(toolset.mode(), Mode::Reference(_)) && toolset.is_deferred(name);
    if loads && item.fields.string("namespace").is_none() {
        item.fields.with(&[("namespace", Some(json::quote(name)))])
    } else {
        raw.to_owned()
    }
}

/// Whether it is a call of a custom tool that the client does not have.
fn is_stray(item: &Item<'_>, desk: &Desk) -> bool {
    item.kind == "custom_tool_call"
        && item.name().is_none_or(|name| !desk.toolset().is_declared(&name))
}

fn is_search(item: &Item<'_>) -> bool {
    matches!(item.kind.as_str(), "tool_search_call" | "tool_search_output")
}

/// Whether a reasoning can be read by an API that did not keep it.
fn is_sealed(item: &Item<'_>) -> bool {
    item.fields.get("encrypted_content").is_some_and(|raw| raw != "null")
}
