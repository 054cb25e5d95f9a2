//! The command line, as it is typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand};
use toolcrib_core::Preset;
use toolcrib_mcp::config::Client;
use toolcrib_proxy::RequestedMode;

/// Tool search for any agent: an MCP gateway, an LLM proxy, and a look at what your tools cost.
#[derive(Debug, Parser)]
#[command(name = "toolcrib", version, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Said below the help of what runs for long.
const LOG: &str = "TOOLCRIB_LOG=error|warn|info|debug|trace|off says how much is logged, to standard error; \
                   without it: info";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the MCP servers of your clients, and write one config
    Import(ImportArgs),
    /// Connect to every server of the config, and say how it went and what to do
    Doctor(DoctorArgs),
    /// Run the MCP gateway for one client, which starts it: on standard input and output
    #[command(after_help = LOG)]
    Mcp(McpArgs),
    /// Run the MCP gateway and the LLM proxy for many clients, over HTTP
    #[command(after_help = LOG)]
    Serve(ServeArgs),
    /// Sign in to a server that asks for it (OAuth)
    Login(LoginArgs),
    /// See a whole conversation with tool search, over a sample catalog
    Demo(DemoArgs),
    /// Find tools, as a model would with `tool_search`
    Search(SearchArgs),
    /// Show every number behind a rank
    Explain(ExplainArgs),
    /// Show what the tools cost and what deferring them saves
    Stats(StatsArgs),
    /// Measure ranking quality on folders of judged queries
    Eval(EvalArgs),
}

impl Command {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Demo(args) => args.json,
            Self::Search(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Stats(args) => args.json,
            Self::Eval(args) => args.json,
            Self::Import(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Mcp(_) | Self::Serve(_) | Self::Login(_) => false,
        }
    }
}

/// Where the tools and the settings come from.
#[derive(Debug, ClapArgs)]
pub(crate) struct Source {
    /// A catalog: a file, a folder, or `-`; `.json` or `.jsonl`, also `.gz`. Without one: a sample
    #[arg(long, value_name = "F")]
    pub(crate) catalog: Vec<PathBuf>,
    /// Behave like this system; without it what the settings name, else ours
    #[arg(long, value_name = "P", value_parser = preset())]
    pub(crate) preset: Option<Preset>,
    /// Settings: ours in TOML, or another system's own file; otherwise `toolcrib/toolcrib.toml` in the
    /// user's config folder, if there is one
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
}

/// Whose vectors to rank with.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Vectors {
    /// A folder with another table of vectors: a `table.bin` of ours or, in a build with the feature
    /// `model2vec`, the files that Model2Vec saves;
    /// otherwise `rank.embedding_model`, else the table inside
    #[arg(long, value_name = "DIR")]
    pub(crate) embedding_model: Option<PathBuf>,
}

/// Settings of the command line that override the config.
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

/// The modes, by name.
fn mode() -> impl TypedValueParser<Value = RequestedMode> {
    // Only these names get through, so the default is never taken.
    PossibleValuesParser::new(RequestedMode::NAMES)
        .map(|name| RequestedMode::named(&name).unwrap_or_default())
}

/// The presets, by name; clap then lists them in its help and its errors.
fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.map(Preset::name);
    // Only these names get through, so the default is never taken.
    PossibleValuesParser::new(names).map(|name| Preset::named(&name).unwrap_or_default())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Play it the way of this system
    #[arg(long, value_name = "P", default_value = "default", value_parser = preset())]
    pub(crate) preset: Preset,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) vectors: Vectors,
    /// Results at most; clamped to what the settings allow
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) limit: Option<usize>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Words, `select:NAME,NAME`, or nothing at all to browse
    #[arg(allow_negative_numbers = true, default_value = "", hide_default_value = true)]
    pub(crate) query: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) vectors: Vectors,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// The words
    #[arg(allow_negative_numbers = true)]
    pub(crate) query: String,
    /// The tool to explain, in any spelling; without it the first three
    pub(crate) tool: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) source: Source,
    /// The model's context window, in tokens
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = at_least_one)]
    pub(crate) context: usize,
    /// The model whose tokens are counted: exact for OpenAI's, an estimate for others
    #[arg(long, value_name = "NAME", default_value = "gpt-5")]
    pub(crate) model: String,
    /// What the proxy at this URL has saved so far, by model and client; `TOOLCRIB_KEY` is sent if set
    #[arg(long, value_name = "URL", conflicts_with_all = ["catalog", "preset", "config", "context", "model"])]
    pub(crate) live: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "not a number from 1 on".into())
}

fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an address with a port, such as 127.0.0.1:4180".into())
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a number".into())
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// The files of this client alone
    #[arg(long, value_name = "CLIENT", value_parser = client())]
    pub(crate) from: Option<Client>,
    /// Also import the servers that files in the working folder define, such as `.mcp.json`. The authors of these
    /// files choose which programs run; none of their servers replaces one of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// Write a config here, readable by you alone; to one that is there only new servers are added.
    /// Without it the config is printed, with `***` for secrets
    #[arg(long, value_name = "F")]
    pub(crate) write: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The clients, by name.
fn client() -> impl TypedValueParser<Value = Client> {
    let names = Client::ALL.map(Client::name);
    PossibleValuesParser::new(names).map(|name| Client::named(&name).unwrap_or(Client::Other))
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EvalArgs {
    /// Folders with `catalog.jsonl` and `queries.jsonl`, either also `.gz`
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Whose ranking to measure
    #[arg(long, value_name = "P", default_value = "default", value_parser = preset())]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) vectors: Vectors,
    /// Queries of each set at most
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the ranking of every query here, a JSON line each
    #[arg(long, value_name = "OUT")]
    pub(crate) run_file: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    /// The config: ours in TOML, or another client's own file; otherwise `toolcrib/toolcrib.toml` in the
    /// user's config folder. A file in the working folder is used only if it is named here
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// Show only what this profile of the config has
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: Vectors,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ServeArgs {
    /// The config, as for `mcp`
    #[arg(long, value_name = "F")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; otherwise `http.listen` of the config, 127.0.0.1:4180. Off loopback clients
    /// must show a token
    #[arg(long, value_name = "ADDR", value_parser = socket)]
    pub(crate) listen: Option<SocketAddr>,
    /// Where Chat Completions and Responses go; otherwise `proxy.openai`, `https://api.openai.com`
    #[arg(long, value_name = "URL")]
    pub(crate) openai: Option<String>,
    /// Where Messages go; otherwise `proxy.anthropic`, `https://api.anthropic.com`
    #[arg(long, value_name = "URL")]
    pub(crate) anthropic: Option<String>,
    /// Where Gemini's requests go; otherwise `proxy.gemini`, `https://generativelanguage.googleapis.com`
    #[arg(long, value_name = "URL")]
    pub(crate) gemini: Option<String>,
    #[command(flatten)]
    pub(crate) overrides: Overrides,
    #[command(flatten)]
    pub(crate) vectors: Vectors,
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
