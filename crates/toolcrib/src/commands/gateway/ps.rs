//! `toolcrib ps`, `stop` and `restart`: show and control the background gateways of the user.

use std::path::Path;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use tokio::io::AsyncReadExt as _;
use toolcrib_mcp::background::{
    BackgroundSocket, BackgroundStatus, GatewayStream, Hello, HelloReply, ServerProcessStatus,
    SocketError,
};

use super::background::{JoinError, ask, ask_on_stream};
use super::{block_on, gateway_failure, state_folder};
use crate::args::{PsArgs, RestartArgs, StopArgs};
use crate::output::{Failure, Output, print_stderr};

/// How long a background gateway may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What happened in one background gateway.
#[derive(Serialize)]
struct Outcome {
    /// The process id of the background gateway. It is missing if the background gateway does not respond and was not
    /// killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The background gateways of the user.
#[derive(Default)]
struct Found {
    running: Vec<(BackgroundSocket, BackgroundStatus)>,
    /// Those that accept a connection but do not answer.
    unresponsive: Vec<BackgroundSocket>,
}

/// `toolcrib ps`. Returns false if no background gateway answered.
pub(crate) fn list(args: &PsArgs, output: &mut Output) -> Result<bool, Failure> {
    let Found { running, unresponsive } = block_on(find(args.config.as_deref()))?;
    warn_unresponsive(&unresponsive);
    let statuses: Vec<BackgroundStatus> = running.into_iter().map(|(_, status)| status).collect();
    if output.is_json() {
        output.document(&statuses)?;
    } else if statuses.is_empty() && unresponsive.is_empty() {
        print_nothing_runs(args.config.as_deref());
    } else {
        for (index, status) in statuses.iter().enumerate() {
            if index > 0 {
                output.line("")?;
            }
            print(status, output)?;
        }
    }
    Ok(!statuses.is_empty())
}

/// `toolcrib stop`. Kills background gateways that do not respond. Returns false if no background gateway was running.
pub(crate) fn stop(args: &StopArgs, output: &mut Output) -> Result<bool, Failure> {
    let outcomes = block_on(async {
        let mut outcomes = Vec::new();
        let Found { running, unresponsive } = find(args.config.as_deref()).await?;
        for (socket, status) in running {
            let asked = ask_on_stream(&socket, &Hello::Stop, ANSWER_TIMEOUT).await;
            outcomes.push(match asked {
                Ok((reply, stream)) => {
                    let mut outcome = outcome(status.pid, Ok(reply));
                    if outcome.done.is_some() {
                        outcome.done = Some(wait_for_end(stream).await);
                    }
                    outcome
                }
                Err(JoinError::Disconnected) => {
                    let done = Some("was already stopping".to_owned());
                    Outcome { pid: Some(status.pid), done, problem: None }
                }
                Err(error) => outcome(status.pid, Err(error)),
            });
        }
        for socket in unresponsive {
            outcomes.push(match socket.kill_gateway().await {
                Ok(pid) => {
                    wait_until_closed(&socket).await;
                    let done = "did not respond, and was killed".to_owned();
                    Outcome { pid: Some(pid), done: Some(done), problem: None }
                }
                Err(error) => Outcome { pid: None, done: None, problem: Some(error.to_string()) },
            });
        }
        Ok(outcomes)
    })?;
    report(&outcomes, "background gateway", args.config.as_deref(), output)
}

/// `toolcrib restart SERVER`. Returns false if no background gateway was running, or if one of them did not answer or does
/// not have the server.
pub(crate) fn restart(args: &RestartArgs, output: &mut Output) -> Result<bool, Failure> {
    let hello = Hello::Restart(args.server.clone());
    let outcomes = block_on(async {
        let mut outcomes = Vec::new();
        let Found { running, unresponsive } = find(args.config.as_deref()).await?;
        for _ in unresponsive {
            let problem = format!(
                "did not answer within {} s; `toolcrib stop` ends it",
                ANSWER_TIMEOUT.as_secs()
            );
            outcomes.push(Outcome { pid: None, done: None, problem: Some(problem) });
        }
        for (socket, status) in running {
            let mut outcome = outcome(status.pid, ask(&socket, &hello, ANSWER_TIMEOUT).await);
            if let Some(problem) = &mut outcome.problem {
                let mut names: Vec<_> = status.servers.iter().map(|it| it.name.as_str()).collect();
                names.dedup();
                *problem = format!("{problem}; its servers are: {}", names.join(", "));
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    })?;
    report(&outcomes, "background gateway", args.config.as_deref(), output)
}

/// Returns the status of every background gateway of the user that answers.
pub(in super::super) async fn running_gateways() -> Result<Vec<BackgroundStatus>, Failure> {
    let Found { running, unresponsive } = find(None).await?;
    warn_unresponsive(&unresponsive);
    Ok(running.into_iter().map(|(_, status)| status).collect())
}

/// Finds the background gateways of the user. `config` restricts them to one config file.
async fn find(config: Option<&Path>) -> Result<Found, Failure> {
    let Some(state) = state_folder() else { return Ok(Found::default()) };
    let failed = |error: SocketError| {
        gateway_failure(
            &error,
            "check the state folder; by default it is `~/.local/state/toolcrib`",
        )
    };
    let canonical = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut found = Found::default();
    for socket in BackgroundSocket::all(&state).map_err(failed)? {
        match ask(&socket, &Hello::Status, ANSWER_TIMEOUT).await {
            Ok(HelloReply::Status(status)) => match serde_json::from_value(status) {
                Ok(status) => found.running.push((socket, status)),
                Err(error) => print_stderr(&format!(
                    "warning: the status of a background gateway of another version cannot be read: {error}"
                )),
            },
            // The socket was left behind by a process that was killed.
            Err(JoinError::Socket(error)) if error.is_unused() => {}
            Err(JoinError::TimedOut { .. }) => found.unresponsive.push(socket),
            Err(JoinError::Socket(error)) if error.is_overloaded() => {
                found.unresponsive.push(socket);
            }
            // It is just ending.
            Err(JoinError::Disconnected) | Ok(_) => {}
            Err(error) => print_stderr(&format!("warning: {error}")),
        }
    }
    if let Some(config) = config {
        found.running.retain(|(_, status)| canonical(config) == canonical(&status.config));
        let absolute = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let of_config = BackgroundSocket::new(&state, &absolute, "");
        found.unresponsive.retain(|socket| socket.has_same_config(&of_config));
    }
    Ok(found)
}

fn warn_unresponsive(sockets: &[BackgroundSocket]) {
    for socket in sockets {
        print_stderr(&format!(
            "warning: a background gateway did not answer within {} s; its log is `{}`\nhint: `toolcrib stop` ends it",
            ANSWER_TIMEOUT.as_secs(),
            socket.log_path().display()
        ));
    }
}

fn outcome(pid: u32, reply: Result<HelloReply, JoinError>) -> Outcome {
    let (done, problem) = match reply {
        Ok(HelloReply::Done(done)) => (Some(done), None),
        Ok(HelloReply::Rejected(problem)) => (None, Some(problem)),
        Ok(_) => (None, Some("it sent an unexpected answer".to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    Outcome { pid: Some(pid), done, problem }
}

/// Waits until a background gateway closes the connection, which it does when its servers have ended. Returns what to
/// print.
async fn wait_for_end((mut input, _output): GatewayStream) -> String {
    let mut rest = Vec::new();
    match tokio::time::timeout(ANSWER_TIMEOUT, input.read_to_end(&mut rest)).await {
        Ok(_) => "stopped".to_owned(),
        Err(_) => "is stopping; it waits for its servers".to_owned(),
    }
}

/// Waits until a killed background gateway has closed its socket. Its threads may take a moment to end.
async fn wait_until_closed(socket: &BackgroundSocket) {
    let closed = async {
        while socket.connect().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(ANSWER_TIMEOUT, closed).await;
}

/// Prints what happened. Returns whether everything succeeded.
fn report(
    outcomes: &[Outcome],
    what: &str,
    config: Option<&Path>,
    output: &mut Output,
) -> Result<bool, Failure> {
    if output.is_json() {
        output.document(&outcomes)?;
    } else if outcomes.is_empty() {
        print_nothing_runs(config);
    } else {
        for Outcome { pid, done, problem } in outcomes {
            let pid = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            match (done, problem) {
                (Some(done), _) => output.line(&format!("{what}{pid}: {done}"))?,
                (None, problem) => {
                    let problem = problem.as_deref().unwrap_or_default();
                    print_stderr(&format!("error: {what}{pid}: {problem}"));
                }
            }
        }
    }
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.done.is_some()))
}

/// `config` is the config file that was named on the command line.
fn print_nothing_runs(config: Option<&Path>) {
    let of_config = config.map(|path| format!(" for `{}`", path.display())).unwrap_or_default();
    print_stderr(&format!(
        "no background gateway is running{of_config}; `toolcrib mcp` starts one when a client needs it"
    ));
}

fn print(status: &BackgroundStatus, output: &mut Output) -> Result<(), Failure> {
    let memory = status.memory.map(|bytes| format!(", {}", megabytes(bytes))).unwrap_or_default();
    output.line(&format!(
        "background gateway {} (version {}), running for {}{memory}",
        status.pid,
        status.version,
        time(status.uptime_seconds),
    ))?;
    output.line(&format!("config: {}", status.config.display()))?;
    output.line(&format!("log:    {}\n", status.log.display()))?;
    let name_of = |id: u64| {
        let client = status.clients.iter().find(|client| client.id == id);
        client
            .and_then(|client| client.name.clone())
            .map_or_else(|| format!("client {id}"), |name| format!("{name} ({id})"))
    };
    let row = |server: &ServerProcessStatus| {
        [
            server.name.clone(),
            server.state.clone(),
            server.client.map_or_else(|| "shared".to_owned(), name_of),
            server.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            server.memory.map(megabytes).unwrap_or_default(),
            server.requests.to_string(),
            server.open.to_string(),
            server.unused_seconds.map(time).unwrap_or_default(),
        ]
    };
    let header = ["SERVER", "STATE", "USED BY", "PID", "MEMORY", "REQUESTS", "OPEN", "UNUSED FOR"];
    print_table(&header, status.servers.iter().map(row), output)?;
    for server in &status.servers {
        if let Some(reason) = &server.reason {
            output.line(&format!("{}: {reason}", server.name))?;
        }
    }
    output.line("")?;
    let clients = status.clients.iter().map(|client| {
        [
            client.id.to_string(),
            client.name.clone().unwrap_or_default(),
            client.pid.to_string(),
            client.profile.clone().unwrap_or_default(),
            time(client.connected_seconds),
            client.folder.as_ref().map(|it| it.display().to_string()).unwrap_or_default(),
        ]
    });
    print_table(&["CLIENT", "NAME", "PID", "PROFILE", "CONNECTED", "FOLDER"], clients, output)
}

fn print_table<const COLUMNS: usize>(
    header: &[&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for line in table.to_string().lines() {
        output.line(line.trim())?;
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// Writes a time in its largest unit.
pub(in super::super) fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}
