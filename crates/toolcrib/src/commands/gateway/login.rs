//! `toolcrib login`: signs in to a server that requires OAuth.

use toolcrib_mcp::config::{Server, Transport};
use toolcrib_mcp::oauth::{Login, SignInTarget};
use toolcrib_server::expand::from_system;

use super::{block_on, load_config_with_servers, state_folder};
use crate::args::{LoginArgs, Overrides};
use crate::config::location::{Location, note_unused_config};
use crate::output::{Failure, Output};

pub(crate) fn run(args: &LoginArgs, output: &mut Output) -> Result<bool, Failure> {
    let location = Location::find(args.config.as_deref())?;
    note_unused_config(location.as_ref());
    let config = load_config_with_servers(location.as_ref(), &Overrides::default())?;
    let servers = &config.sections.gateway.servers;
    let server = servers.get(&args.server).ok_or_else(|| {
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        let hint = if names.is_empty() {
            "the config has no servers: `toolcrib import` finds those of your other clients, or name another file with `--config F`".to_owned()
        } else {
            format!("the servers in the config are: {}", names.join(", "))
        };
        Failure::input(format!("`{}`", args.server), &"no such server", hint)
    })?;
    let account = account(&args.server, server)?;
    let state = state_folder().ok_or_else(|| {
        let problem = "the login cannot be saved, because there is no state folder";
        Failure::input(format!("`{}`", args.server), &problem, "set HOME or XDG_STATE_HOME")
    })?;
    block_on(async {
        let failed = |error: toolcrib_mcp::oauth::Error| {
            Failure::input(format!("`{}`", args.server), &error, error.hint())
        };
        let login = Login::start(&account, &state).await.map_err(failed)?;
        output.line("Open this URL in a browser and sign in:")?;
        output.line(login.url().as_str())?;
        output.finish()?;
        login.finish().await.map_err(failed)?;
        output.line(&format!(
            "Signed in to `{}`. A running gateway reconnects to it automatically.",
            args.server
        ))?;
        Ok(true)
    })
}

fn account(name: &str, server: &Server) -> Result<SignInTarget, Failure> {
    let place = format!("`{name}`");
    let server = server.expanded(name, &from_system);
    let server = server.map_err(|error| Failure::input(&place, &error, error.hint.clone()))?;
    let Transport::Http { url, oauth, .. } = &server.transport else {
        let hint = "only servers with a `url` can require a login";
        return Err(Failure::input(
            &place,
            &"this server runs as a child process, which needs no login",
            hint,
        ));
    };
    let invalid =
        || Failure::input(&place, &"its `url` is not a valid URL", "correct it in the config");
    SignInTarget::new(name, url, oauth).ok_or_else(invalid)
}
