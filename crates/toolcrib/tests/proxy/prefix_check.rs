//! Compares the requests of one conversation that the provider received, byte for byte.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use toolcrib_core::conversation::DEFAULT_MAX_REVEALS;
use toolcrib_testkit::provider::ReceivedRequest;

use crate::api::Api;
use crate::scenario::Scenario;

/// A request, split into its parts without parsing them.
pub(crate) struct RequestParts<'a> {
    pub(crate) entries: Vec<&'a str>,
    /// All fields except the history and those about streaming.
    rest: BTreeMap<&'a str, &'a str>,
}

impl<'a> RequestParts<'a> {
    pub(crate) fn read(api: Api, request: &'a ReceivedRequest) -> Self {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(&request.body).unwrap();
        let mut rest: BTreeMap<&str, &str> =
            fields.into_iter().map(|(key, raw)| (key, raw.get())).collect();
        let history = rest.remove(api.client().history()).unwrap();
        let entries: Vec<&RawValue> = serde_json::from_str(history).unwrap();
        rest.remove("stream");
        rest.remove("stream_options");
        Self { entries: entries.into_iter().map(RawValue::get).collect(), rest }
    }

    /// Returns the field `tools` as text.
    pub(crate) fn tools(&self) -> &'a str {
        self.rest["tools"]
    }

    /// Describes the first difference if `next` does not begin with this request. `first` is the first request of the
    /// conversation.
    fn first_difference(&self, next: &Self, scenario: Scenario, first: &Self) -> Option<String> {
        for key in self.rest.keys().chain(next.rest.keys()) {
            if scenario.may_change_tools() && *key == "tools" {
                let broken = match scenario.mode {
                    "append" => self.not_appended(next, first),
                    _ => self.not_revealed(next, scenario, first),
                };
                if broken.is_some() {
                    return broken;
                }
                continue;
            }
            if self.rest.get(key) != next.rest.get(key) {
                return Some(format!(
                    "`{key}` was\n{:?}\nand is\n{:?}",
                    self.rest.get(key),
                    next.rest.get(key)
                ));
            }
        }
        let at =
            (0..self.entries.len()).find(|at| next.entries.get(*at) != Some(&self.entries[*at]))?;
        let (was, is) = (self.entries[at], next.entries.get(at));
        Some(format!("entry {at} of {} was\n{was}\nand is\n{is:?}", self.entries.len()))
    }
}

impl<'a> RequestParts<'a> {
    /// Returns the text of each tool, byte for byte.
    fn each_tool(&self) -> Vec<&'a str> {
        let groups: Vec<&RawValue> = serde_json::from_str(self.tools()).unwrap();
        let groups = groups.into_iter().map(RawValue::get);
        groups
            .flat_map(|group| {
                let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(group).unwrap();
                match fields.get("functionDeclarations") {
                    Some(list) => {
                        let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap();
                        list.into_iter().map(RawValue::get).collect()
                    }
                    None => vec![group],
                }
            })
            .collect()
    }

    /// Describes the problem if the tools of `next` are not the tools of this request, possibly followed by others. If
    /// the engine's maximum of revealed tools is reached, the tools that were found first may be missing.
    fn not_appended(&self, next: &Self, first: &Self) -> Option<String> {
        let (own, was, is) = (first.each_tool(), self.each_tool(), next.each_tool());
        let is_full = is.len() - own.len() >= DEFAULT_MAX_REVEALS;
        let kept = if is_full { &own } else { &was };
        (!is.starts_with(kept)).then(|| format!("`tools` was\n{was:?}\nand is\n{is:?}"))
    }

    /// Describes the problem if a tool of `next` changed without a reason. A tool may be shown in full only if a new
    /// entry of the history names it, and become a stub again only if the maximum of revealed tools is reached.
    fn not_revealed(&self, next: &Self, scenario: Scenario, first: &Self) -> Option<String> {
        let (was, is) = (self.each_tool(), next.each_tool());
        if was.len() != is.len() {
            return Some(format!("{} tools became {}", was.len(), is.len()));
        }
        let added = next.entries[self.entries.len().min(next.entries.len())..].concat();
        let shown = first.each_tool().iter().zip(&is).filter(|(stub, is)| stub != is).count();
        let is_full = scenario.preset == "everruns@0.50" || shown == DEFAULT_MAX_REVEALS;
        was.iter().zip(&is).filter(|(was, is)| was != is).find_map(|(was, is)| {
            let (before, after) = (name_of(was), name_of(is));
            let is_shown = was.len() < is.len();
            // The new entries name the tool in a call, where a plain quote follows the name, or in a reply of
            // Toolcrib's, which is JSON in a string, so that the quote is escaped.
            let named = ["\\\"", "\""];
            // If the maximum of revealed tools is reached, the tools that were found first become stubs again.
            let is_hidden = is_full && is.len() < was.len();
            let is_found =
                is_shown && named.iter().any(|end| added.contains(&format!("{after}{end}")));
            let is_right = before == after && (is_found || is_hidden);
            (!is_right)
                .then(|| format!("`tools` changed, and nothing found it: was\n{was}\nand is\n{is}"))
        })
    }
}

/// Returns the name of a tool, in the format of any API.
fn name_of(tool: &str) -> String {
    let tool: Value = serde_json::from_str(tool).unwrap();
    let name = tool.get("name").unwrap_or(&tool["function"]["name"]);
    name.as_str().unwrap().to_owned()
}

/// Returns the index of each request that does not begin with the previous one, and what differs.
pub(crate) fn breaks(scenario: Scenario, requests: &[ReceivedRequest]) -> Vec<(usize, String)> {
    let sent: Vec<RequestParts<'_>> =
        requests.iter().map(|request| RequestParts::read(scenario.api, request)).collect();
    let pairs = sent.windows(2).enumerate();
    pairs
        .filter_map(|(at, pair)| {
            Some((at + 1, pair[0].first_difference(&pair[1], scenario, &sent[0])?))
        })
        .collect()
}
