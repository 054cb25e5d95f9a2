//! Decides what happens to an item of a response.
//!
//! The rules are the same for streams and complete responses. A call to one of Toolcrib's own tools is answered and
//! hidden. A call to a deferred tool is forwarded under its real name. Everything else is forwarded unchanged. The
//! upstream's history gets the original item.

use toolcrib_text::json;

use super::echo_restorer::EchoRestorer;
use super::item::{Item, ItemCall};
use crate::call_router::{CallRoute, CallRouter, ResolvedCall};
use crate::mode::Mode;
use crate::tool_list;
use crate::toolset::Toolset;

/// The decision about one item.
#[derive(Debug)]
pub(super) struct ItemDecision {
    /// The history entry for the upstream. `None` if the API would reject the item.
    pub(super) entry: Option<String>,
    pub(super) client: ClientItem,
}

/// The client's version of an item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientItem {
    AsReceived,
    Rewritten(String),
    Hidden,
}

/// Returns whether an item is forwarded as it arrives, or held until it is complete.
pub(super) fn item_routing(raw: &str, router: &CallRouter) -> CallRoute {
    match Item::read(raw) {
        Some(item) if item.kind == "function_call" => {
            item.name().map_or(CallRoute::Hold, |name| router.route(&name))
        }
        Some(item) if is_undeclared_custom_call(&item, router) => CallRoute::Hold,
        // The search belongs to Toolcrib or to the provider, because requests of a client with its own tool search are
        // not rewritten. So it is always hidden.
        Some(item) if is_tool_search(&item) => CallRoute::Hold,
        _ => CallRoute::Forward,
    }
}

/// Decides about a complete item. If `is_forwarded` is set, the client already has a part of the item, so the rest must
/// be forwarded as well.
pub(super) fn decide_item(
    raw: &str,
    is_forwarded: bool,
    echo: &EchoRestorer,
    router: &mut CallRouter,
) -> ItemDecision {
    let forward = |client| ItemDecision { entry: Some(raw.to_owned()), client };
    let Some(item) = Item::read(raw) else { return forward(ClientItem::AsReceived) };
    if is_tool_search(&item) && !is_forwarded {
        return decide_search(raw, &item, router);
    }
    item.texts(&mut |text| router.note_text(text));
    match item.client_call() {
        Some(call) if item.kind == "function_call" || is_undeclared_custom_call(&item, router) => {
            decide_call(raw, &item, &call, is_forwarded, echo, router)
        }
        Some(call) => {
            router.note_forwarded_call(call.id.as_deref(), &call.name, &call.arguments);
            forward(ClientItem::AsReceived)
        }
        None => {
            let unreadable =
                item.kind == "reasoning" && !echo.is_stored && !has_encrypted_content(&item);
            let entry = (!unreadable).then(|| raw.to_owned());
            ItemDecision { entry, client: ClientItem::AsReceived }
        }
    }
}

/// Decides about an item of the API's tool search. The item is either a call that Toolcrib answers, or part of the
/// provider's own search.
fn decide_search(raw: &str, item: &Item<'_>, router: &mut CallRouter) -> ItemDecision {
    if let Some(call) = item.client_call() {
        if !item.is_complete() {
            return ItemDecision { entry: None, client: ClientItem::Hidden };
        }
        let search = router.toolset().names().search;
        router.resolve(call.id.as_deref(), search, &call.arguments);
    } else {
        router.note_hidden_output();
        router.note_found_tools(item.fields.get("tools").map(tool_list::names).unwrap_or_default());
    }
    ItemDecision { entry: Some(raw.to_owned()), client: ClientItem::Hidden }
}

fn decide_call(
    raw: &str,
    item: &Item<'_>,
    call: &ItemCall,
    is_forwarded: bool,
    echo: &EchoRestorer,
    router: &mut CallRouter,
) -> ItemDecision {
    let (id, name) = (call.id.as_deref(), call.name.as_str());
    let entry = Some(call_for_upstream(raw, item, name, router));
    if is_forwarded || router.route(name) == CallRoute::Forward {
        router.note_forwarded_call(id, name, &call.arguments);
        let passes_through = router.toolset().passes_through();
        return match call_for_client(item, name, echo, router.toolset()).filter(|_| !passes_through)
        {
            Some(changed) => {
                router.note_hidden_output();
                ItemDecision { entry, client: ClientItem::Rewritten(changed) }
            }
            None => ItemDecision { entry, client: ClientItem::AsReceived },
        };
    }
    if !item.is_complete() {
        // The call is truncated and the client has not seen it, so nobody would answer it. It is left out of the
        // history.
        return ItemDecision { entry: None, client: ClientItem::Hidden };
    }
    let client = match router.resolve(id, name, &call.arguments) {
        ResolvedCall::Hidden => ClientItem::Hidden,
        ResolvedCall::Forward { name, arguments } => {
            let mut edits = vec![
                ("name", Some(json::quote(&name))),
                ("arguments", Some(json::quote(&arguments))),
            ];
            if item.kind == "custom_tool_call" {
                edits.extend([("type", Some(r#""function_call""#.to_owned())), ("input", None)]);
            }
            edits.extend(echo.restore_namespace(&item.fields, &name, router.toolset()));
            ClientItem::Rewritten(item.fields.with(&edits))
        }
    };
    ItemDecision { entry, client }
}

/// Returns the client's version of the call, or `None` if it is the same as the upstream's version.
pub(super) fn call_for_client(
    item: &Item<'_>,
    name: &str,
    echo: &EchoRestorer,
    toolset: &Toolset,
) -> Option<String> {
    let edits = echo.restore_namespace(&item.fields, name, toolset);
    (!edits.is_empty()).then(|| item.fields.with(&edits))
}

/// Returns the upstream's version of the call, as a history entry. An item loads a tool into a namespace that has the
/// tool's name. The API looks for the tool in that namespace even if the call was made before the tool was loaded, so
/// the call must have this namespace.
fn call_for_upstream(raw: &str, item: &Item<'_>, name: &str, router: &CallRouter) -> String {
    let toolset = router.toolset();
    let loads = matches!(toolset.mode(), Mode::Reference(_)) && toolset.is_deferred(name);
    if loads && item.fields.string("namespace").is_none() {
        item.fields.with(&[("namespace", Some(json::quote(name)))])
    } else {
        raw.to_owned()
    }
}

/// Whether the item is a call to a custom tool that the client did not declare.
fn is_undeclared_custom_call(item: &Item<'_>, router: &CallRouter) -> bool {
    item.kind == "custom_tool_call"
        && item.name().is_none_or(|name| !router.toolset().is_declared(&name))
}

fn is_tool_search(item: &Item<'_>) -> bool {
    matches!(item.kind.as_str(), "tool_search_call" | "tool_search_output")
}

/// Whether a reasoning item has encrypted content. Only such an item can be sent back if the API does not store the
/// response.
fn has_encrypted_content(item: &Item<'_>) -> bool {
    item.fields.get("encrypted_content").is_some_and(|raw| raw != "null")
}
