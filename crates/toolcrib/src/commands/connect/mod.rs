//! `toolcrib connect`: moves the servers of clients into our config, and puts one entry for Toolcrib in their place.
//! `toolcrib disconnect` undoes that.
//!
//! Our config is written first and the client's file last, so that no server is lost if the command is interrupted.
//! Only the user's own files are changed, never a file in the working folder.

mod client_file;
mod client_format;
mod client_rules;
mod confirm;
pub(crate) mod disconnect;
mod launcher;
mod parsed_file;
mod plan;
mod preview;
mod proxy;
mod record;
mod report;
mod running;
mod session;
pub(crate) mod status;

use std::path::{Path, PathBuf};

use toolcrib_mcp::config::ClientKind;
use toolcrib_server::HttpSettings;

use crate::args::ConnectArgs;
use crate::commands::import::client_files::ClientFolders;
use crate::commands::import::merge::ServerMerge;
use crate::commands::import::target::Target;
use crate::commands::import::write_lock::WriteLock;
use crate::config::location::{Location, user_config};
use crate::output::{Failure, Output, print_stderr};
use client_format::Endpoint;
use launcher::{LaunchReason, ProcessStart};
use plan::{FilePlan, Planner};
use record::Records;
use report::FileReport;
use session::{ConnectReport, Session};

/// The config that servers are moved to.
struct ConfigFile {
    path: PathBuf,
    target: Target,
    is_default: bool,
}

impl ConfigFile {
    fn open(named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = named
            && path.extension().is_none_or(|ending| ending != "toml")
        {
            // Toolcrib would read another ending as the file of a client, in another format.
            return Err(Failure::input(
                format!("`{}`", path.display()),
                &"the name of a config that servers are added to must end in `.toml`",
                format!("use `--config {}`", path.with_extension("toml").display()),
            ));
        }
        let location = Location::find(named)?;
        let path = match &location {
            Some(location) => location.path().to_owned(),
            None => user_config().ok_or_else(|| {
                let problem = "there is no config folder";
                Failure::input(
                    "config",
                    &problem,
                    "set HOME or XDG_CONFIG_HOME, or name a file with `--config F`",
                )
            })?,
        };
        if let Some(location) = location.filter(|location| location.path().exists()) {
            // No servers are moved to a file that `mcp` would not use.
            if let (_, Some(warning)) = location.read()? {
                print_stderr(&format!("warning: {warning}"));
            }
        }
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self { target: Target::open(&path)?, path, is_default: named.is_none() })
    }
}

/// What `connect` has done.
pub(crate) struct Connected {
    /// Whether all clients are connected. False if the user answered no.
    pub(crate) is_done: bool,
    /// Whether servers were added to the config.
    pub(crate) has_new_servers: bool,
}

pub(crate) fn run(args: &ConnectArgs, output: &mut Output) -> Result<Connected, Failure> {
    confirm::check(args.yes, output.is_json())?;
    let _lock = WriteLock::take()?;
    let records = Records::load()?;
    let folder = std::env::current_dir().unwrap_or_default();
    let folders = ClientFolders::from_variables(|name| std::env::var_os(name), folder);
    let config = ConfigFile::open(args.config.as_deref())?;
    if args.proxy {
        return connect_proxy(args, &folders, &records, config.target.http(), output);
    }
    let (endpoint, launch) = endpoint(args, &config);
    let merge = ServerMerge::new(config.target.servers());
    let mut planner =
        Planner { folders: &folders, records: &records, endpoint, config: &config.path, merge };
    let mut plans = Vec::new();
    let is_named = !args.clients.is_empty();
    let clients = if is_named { args.clients.clone() } else { ClientKind::ALL.to_vec() };
    for client in clients {
        match planner.plan(client, is_named) {
            Ok(planned) => plans.extend(planned),
            Err(failure) => {
                plans.push(FilePlan { report: FileReport::failed(client, &failure), change: None });
            }
        }
    }
    if args.http {
        add_http_notes(&mut plans, &config);
    }
    let merge = planner.merge;
    let report = ConnectReport {
        clients: Vec::new(),
        config: Some(config.path.clone()),
        added: merge.added.clone(),
        launch: Some(launch),
        written: false,
        config_written: false,
    };
    let write_config = || {
        if merge.added.is_empty() && config.path.exists() {
            return Ok(false);
        }
        let added = merge.added.clone();
        config.target.write(merge.into_servers(), &added).map(|()| true)
    };
    let has_new_servers = !report.added.is_empty();
    let session = Session { args, records: &records, plans, report };
    let is_done = session.run(write_config, output)?;
    Ok(Connected { is_done, has_new_servers: is_done && has_new_servers })
}

/// Returns how clients reach Toolcrib, and why they use that command.
fn endpoint(args: &ConnectArgs, config: &ConfigFile) -> (Endpoint, LaunchReason) {
    let start = ProcessStart::of_this_process();
    let is_same = |path: &Path| path.canonicalize().is_ok_and(|real| real == start.executable);
    let launcher::Launch { command, args: mut words, reason } = start.launch(is_same);
    words.push("mcp".to_owned());
    if !config.is_default {
        words.extend(["--config".to_owned(), config.path.to_string_lossy().into_owned()]);
    }
    let url = args.http.then(|| format!("{}/mcp", proxy::origin(config.target.http())));
    (Endpoint { command, args: words, url }, reason)
}

fn add_http_notes(plans: &mut [FilePlan], config: &ConfigFile) {
    let http = config.target.http();
    let needs_token = http.token.is_some() || !http.listen.ip().is_loopback();
    let option = if config.is_default {
        String::new()
    } else {
        format!(" --config {}", config.path.display())
    };
    for report in plans.iter_mut().filter(|plan| plan.change.is_some()).map(|plan| &mut plan.report)
    {
        if !client_format::can_have_url(report.client) {
            report
                .notes
                .push("its file cannot contain URLs, so the entry starts `toolcrib mcp`".into());
            continue;
        }
        report.notes.push(format!("start `toolcrib serve{option}` before you use the client"));
        if needs_token {
            report.notes.push(
                "the server requires a token: add the header `Authorization: Bearer TOKEN` to the entry".into(),
            );
        }
    }
}

fn connect_proxy(
    args: &ConnectArgs,
    folders: &ClientFolders,
    records: &Records,
    http: &HttpSettings,
    output: &mut Output,
) -> Result<Connected, Failure> {
    let names = proxy::CLIENTS.map(ClientKind::name).join(", ");
    if args.clients.is_empty() {
        return Err(Failure::input(
            "`--proxy`",
            &"no client given",
            format!("name one or more of {names}"),
        ));
    }
    let origin = proxy::origin(http);
    let plan = |client: &ClientKind| match proxy::plan(*client, folders, records, &origin) {
        Ok(mut plan) => {
            if plan.change.is_some() {
                plan.report.notes.push("start `toolcrib serve` before you use the client".into());
            }
            plan
        }
        Err(failure) => FilePlan { report: FileReport::failed(*client, &failure), change: None },
    };
    let plans = args.clients.iter().map(plan).collect();
    let report = ConnectReport {
        clients: Vec::new(),
        config: None,
        added: Vec::new(),
        launch: None,
        written: false,
        config_written: false,
    };
    let is_done = Session { args, records, plans, report }.run(|| Ok(false), output)?;
    Ok(Connected { is_done, has_new_servers: false })
}
