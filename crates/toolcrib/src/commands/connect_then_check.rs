//! `toolcrib connect`, followed by a check of the servers that it has added.
//!
//! This is not in the module `connect`, because the module `doctor` uses the records of `connect`.

use std::io::IsTerminal as _;

use super::connect::{self, Connected};
use super::gateway::doctor;
use crate::args::{ConnectArgs, DoctorArgs, Overrides};
use crate::output::{Failure, Output};

/// Connects clients. Then starts the new servers once, to check that they work in Toolcrib, too. This also saves their
/// lists, so that the first searches of clients need not wait for the servers. If standard output is not a terminal, a
/// line names the command that checks the servers instead.
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
