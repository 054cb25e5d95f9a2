//! What the provider got: the requests of one conversation, byte for byte.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use toolcrib_testkit::provider::Request;

use crate::voice::Api;
use crate::way::Way;

/// A request of which nothing is read but where its parts begin and end.
pub(crate) struct Sent<'a> {
    pub(crate) entries: Vec<&'a str>,
    /// Everything but the history and what says how the answer is to come.
    rest: BTreeMap<&'a str, &'a str>,
}

impl<'a> Sent<'a> {
    pub(crate) fn read(api: Api, request: &'a Request) -> Self {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(&request.body).unwrap();
        let mut rest: BTreeMap<&str, &str> =
            fields.into_iter().map(|(key, raw)| (key, raw.get())).collect();
        let history = rest.remove(api.voice().history()).unwrap();
        let entries: Vec<&RawValue> = serde_json::from_str(history).unwrap();
        rest.remove("stream");
        rest.remove("stream_options");
        Self { entries: entries.into_iter().map(RawValue::get).collect(), rest }
    }

    /// `tools`, as text.
    pub(crate) fn tools(&self) -> &'a str {
        self.rest["tools"]
    }

    /// Where `next` does not go on from here: the first part that differs, if any does.
    fn broken_by(&self, next: &Self, grows: bool) -> Option<String> {
        for key in self.rest.keys().chain(next.rest.keys()) {
            if grows && *key == "tools" {
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

/// Every place where a request does not begin with the one before it, and what differs.
pub(crate) fn breaks(way: Way, requests: &[Request]) -> Vec<(usize, String)> {
    let sent: Vec<Sent<'_>> = requests.iter().map(|request| Sent::read(way.api, request)).collect();
    let pairs = sent.windows(2).enumerate();
    pairs
        .filter_map(|(at, pair)| Some((at + 1, pair[0].broken_by(&pair[1], way.grows())?)))
        .collect()
}
