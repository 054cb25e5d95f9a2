//! Tests of the option `--listen`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::{file, toolcrib};

/// Starts `serve`, waits for the address that it prints, and stops it.
fn printed_address(args: &[&str]) -> String {
    let config = file("config.toml", "");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["serve", "--config", &config])
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serve.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address =
        lines.find_map(|line| Some(line.split_once("listening on http://")?.1.to_owned()));
    let address = address.unwrap();
    serve.kill().unwrap();
    serve.wait().unwrap();
    address.split('/').next().unwrap().to_owned()
}

/// With port 0, the system chooses a free port, so the tests cannot disturb each other.
#[test]
fn short_addresses_are_on_this_machine() {
    for address in ["localhost:0", ":0", "0", "127.0.0.1:0"] {
        let printed = printed_address(&["--listen", address]);
        assert!(printed.starts_with("127.0.0.1:"), "{address}: {printed}");
    }
}

#[test]
fn a_host_name_is_refused_with_a_hint() {
    let run = toolcrib(&["serve", "--listen", "example.com:4180"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert_eq!(
        run.err,
        "error: invalid value 'example.com:4180' for '--listen <ADDR>': a host name other than `localhost`\n\
         hint: write the IP address of one of this machine's networks, or 0.0.0.0:4180 for all of them\n"
    );
    let help = toolcrib(&["serve", "--help"]).out;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`:4180` and `localhost:4180` mean 127.0.0.1:4180"), "{help}");
}
