//! Tests of the deep tier of the proxy: the tools of a request are embedded in the background, and later searches find
//! what only the encoder finds.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_testkit::provider::{Action, Options, Provider, Step};

use crate::agent::Agent;
use crate::prefix_check::breaks;
use crate::replica::Replica;
use crate::scenario::{SCENARIOS, Scenario};
use crate::tools::{Size, Tool, tools};

/// A request that shares no word with its tool, [`COURT`]. By its words, it is a request for [`MUSIC`].
const QUERY: &str = "I want to play at Wimbledon";
const COURT: &str = "town__reserve_court";
const MUSIC: &str = "town__play_music";
const OTHER_TOOLS: usize = 60;
/// Size of a record in bytes: a key, a scale, a vector and a checksum.
const RECORD: usize = 16 + 4 + 384 + 8;
const ALL_RECORDS: usize = (OTHER_TOOLS + 2) * RECORD;
/// Maximum time to wait for the background threads, which is far longer than they need.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until a condition holds.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn all_tools() -> Vec<Tool> {
    let town = |name: &str, description: &str, parameter: &str| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}),
    };
    let mut all = tools(OTHER_TOOLS, Size::Usual);
    all.push(town(COURT, "Reserves a tennis court.", "date"));
    all.push(town(MUSIC, "Plays a song.", "song"));
    all
}

/// Starts a provider whose model searches twice and then says that it is done.
fn provider() -> Provider {
    let search = || Step::new([Action::search(QUERY)]);
    let steps = [search(), search(), Step::new([Action::text("Done.")])];
    Provider::start(Options::steps(steps)).unwrap()
}

/// Returns the content of all files of vectors. There is one file for each encoder, so there is at most one.
fn vectors(state: &Path) -> Option<Vec<u8>> {
    let mut files = fs::read_dir(state.join("toolcrib/vectors")).ok()?;
    let file = files.next()?.unwrap().path();
    assert!(files.next().is_none(), "several files");
    Some(fs::read(file).unwrap())
}

/// Plays one conversation. Returns the first hit of each search.
fn conversation(provider: &Provider, replica: &Replica) -> Vec<String> {
    provider.clear();
    let mut agent = Agent::new(SCENARIO, &all_tools(), "any");
    assert_eq!(agent.turn(&replica.url, false).text, "Done.");
    let requests = provider.requests();
    assert_eq!(requests.len(), 3, "two searches were hidden from the agent");
    assert_eq!(breaks(SCENARIO, &requests), []);
    let last = requests[2].json();
    let results = last["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    results.map(|result| first_hit(result["content"].as_str().unwrap())).collect()
}

fn first_hit(reply: &str) -> String {
    let reply: Value = serde_json::from_str(reply).unwrap();
    let name = reply["hits"][0]["name"].as_str();
    name.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// Chat Completions with the bridge.
const SCENARIO: Scenario = SCENARIOS[0];

#[test]
fn a_later_conversation_finds_what_only_the_encoder_finds() {
    let provider = provider();
    let config = SCENARIO.config(&provider.url, None);
    let replica = Replica::start(&config);
    // The first conversation does not wait for the encoder, so either tier may answer.
    for hit in conversation(&provider, &replica) {
        assert!([COURT, MUSIC].contains(&hit.as_str()), "{hit}");
    }
    let is_complete = || vectors(&replica.state()).is_some_and(|bytes| bytes.len() >= ALL_RECORDS);
    wait_until("all texts are embedded", is_complete);
    // The vectors are saved right before searches can use them.
    wait_until("the encoder ranks", || conversation(&provider, &replica)[1] == COURT);
    assert_eq!(conversation(&provider, &replica), [COURT, COURT]);
    let saved = vectors(&replica.state()).unwrap();
    assert_eq!(saved.len(), ALL_RECORDS);

    // A proxy that starts later has the vectors for its first search.
    let state = replica.state();
    let home = state.parent().unwrap();
    let later = Replica::start_with(&config, &[("HOME", home), ("XDG_STATE_HOME", &state)]);
    assert_eq!(conversation(&provider, &later), [COURT, COURT]);
    assert!(vectors(&state).unwrap() == saved, "the file changed");
}

/// A proxy with the tier `table` writes no vectors. To know when it would have written them, the test starts another
/// proxy later, and waits for its vectors.
#[test]
fn a_proxy_with_the_tier_table_embeds_nothing() {
    let provider = provider();
    let config = SCENARIO.config(&provider.url, None);
    let replica = Replica::start(&format!("{config}\n[rank]\ntier = 'table'\n"));
    assert_eq!(conversation(&provider, &replica), [MUSIC, MUSIC]);
    let other = Replica::start(&config);
    conversation(&provider, &other);
    let is_complete = || vectors(&other.state()).is_some_and(|bytes| bytes.len() >= ALL_RECORDS);
    wait_until("all texts are embedded", is_complete);
    assert_eq!(conversation(&provider, &replica), [MUSIC, MUSIC]);
    assert!(!replica.state().join("toolcrib/vectors").exists());
}
