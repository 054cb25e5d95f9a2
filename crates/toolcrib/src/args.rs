//! The command-line arguments.

mod reference;

pub(crate) use reference::{CompletionsArgs, DocsArgs, ManArgs};

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand};
use toolcrib_core::Preset;
use toolcrib_mcp::config::ClientKind;
use toolcrib_proxy::RequestedMode;
use toolcrib_server::config::parse_listen_address;

/// Tool search for any agent: an MCP gateway, an LLM proxy, and commands to see what your tools cost
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Shown after the help of the commands that write a log.
const LOG_HELP: &str = "TOOLCRIB_LOG=error|warn|info|debug|trace|off sets the log level. The log is written to standard error. \
                        Default: info";

/// Shown after the help of `mcp`.
const MCP_LOG_HELP: &str = "TOOLCRIB_LOG=error|warn|info|debug|trace|off sets the log level. The log is written to standard error. \
                            The background gateway writes its log to a file that `toolcrib ps` prints. Default: info";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a complete conversation with tool search, over a sample catalog
    Demo(DemoArgs),
    /// Move the MCP servers of your clients into the config, and put one entry for Toolcrib in their place
    Connect(ConnectArgs),
    /// Undo the changes that `connect` made to your clients' files
    Disconnect(DisconnectArgs),
    /// Connect to every server in the config, and report problems and how to fix them
    Doctor(DoctorArgs),
    /// Search for tools, as a model does with `tool_search`
    Search(SearchArgs),
    /// List the tools that your servers have
    Tools(ToolsArgs),
    /// Call a tool of one of your servers
    Call(CallArgs),
    /// Show how a tool's score was computed
    Explain(ExplainArgs),
    /// Show how many tokens the tools cost, and how many deferring them saves
    Stats(StatsArgs),
    /// Measure ranking quality on folders of queries with known answers
    Eval(EvalArgs),
    /// Run the MCP gateway over stdio, for the client that starts it. Clients share one set of servers
    #[command(after_help = MCP_LOG_HELP)]
    Mcp(McpArgs),
    /// Run the MCP gateway and the LLM proxy over HTTP, for many clients
    #[command(after_help = LOG_HELP)]
    Serve(ServeArgs),
    /// Show the servers and clients of the background gateway
    Ps(PsArgs),
    /// Stop the background gateway and its servers
    Stop(StopArgs),
    /// Restart a server of the background gateway
    Restart(RestartArgs),
    /// Sign in to a server that requires OAuth
    Login(LoginArgs),
    /// Find the MCP servers of your clients and combine them into one config
    Import(ImportArgs),
    /// Print the documentation of a topic, or the list of topics
    Docs(DocsArgs),
    /// Print a script that completes the commands and options in a shell
    Completions(CompletionsArgs),
    /// Print the man page of a command, or write all man pages
    Man(ManArgs),
    /// Run the background gateway, which `toolcrib mcp` starts
    #[command(hide = true)]
    Background(BackgroundArgs),
}

impl Command {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Demo(args) => args.json,
            Self::Search(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Stats(args) => args.json,
            Self::Tools(args) => args.json,
            Self::Call(args) => args.json,
            Self::Eval(args) => args.json,
            Self::Import(args) => args.json,
            Self::Connect(args) => args.json,
            Self::Disconnect(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Ps(args) => args.json,
            Self::Stop(args) => args.json,
            Self::Restart(args) => args.json,
            Self::Docs(args) => args.json,
            Self::Mcp(_)
            | Self::Serve(_)
            | Self::Login(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Background(_) => false,
        }
    }
}

/// Options that choose the catalogs and the settings of a command.
#[derive(Debug, ClapArgs)]
pub(crate) struct SourceArgs {
    /// A catalog: a file or folder with `.json` or `.jsonl` files, also `.gz`, or `-` for standard input. May be
    /// repeated. Default: the tools of the servers in the config, or a sample catalog if there are no servers
    #[arg(long, value_name = "F")]
    pub(crate) catalog: Vec<PathBuf>,
    /// Use the sample catalog, even if servers are configured
    #[arg(long, conflicts_with_all = ["catalog", "refresh", "profile"])]
    pub(crate) sample: bool,
    /// Ask all configured servers for their tools now, instead of using the remembered lists
    #[arg(long, conflicts_with = "catalog")]
    pub(crate) refresh: bool,
    /// Look only at the servers and tools of this profile in the config
    #[arg(long, value_name = "NAME", conflicts_with = "catalog")]
    pub(crate) profile: Option<String>,
    /// Use the settings of this preset. Default: the preset in the config, else Toolcrib's own settings
    #[arg(long, value_name = "P", value_parser = preset())]
    pub(crate) preset: Option<Preset>,
    /// The config: Toolcrib's own TOML file, or the config file of another system, such as Hermes. Default:
    /// `toolcrib/toolcrib.toml` in the user's config folder, if it exists
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
}

/// The option that chooses the vector table to rank with.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct VectorArgs {
    /// A folder with a vector table: a `table.bin` of Toolcrib's or, in a build with the feature `model2vec`, the
    /// files that Model2Vec saves. Default: `rank.embedding_model` in the config, else the built-in table
    #[arg(long, value_name = "DIR")]
    pub(crate) embedding_model: Option<PathBuf>,
}

/// Options that override the config.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Overrides {
    /// Use the settings of this preset. Default: the preset in the config, else Toolcrib's own settings
    #[arg(long, value_name = "P", value_parser = preset())]
    pub(crate) preset: Option<Preset>,
    /// How deferred tools are shown, or `off` to defer none. Default: the mode of the config or the preset
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<RequestedMode>,
    /// The model's context window in tokens. Default: the config, else looked up by the model's name
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) context: Option<usize>,
}

/// Returns a parser for the name of a mode.
fn mode() -> impl TypedValueParser<Value = RequestedMode> {
    // clap accepts only these names, so the default is never used.
    PossibleValuesParser::new(RequestedMode::NAMES)
        .map(|name| RequestedMode::from_name(&name).unwrap_or_default())
}

/// Returns a parser for the name of a preset. clap lists the names in its help and errors.
fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.iter().map(|preset| preset.name());
    // clap accepts only these names, so the default is never used.
    PossibleValuesParser::new(names).map(|name| Preset::named(&name).unwrap_or_default())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Show the conversation with the settings of this preset
    #[arg(long, value_name = "P", default_value = "default", value_parser = preset())]
    pub(crate) preset: Preset,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
    /// Maximum number of results. A number above the maximum in the settings is reduced to it
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) limit: Option<usize>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Words, or `select:NAME,NAME` to load tools by name. Empty: list the tools
    #[arg(allow_negative_numbers = true, default_value = "", hide_default_value = true)]
    pub(crate) query: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// The words to search for
    #[arg(allow_negative_numbers = true)]
    pub(crate) query: String,
    /// The tool to explain, in any spelling. Default: the three best hits
    pub(crate) tool: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The model's context window, in tokens
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = at_least_one)]
    pub(crate) context: usize,
    /// Count tokens for this model: exact for OpenAI's models, an estimate for others
    #[arg(long, value_name = "NAME", default_value = "gpt-5")]
    pub(crate) model: String,
    /// Show what the running gateways and proxies have done so far, and how many tokens they have saved. Finds them
    /// automatically, or asks the `toolcrib serve` at this address. Sends the key in `TOOLCRIB_KEY` if it is set
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["catalog", "sample", "refresh", "profile", "preset", "config", "context", "model"])]
    pub(crate) live: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Write the tools to this file as a catalog, one JSON object per line, or to standard output if it is `-`
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// List only tools with this text in their name, or a pattern with `*` and `?` such as `github*` or `*/create_*`
    pub(crate) pattern: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CallArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// Use only the servers and tools of this profile in the config
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Start the server for this call only, instead of sharing the servers of the background gateway
    #[arg(long)]
    pub(crate) own: bool,
    /// The arguments as a JSON object, `@FILE` to read them from a file, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// One JSON document on standard output, with the complete result
    #[arg(long)]
    pub(crate) json: bool,
    /// The tool, such as `github/create_issue`
    #[arg(value_name = "SERVER/TOOL")]
    pub(crate) tool: String,
    /// Arguments. A value is read as the type that the tool's schema requires; lists and objects are written in JSON
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) values: Vec<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "not a number of at least 1".into())
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    parse_listen_address(text).map_err(|error| format!("{}\nhint: {}", error.problem, error.hint))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a number".into())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Import only from the files of this client
    #[arg(long, value_name = "CLIENT", value_parser = client())]
    pub(crate) from: Option<ClientKind>,
    /// Also import the servers that files in the working folder define, such as `.mcp.json`. The authors of these
    /// files choose which programs run; none of their servers replaces one of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// Write the config to this file, readable only by you. If the file exists, new servers are added to it. Default:
    /// print the config, with `***` in place of secrets
    #[arg(long, value_name = "F")]
    pub(crate) write: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct ConnectArgs {
    /// The clients to connect. Default: all clients whose files are found
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<ClientKind>,
    /// Set the client's base URL to the proxy of `toolcrib serve` instead. No servers are moved
    #[arg(long, conflicts_with = "http")]
    pub(crate) proxy: bool,
    /// Let the clients use a running `toolcrib serve` instead of starting `toolcrib mcp`
    #[arg(long)]
    pub(crate) http: bool,
    /// Change the files without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// The config that the servers are added to. Default: `toolcrib/toolcrib.toml` in the user's config folder
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DisconnectArgs {
    /// The clients to disconnect. Default: all connected clients
    #[arg(value_name = "CLIENT", value_parser = client())]
    pub(crate) clients: Vec<ClientKind>,
    /// Change the files without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Returns a parser for the name of a client.
fn client() -> impl TypedValueParser<Value = ClientKind> {
    let names = ClientKind::ALL.map(ClientKind::name);
    PossibleValuesParser::new(names)
        .map(|name| ClientKind::from_name(&name).unwrap_or(ClientKind::Other))
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EvalArgs {
    /// Folders with `catalog.jsonl` and `queries.jsonl`, each also `.gz`
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Measure the ranking of this preset
    #[arg(long, value_name = "P", default_value = "default", value_parser = preset())]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
    /// Maximum number of queries per dataset
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the ranking of every query to this file, one JSON line per query
    #[arg(long, value_name = "OUT")]
    pub(crate) run_file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    /// The config: Toolcrib's own TOML file, or a config file of another client, such as Claude Code. Default:
    /// `toolcrib/toolcrib.toml` in the user's config folder. A file in the working folder is used only if it is named
    /// here
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// Expose only the servers and tools of this profile in the config
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Start servers for this client only, instead of sharing those of the background gateway
    #[arg(long)]
    pub(crate) own: bool,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on. Default: `http.listen` in the config, else 127.0.0.1:4180. `:4180` and
    /// `localhost:4180` mean 127.0.0.1:4180, which only this machine can reach. On any address that is not loopback,
    /// clients must send a token
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// The upstream for Chat Completions and Responses. Default: `proxy.openai`, else `https://api.openai.com`
    #[arg(long, value_name = "URL")]
    pub(crate) openai: Option<String>,
    /// The upstream for Messages. Default: `proxy.anthropic`, else `https://api.anthropic.com`
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic: Option<String>,
    /// The upstream for Gemini. Default: `proxy.gemini`, else `https://generativelanguage.googleapis.com`
    #[arg(long, value_name = "URL")]
    pub(crate) gemini: Option<String>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: VectorArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LoginArgs {
    /// The server, by its name in the config
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PsArgs {
    /// Show only the background gateway for this config. Default: all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StopArgs {
    /// Stop only the background gateway for this config. Default: all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RestartArgs {
    /// The server, by its name in the config
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Restart it only in the background gateway for this config. Default: in all of them
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BackgroundArgs {
    /// The name of the socket
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,
    /// Start the background gateway in a process of its own, and exit
    #[arg(long)]
    pub(crate) detach: bool,
}
