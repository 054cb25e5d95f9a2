//! Checks what the client gets for any response of an upstream.
//!
//! The first line of an input says how to run it, as described at [`Head`](crate::client::Head). After `s`, the rest
//! contains the bytes of streams, and after `w`, complete bodies, in both cases with a line of equal signs between the
//! rounds. After `g` and `h`, streams and bodies are generated from the rest. The last round is repeated as long as the
//! turn continues.

use toolcrib_dialect::{Api, DEFAULT_HIDDEN_ROUNDS, Mode};
use toolcrib_text::json::{self, Fields};

use crate::client::{self, head, history_key};
use crate::driven_turn::{DrivenTurn, NextStep};
use crate::{client_reader, generated_responses};

/// The line between two rounds.
const GAP: &str = "=====\n";

/// Runs an input against a client of this API, and checks what the client and the upstream receive.
pub fn check(api: Api, data: &[u8]) {
    let (head, rest) = head(api, data);
    let rounds = match head.kind {
        b's' | b'w' => parted(rest),
        kind => generated_responses::rounds(api, rest, kind == b'h'),
    };
    if matches!(head.kind, b'w' | b'h') {
        return check_whole(api, head.mode, &rounds);
    }
    let (whole, told) = stream(api, head.mode, &rounds, usize::MAX);
    let (cut, _) = stream(api, head.mode, &rounds, head.cut);
    assert_eq!(text(&whole), text(&cut), "in pieces of {}", head.cut);
    let upstream: Vec<_> = told.iter().flat_map(|round| client_reader::events(round)).collect();
    let events = client_reader::events(&whole);
    client_reader::check_stream(api, &events);
    if client_reader::is_clean(&upstream) {
        assert!(client_reader::is_clean(&events), "{}", text(&whole));
    }
    check_size(api, &told, whole.len());
}

/// Splits an input into the responses of its rounds.
pub fn parted(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rounds = vec![Vec::new()];
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match rounds.last_mut() {
            Some(round) if line != GAP.as_bytes() => round.extend_from_slice(line),
            _ => rounds.push(Vec::new()),
        }
    }
    rounds
}

/// Plays the rounds as streams, in pieces of `cut` bytes. Returns everything that the client receives, and the
/// responses of the rounds that were played.
fn stream(api: Api, mode: Mode, rounds: &[Vec<u8>], cut: usize) -> (Vec<u8>, Vec<&Vec<u8>>) {
    let mut turn = client::turn(api, mode, true);
    let mut out = Vec::new();
    let mut told = Vec::new();
    let mut sent = turn.request();
    loop {
        assert!(told.len() <= DEFAULT_HIDDEN_ROUNDS, "a turn without an end");
        let round = &rounds[told.len().min(rounds.len() - 1)];
        told.push(round);
        round.chunks(cut).for_each(|piece| turn.bytes(piece, &mut out));
        match turn.end(&mut out) {
            NextStep::Again => sent = again(api, mode, &turn, &sent),
            NextStep::Done(_) => return (out, told),
        }
    }
}

fn check_whole(api: Api, mode: Mode, rounds: &[Vec<u8>]) {
    let mut turn = client::turn(api, mode, false);
    let mut told = Vec::new();
    let mut sent = turn.request();
    let body = loop {
        assert!(told.len() <= DEFAULT_HIDDEN_ROUNDS, "a turn without an end");
        let round = &rounds[told.len().min(rounds.len() - 1)];
        told.push(round);
        match turn.complete_response(round) {
            // The response passes to the client unchanged.
            None => return,
            Some(NextStep::Again) => sent = again(api, mode, &turn, &sent),
            Some(NextStep::Done(done)) => break done.body.expect("a body"),
        }
    };
    assert!(client_reader::is_json(&body), "{body}");
    client_reader::check_whole(api, &body);
    check_size(api, &told, body.len());
}

/// Returns the request of the next round. Checks that its history begins with the history of `before`, the request of
/// the previous round, byte for byte.
fn again(api: Api, mode: Mode, turn: &DrivenTurn, before: &str) -> String {
    let after = turn.request();
    let [old, new] = [before, &after].map(|body| Fields::read(body).expect("a request is JSON"));
    for ((key, old), (same, new)) in old.iter().zip(new.iter()) {
        assert_eq!(key, same);
        if key == history_key(api) {
            let begun = old.strip_suffix(']').expect("a history is a list");
            assert!(new.starts_with(begun) && new.len() > old.len(), "{old}\n{new}");
            assert!(json::items(new).is_some(), "{new}");
        } else if key != "tools" || !matches!(mode, Mode::Append | Mode::Reveal) {
            assert_eq!(old, new, "{key}");
        }
    }
    after
}

/// Checks that the client does not receive too much. The limit is the size of all responses and of the client's tools,
/// multiplied by the number of lines and names in the responses.
fn check_size(api: Api, told: &[&Vec<u8>], got: usize) {
    let bytes: usize = told.iter().map(|round| round.len()).sum();
    let lines = told.iter().flat_map(|round| round.iter()).filter(|byte| **byte == b'\n').count();
    let names = told.iter().map(|round| text(round).matches("name").count()).sum::<usize>();
    let most = (bytes + client::tools(api).len()) * (lines + names + 2);
    assert!(got <= most, "{got} bytes for {bytes}");
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
