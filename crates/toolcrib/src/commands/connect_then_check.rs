//! `toolcrib connect`, followed by a check of the servers that it has added.
//!
//! This is not part of `connect`, because `doctor` uses the records of `connect`.

use std::io::IsTerminal as _;

use super::connect::{self, Connected};
use super::gateway::doctor;
use crate::args::{ConnectArgs, DoctorArgs, Overrides};
use crate::output::{Failure, Output};

/// Connects clients. Then checks whether the servers work in Toolcrib, too. This also fetches their lists, so that the
/// clients' first searches need not wait for the servers. Without a terminal, the user is only told how to check them.
pub(crate) fn run(args: &ConnectArgs, output: &mut Output) -> Result<bool, Failure> {
    let Connected { is_done, has_new_servers } = connect::run(args, output)?;
    if !has_new_servers || output.is_json() {
        return Ok(is_done);
    }
    if !std::io::stdout().is_terminal() {
        output.line("`toolcrib doctor` checks the servers.")?;
        return Ok(is_done);
    }
    output.line("\nChecking the servers:")?;
    output.finish()?;
    let check =
        DoctorArgs { config: args.config.clone(), overrides: Overrides::default(), json: false };
    doctor::run(&check, output)?;
    Ok(is_done)
}
