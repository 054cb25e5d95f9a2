//! Measures many sessions of clients that use the same real servers: the processes, their memory, and how long a client
//! waits. Sessions that start their own servers are compared with sessions that share them.
//!
//! The servers are those that `scripts/install-peers` installs. This section works only on Linux, because it reads
//! `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_bench::process::GatewaySetup;
use toolcrib_bench::{BenchError, quantile};

use crate::client::{Call, Client as _, since};
use crate::stdio::StdioClient;

const SESSIONS: usize = 15;

/// How long the servers of the first session may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable that marks the processes of one measurement. All of them inherit it.
const MARK: &str = "TOOLCRIB_BENCH_SESSIONS";

/// A server, and a call of one of its tools.
struct RealServer {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    tool: &'static str,
    arguments: Value,
}

/// How a session gets its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setup {
    /// Every client starts all servers, without Toolcrib.
    Direct,
    /// Every client starts a gateway with servers of its own.
    Own,
    /// All clients share the servers of the background gateway.
    Shared,
    /// Like `Shared`, with clients that have roots.
    SharedWithRoots,
}

impl Setup {
    const ALL: [(Self, &str); 4] = [
        (Self::Direct, "each client starts its servers"),
        (Self::Own, "`toolcrib mcp --own`"),
        (Self::Shared, "`toolcrib mcp`"),
        (Self::SharedWithRoots, "`toolcrib mcp`, clients with roots"),
    ];
}

/// The connections of one session: to each server, or to one gateway.
enum Session {
    Direct(Vec<StdioClient>),
    Gateway(StdioClient),
}

/// The processes of a measurement.
#[derive(Debug, Clone, Copy)]
struct Usage {
    processes: usize,
    /// Memory in MB. Pages that processes share are divided among them.
    memory: f64,
}

pub(crate) fn measure() -> Result<(), BenchError> {
    let folder = tempfile::tempdir()?;
    let servers = real_servers(folder.path())?;
    println!(
        "{SESSIONS} sessions, one after the other, each with the same {} servers. The tools of all servers are known from an earlier run.\n",
        servers.len()
    );
    println!(
        "| | processes | MB | processes after calls | MB after calls | first list ms | first call ms | later call ms |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (setup, name) in Setup::ALL {
        println!("| {name} | {} |", row(setup, &servers)?);
    }
    Ok(())
}

fn row(setup: Setup, servers: &[RealServer]) -> Result<String, BenchError> {
    let mark = format!("{setup:?}-{}", std::process::id());
    let mut gateway = GatewaySetup::new()?;
    for server in servers {
        let args: Vec<&str> = server.args.iter().map(String::as_str).collect();
        let env = format!("env = {{ {MARK} = {mark:?} }}");
        gateway.command(&server.name, &server.program, &args, &env);
    }
    if setup != Setup::Direct {
        let first = Session::start(Setup::Own, servers, &gateway, &mark)?;
        first.call_all(servers, true)?;
        drop(first);
        wait_until_ended(&mark)?;
    }
    let (mut sessions, mut lists, mut cold, mut warm) = (vec![], vec![], vec![], vec![]);
    for _ in 0..SESSIONS {
        let began = Instant::now();
        let session = Session::start(setup, servers, &gateway, &mark)?;
        session.list()?;
        lists.push(since(began));
        sessions.push(session);
    }
    let listed = usage(&mark)?;
    for (number, session) in sessions.iter().enumerate() {
        let times = session.call_all(servers, false)?;
        // Only the first session of all finds servers that are not running, unless each has its own.
        let is_cold = number == 0 || setup == Setup::Own;
        (if is_cold { &mut cold } else { &mut warm }).extend(times);
        if setup == Setup::Own {
            warm.extend(session.call_all(servers, false)?);
        }
    }
    let called = usage(&mark)?;
    drop(sessions);
    if matches!(setup, Setup::Shared | Setup::SharedWithRoots) {
        gateway.toolcrib(&["stop"])?.env("HOME", gateway.folder()).output()?;
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        quantile(&times, 0.5)
    };
    Ok(format!(
        "{} | {:.0} | {} | {:.0} | {:.0} | {:.1} | {:.1}",
        listed.processes,
        listed.memory,
        called.processes,
        called.memory,
        median(lists),
        median(cold),
        median(warm)
    ))
}

impl Session {
    /// Starts a session. Its home folder is the temporary one: below another home folder, Toolcrib would not trust a state
    /// folder in `/tmp`, and would save nothing there.
    fn start(
        setup: Setup,
        servers: &[RealServer],
        gateway: &GatewaySetup,
        mark: &str,
    ) -> Result<Self, BenchError> {
        if setup != Setup::Direct {
            let args: &[&str] = if setup == Setup::Own { &["mcp", "--own"] } else { &["mcp"] };
            let mut command = gateway.toolcrib(args)?;
            command.env(MARK, mark).env("HOME", gateway.folder());
            return Ok(Self::Gateway(match setup {
                Setup::SharedWithRoots => StdioClient::start_with_root(command)?,
                _ => StdioClient::start(command)?,
            }));
        }
        // A client starts its servers at the same time.
        let started = std::thread::scope(|threads| {
            let started: Vec<_> = servers
                .iter()
                .map(|server| {
                    threads.spawn(move || {
                        let mut command = Command::new(&server.program);
                        command.args(&server.args).env(MARK, mark);
                        StdioClient::start(command).map_err(|error| error.to_string())
                    })
                })
                .collect();
            let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended
                .map(|ended| ended.map_err(|_| "a thread ended".to_owned())?)
                .collect::<Result<Vec<_>, String>>()
        });
        Ok(Self::Direct(started?))
    }

    /// Requests the tools.
    fn list(&self) -> Result<(), BenchError> {
        match self {
            Self::Direct(servers) => {
                servers.iter().try_for_each(|one| one.ask("tools/list", &json!({})).map(drop))
            }
            Self::Gateway(gateway) => gateway.ask("tools/list", &json!({})).map(drop),
        }
    }

    /// Calls one tool of each server, and returns how long each call took in milliseconds.
    fn call_all(&self, servers: &[RealServer], retry: bool) -> Result<Vec<f64>, BenchError> {
        let mut times = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let through_gateway =
                || Call::bridged(&format!("{}__{}", server.name, server.tool), &server.arguments);
            let (client, call) = match self {
                Self::Direct(clients) => {
                    (&clients[index], Call::new(server.tool, server.arguments.clone()))
                }
                Self::Gateway(gateway) => (gateway, through_gateway()),
            };
            let began = Instant::now();
            if retry {
                client.retry_until_success(&call)?;
            } else {
                let result = client.ask("tools/call", &call.params())?;
                if result["isError"] == true {
                    return Err(format!("{}: {result}", server.name).into());
                }
            }
            times.push(since(began));
        }
        Ok(times)
    }
}

/// Waits until no process has the mark. Some servers need a moment to end.
fn wait_until_ended(mark: &str) -> Result<(), BenchError> {
    let deadline = Instant::now() + END_TIMEOUT;
    while usage(mark)?.processes > 0 {
        if Instant::now() > deadline {
            return Err("the servers of the first session do not end".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Returns the processes that have the mark, and their memory.
fn usage(mark: &str) -> Result<Usage, BenchError> {
    let marked = format!("{MARK}={mark}");
    let (mut processes, mut kibibytes) = (0, 0.0);
    for entry in fs::read_dir("/proc")?.flatten() {
        // A process may end at any moment, and those of other users cannot be read.
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if !environment.split(|byte| *byte == 0).any(|one| one == marked.as_bytes()) {
            continue;
        }
        let Ok(memory) = fs::read_to_string(entry.path().join("smaps_rollup")) else { continue };
        let line = memory.lines().find_map(|line| line.strip_prefix("Pss:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        kibibytes += number.and_then(|number| number.parse().ok()).unwrap_or(0.0);
        processes += 1;
    }
    Ok(Usage { processes, memory: kibibytes * 1024.0 / 1e6 })
}

/// Returns ten servers: five kinds, some of them with several folders or time zones.
fn real_servers(folder: &Path) -> Result<Vec<RealServer>, BenchError> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/peers").canonicalize();
    let peers = peers.map_err(|_| "the servers are missing; run `scripts/install-peers`")?;
    let (node, python) = (peers.join("node_modules/.bin/node"), peers.join("python/bin"));
    let script = |package: &str| {
        let path = peers.join("node_modules/@modelcontextprotocol").join(package);
        path.join("dist/index.js").display().to_string()
    };
    let mut servers = Vec::new();
    let mut add = |name: String, program: PathBuf, args: Vec<String>, tool, arguments| {
        servers.push(RealServer { name, program, args, tool, arguments });
    };
    add(
        "everything".into(),
        node.clone(),
        vec![script("server-everything")],
        "echo",
        json!({"message": "hi"}),
    );
    for number in 0..3 {
        let root = folder.join(format!("files{number}"));
        fs::create_dir(&root)?;
        let args = vec![script("server-filesystem"), root.display().to_string()];
        add(format!("files{number}"), node.clone(), args, "list_allowed_directories", json!({}));
    }
    for number in 0..2 {
        add(
            format!("memory{number}"),
            node.clone(),
            vec![script("server-memory")],
            "read_graph",
            json!({}),
        );
    }
    for number in 0..2 {
        let root = folder.join(format!("repository{number}"));
        let made = Command::new("git").args(["init", "--quiet"]).arg(&root).status()?;
        if !made.success() {
            return Err("`git init` failed".into());
        }
        let args = vec!["--repository".into(), root.display().to_string()];
        let arguments = json!({"repo_path": root});
        add(format!("git{number}"), python.join("mcp-server-git"), args, "git_status", arguments);
    }
    for zone in ["UTC", "Europe/Berlin"] {
        let args = vec![format!("--local-timezone={zone}")];
        let arguments = json!({"timezone": zone});
        let name = format!("time{}", zone.len());
        add(name, python.join("mcp-server-time"), args, "get_current_time", arguments);
    }
    Ok(servers)
}
