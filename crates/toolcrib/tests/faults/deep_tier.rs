//! Tests of the deep tier of a gateway: tools are embedded in the background, and their vectors are kept in a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::environment::TestEnvironment;
use crate::probe::{until, until_true};
use crate::raw_client::{ERAS, Era, RawClient};

/// A request that shares no word with its tool, [`COURT`]. By its words, it is a request for [`MUSIC`].
const QUERY: &str = "I want to play at Wimbledon";
const COURT: &str = "town__reserve_court";
const MUSIC: &str = "town__play_music";
/// The name and the description of each tool.
const TOOLS: [(&str, &str); 4] = [
    ("reserve_court", "Reserves a tennis court."),
    ("play_music", "Plays a song."),
    ("show_balance", "Reports the money on an account."),
    ("list_beds", "Lists beds for sale."),
];
/// Size of a record in bytes: a key, a scale, a vector and a checksum.
const RECORD: usize = 16 + 4 + 384 + 8;
const DEFERRED: &str = "[activation]\nmode = 'on'\n";

/// Writes the tools for `--define`. The file is replaced atomically, as careful editors do.
fn define(file: &Path, tools: &[(&str, &str)]) {
    let tool = |(name, description): &(&str, &str)| json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    let draft = file.with_extension("new");
    fs::write(&draft, tools.iter().map(tool).collect::<Value>().to_string()).unwrap();
    fs::rename(draft, file).unwrap();
}

fn definitions(environment: &TestEnvironment) -> PathBuf {
    environment.folder.join("tools.json")
}

/// Returns an environment with a server `town` that has these tools. `more` is added to the config.
fn town(name: &str, tools: &[(&str, &str)], more: &str) -> TestEnvironment {
    let environment = TestEnvironment::new(name).with(more);
    let file = definitions(&environment);
    define(&file, tools);
    environment.faulty("town", &["--define", file.to_str().unwrap()])
}

/// Returns the content of all files of vectors. There is one file for each encoder, so there is at most one.
fn vectors(environment: &TestEnvironment) -> Option<Vec<u8>> {
    let mut files = fs::read_dir(environment.state().join("vectors")).ok()?;
    let file = files.next()?.unwrap().path();
    assert!(files.next().is_none(), "several files");
    Some(fs::read(file).unwrap())
}

/// Waits until the file of vectors has this many records, and returns its content.
fn wait_for_records(environment: &TestEnvironment, count: usize) -> Vec<u8> {
    let complete = || vectors(environment).filter(|vectors| vectors.len() >= count * RECORD);
    let (vectors, time) = until("all texts are embedded", complete);
    crate::print_duration("until all texts are embedded", time);
    assert_eq!(vectors.len(), count * RECORD);
    vectors
}

/// Returns the name of the first hit.
fn first_hit(reply: &Value) -> &str {
    reply["hits"][0]["name"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

/// Runs `toolcrib search` for [`QUERY`] with the config of the gateway, and returns the name of the first hit.
fn first_hit_on_the_command_line(environment: &TestEnvironment, tier: &str) -> String {
    let mut command = environment.toolcrib(&["search", "--tier", tier, "--json", QUERY]);
    let done = command.stdout(Stdio::piped()).output().unwrap();
    first_hit(&serde_json::from_slice(&done.stdout).unwrap()).to_owned()
}

#[test]
fn a_gateway_embeds_its_tools_in_the_background_and_only_once() {
    for era in ERAS {
        let environment = town(&format!("deep-{era:?}"), &TOOLS, DEFERRED);
        let peer = environment.stdio(era);
        peer.ready(COURT);
        // The first search does not wait for the encoder, so either tier may answer.
        let first = peer.search(QUERY);
        assert!([COURT, MUSIC].contains(&first_hit(&first)), "{first}");
        let saved = wait_for_records(&environment, TOOLS.len());
        until_true("the encoder ranks", || first_hit(&peer.search(QUERY)) == COURT);
        drop(peer);

        assert_eq!(first_hit_on_the_command_line(&environment, "table"), MUSIC);
        assert_eq!(first_hit_on_the_command_line(&environment, "deep"), COURT);

        // A gateway that starts later ranks with the saved vectors from the first search on.
        let peer = environment.stdio(era);
        peer.ready(COURT);
        assert_eq!(first_hit(&peer.search(QUERY)), COURT);
        drop(peer);
        assert!(vectors(&environment).unwrap() == saved, "{era:?}: the file changed");
    }
}

#[test]
fn a_gateway_over_http_shares_its_vectors_with_all_clients() {
    let environment = town("deep-http", &TOOLS, DEFERRED);
    let gateway = environment.serve();
    let peers = ERAS.map(|era| gateway.peer(era));
    for peer in &peers {
        peer.ready(COURT);
    }
    wait_for_records(&environment, TOOLS.len());
    for peer in &peers {
        until_true("the encoder ranks", || first_hit(&peer.search(QUERY)) == COURT);
    }
    assert_eq!(vectors(&environment).unwrap().len(), TOOLS.len() * RECORD);
}

/// Waits until a search for the name finds this tool.
fn wait_until_listed(peer: &RawClient, name: &str) {
    let query = format!("select:{name}");
    until_true(name, || peer.search(&query)["hits"][0]["name"] == name);
}

#[test]
fn only_new_tools_are_embedded_when_a_list_changes() {
    let environment = town("deep-change", &TOOLS[1..], DEFERRED);
    let peer = environment.stdio(Era::Older);
    peer.ready(MUSIC);
    let before = wait_for_records(&environment, TOOLS.len() - 1);
    define(&definitions(&environment), &TOOLS);
    wait_until_listed(&peer, COURT);
    let after = wait_for_records(&environment, TOOLS.len());
    assert!(after.starts_with(&before), "the records of the other tools changed");
    until_true("the encoder ranks", || first_hit(&peer.search(QUERY)) == COURT);

    // A tool that disappears and comes back is not embedded again.
    define(&definitions(&environment), &TOOLS[1..]);
    let query = format!("select:{COURT}");
    until_true("the tool is gone", || peer.search(&query)["hits"] == json!([]));
    define(&definitions(&environment), &TOOLS);
    wait_until_listed(&peer, COURT);
    assert_eq!(first_hit(&peer.search(QUERY)), COURT);
    drop(peer);
    assert!(vectors(&environment).unwrap() == after, "the file changed");
}

/// More tools than one thread embeds at once.
#[test]
fn a_large_list_is_embedded_completely() {
    const TOOLS_IN_LIST: usize = 100;
    let names: Vec<String> =
        (0..TOOLS_IN_LIST - TOOLS.len()).map(|at| format!("door_{at}")).collect();
    let doors = names.iter().map(|name| (name.as_str(), "Opens a door."));
    let tools: Vec<(&str, &str)> = doors.chain(TOOLS).collect();
    let environment = town("deep-large", &tools, DEFERRED);
    let peer = environment.stdio(Era::Older);
    peer.ready(COURT);
    let vectors = wait_for_records(&environment, TOOLS_IN_LIST);
    let keys: std::collections::BTreeSet<&[u8]> =
        vectors.chunks(RECORD).map(|record| &record[..16]).collect();
    assert_eq!(keys.len(), TOOLS_IN_LIST, "each text is embedded once");
    until_true("the encoder ranks", || first_hit(&peer.search(QUERY)) == COURT);
}

/// A gateway with the tier `table` writes no vectors. To know when it would have written them, the test starts another
/// gateway later, with the same tools, and waits for its vectors.
#[test]
fn a_gateway_with_the_tier_table_embeds_nothing() {
    let table = format!("{DEFERRED}[rank]\ntier = 'table'\n");
    let environment = town("deep-off", &TOOLS, &table);
    let peer = environment.stdio(Era::Older);
    peer.ready(COURT);
    assert_eq!(first_hit(&peer.search(QUERY)), MUSIC);

    let other = town("deep-on", &TOOLS, DEFERRED);
    let other_peer = other.stdio(Era::Older);
    other_peer.ready(COURT);
    other_peer.search(QUERY);
    wait_for_records(&other, TOOLS.len());

    assert_eq!(first_hit(&peer.search(QUERY)), MUSIC);
    drop(peer);
    assert!(!environment.state().join("vectors").exists());
}

/// Another user who can write to the folder could plant vectors there. The gateway then keeps its vectors in memory.
#[test]
fn a_gateway_does_not_use_a_folder_that_others_may_write_to() {
    use std::os::unix::fs::PermissionsExt as _;
    let environment = town("deep-shared", &TOOLS, DEFERRED);
    let folder = environment.state().join("vectors");
    fs::create_dir_all(&folder).unwrap();
    for own in [environment.state().parent().unwrap(), &environment.state()] {
        fs::set_permissions(own, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let peer = environment.stdio(Era::Older);
    peer.ready(COURT);
    until_true("the encoder ranks", || first_hit(&peer.search(QUERY)) == COURT);
    let stderr = environment.stderr();
    for action in ["read", "write"] {
        assert!(stderr.contains(&format!("cannot {action} the vectors of tools: ")), "{stderr}");
    }
    assert!(stderr.contains(&format!("chmod go-w {}", folder.display())), "{stderr}");
    drop(peer);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "a file was written");
}
