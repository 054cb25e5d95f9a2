//! The command-line arguments.

mod clients;
mod gateway;
mod reference;

pub(crate) use clients::{ConnectArgs, DisconnectArgs, ImportArgs};
pub(crate) use gateway::{
    BackgroundArgs, DoctorArgs, LoginArgs, McpArgs, PsArgs, RestartArgs, ServeArgs, StopArgs,
};
pub(crate) use reference::{CompletionsArgs, DocsArgs, ManArgs};

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand};
use toolcrib_core::Preset;
use toolcrib_core::rank::TierSetting;
use toolcrib_proxy::RequestedMode;

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

/// The options that choose the vectors to rank with.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct VectorArgs {
    /// A folder with a vector table: a `table.bin` of Toolcrib's and, for the deep tier, an `encoder.bin`; or, in a
    /// build with the feature `model2vec`, the files that Model2Vec saves. Default: `rank.embedding_model` in the
    /// config, else what is built in
    #[arg(long, value_name = "DIR")]
    pub(crate) embedding_model: Option<PathBuf>,
    /// Which vectors to use: from the encoder where there are any (`auto`), only from the table (`table`), or from the
    /// encoder, with an error if there is none (`deep`). Default: `rank.tier` in the config, else `auto`
    #[arg(long, value_name = "TIER", value_parser = tier())]
    pub(crate) tier: Option<TierSetting>,
}

/// Returns a parser for a tier. clap lists the tiers in its help and errors.
fn tier() -> impl TypedValueParser<Value = TierSetting> {
    // clap accepts only these names, so the default is never used.
    PossibleValuesParser::new(TierSetting::ALL.map(TierSetting::name))
        .map(|name| TierSetting::named(&name).unwrap_or_default())
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
    /// Do not embed tools that are new. They are ranked with the vector table until another command embeds them
    #[arg(long)]
    pub(crate) fast: bool,
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
    /// Do not embed tools that are new, as in `search --fast`
    #[arg(long)]
    pub(crate) fast: bool,
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

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a number".into())
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
