//! `toolcrib login`: signs in to a server that asks for it.

use toolcrib_mcp::config::{Server, Transport};
use toolcrib_mcp::oauth::{Login, Upstream};
use toolcrib_server::expand::from_system;

use super::{block_on, loaded, state};
use crate::args::{LoginArgs, Overrides};
use crate::config::location::{Location, note_unused};
use crate::output::{Failure, Output};

pub(crate) fn run(args: &LoginArgs, output: &mut Output) -> Result<bool, Failure> {
    let location = Location::find(args.config.as_deref())?;
    note_unused(location.as_ref());
    let found = loaded(location.as_ref(), &Overrides::default())?;
    let servers = &found.sections.gateway.servers;
    let server = servers.get(&args.server).ok_or_else(|| {
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        let hint = if names.is_empty() {
            "`toolcrib import` finds the servers of your other clients; `--config F` names another file".to_owned()
        } else {
            format!("the config has: {}", names.join(", "))
        };
        Failure::input(format!("`{}`", args.server), &"no such server", hint)
    })?;
    let account = account(&args.server, server)?;
    let state = state().ok_or_else(|| {
        let problem = "there is no state folder to keep the login in";
        Failure::input(format!("`{}`", args.server), &problem, "set HOME or XDG_STATE_HOME")
    })?;
    block_on(async {
        let failed = |error: toolcrib_mcp::oauth::Error| {
            Failure::input(format!("`{}`", args.server), &error, error.hint())
        };
        let login = Login::start(&account, &state).await.map_err(failed)?;
        output.line("Open this address in a browser and sign in:")?;
        output.line(login.url().as_str())?;
        output.finish()?;
        login.finish().await.map_err(failed)?;
        output.line(&format!(
            "Signed in to `{}`. A running gateway takes it up by itself.",
            args.server
        ))?;
        Ok(true)
    })
}

fn account(name: &str, server: &Server) -> Result<Upstream, Failure> {
    let place = format!("`{name}`");
    let server = server.expanded(name, &from_system);
    let server = server.map_err(|error| Failure::input(&place, &error, error.hint.clone()))?;
    let Transport::Http { url, oauth, .. } = &server.transport else {
        let hint = "only servers with a `url` can ask for a login";
        return Err(Failure::input(&place, &"a child process needs no login", hint));
    };
    let odd = || Failure::input(&place, &"the address cannot be read", "check its `url`");
    Upstream::new(name, url, oauth).ok_or_else(odd)
}
