//! The command-line arguments of the server, one for each fault.

use std::path::PathBuf;

use clap::Parser;

/// An MCP server on stdio with configurable faults
#[derive(Parser)]
#[command(name = "faulty-server")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Faults {
    /// List this many additional tools: `tool_0`, `tool_1` and so on
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) tools: u64,
    /// List only the tools in this file, a JSON array. Each tool returns its arguments. When the file changes, the
    /// client is notified that the list has changed
    #[arg(long, value_name = "FILE")]
    pub(crate) define: Option<PathBuf>,
    /// Answer requests with the responses in this JSON file, and list only the tools in it. Methods that are not in it
    /// are answered as usual
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Wait this long before answering `initialize`
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) start_delay: u64,
    /// Wait until this file exists before answering `initialize`
    #[arg(long, value_name = "FILE")]
    pub(crate) start_when: Option<PathBuf>,
    /// Read everything and answer nothing
    #[arg(long)]
    pub(crate) never_answer: bool,
    /// Never answer calls of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) hang: Option<String>,
    /// Take this long for every call. Calls can overlap
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) slow: u64,
    /// List the tool `huge`, which answers with one line of this many bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) huge_line: Option<u64>,
    /// List the tool `objects`, which answers with one line of about this many bytes, filled with tiny objects
    #[arg(long, value_name = "BYTES")]
    pub(crate) tiny_objects: Option<u64>,
    /// Write invalid or unexpected lines before every response: plain text, a BOM, CRLF, invalid UTF-8, a batch
    #[arg(long)]
    pub(crate) garbage: bool,
    /// List this many pages with one tool each
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<u64>,
    /// Exit with code 1 after this time
    #[arg(long, value_name = "MS")]
    pub(crate) die_after: Option<u64>,
    /// Exit with code 1, this long after the tools were listed
    #[arg(long, value_name = "MS")]
    pub(crate) die_after_list: Option<u64>,
    /// Exit with code 1 when this tool is called
    #[arg(long, value_name = "TOOL")]
    pub(crate) die_on: Option<String>,
    /// List the tool `storm`, which sends this many notifications of a changed list, and the tool `lists`, which
    /// returns how often the list was fetched
    #[arg(long, value_name = "N")]
    pub(crate) storm: Option<u64>,
    /// Start two child processes that may outlive the server. The tool `pids` returns their ids
    #[arg(long)]
    pub(crate) grandchild: bool,
    /// Declare the logging capability, and append every log level that the client sets to the file of `--log`
    #[arg(long)]
    pub(crate) logging: bool,
    /// Append one line per event to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Ask for the client's roots when the session starts and whenever they change. List the tool `known_roots`, which
    /// returns the last answer
    #[arg(long)]
    pub(crate) asks_for_roots: bool,
    /// List the tool `learn`, which adds a tool with the name in its argument `name` to the list of this process
    #[arg(long)]
    pub(crate) learns: bool,
    /// List the tool `progress`, which reports progress this many times
    #[arg(long, value_name = "N")]
    pub(crate) progress: Option<u64>,
    /// List the tool `flood`, which sends `--flood-count` messages of this method, as notifications or requests
    /// depending on the method. The tool answers after the client has answered all requests, or directly after the
    /// flood with `--deaf`
    #[arg(long, value_name = "METHOD")]
    pub(crate) flood: Option<String>,
    /// Number of messages that `flood` sends
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) flood_count: u64,
    /// Size of the text in each message of the flood, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) flood_bytes: usize,
    /// Do not read from the client during a flood
    #[arg(long)]
    pub(crate) deaf: bool,
    /// Send the flood before the tools are listed
    #[arg(long)]
    pub(crate) flood_before_list: bool,
    /// Write this text to standard error at the start, and use it as the server's name and in error messages
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// Answer the Nth `tools/list` request and all later ones with an error
    #[arg(long, value_name = "N")]
    pub(crate) refuse_list: Option<u64>,
}
