//! The faults: the command-line arguments of the server.

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
    /// List only the tools in this file, a JSON array. Each returns its arguments. When the file is replaced, the
    /// client is sent a list change
    #[arg(long, value_name = "FILE")]
    pub(crate) define: Option<PathBuf>,
    /// Answer as this JSON file says. Requests that are not in it are answered as usual
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Wait before answering `initialize`
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
    /// Take this long for every call; calls overlap
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) slow: u64,
    /// List the tool `huge`, which answers with one line of this many bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) huge_line: Option<u64>,
    /// List the tool `objects`, which answers with one line of this many bytes that consists of tiny objects
    #[arg(long, value_name = "BYTES")]
    pub(crate) tiny_objects: Option<u64>,
    /// Write noise before every response: text, a BOM, CRLF, invalid UTF-8, a batch
    #[arg(long)]
    pub(crate) garbage: bool,
    /// List this many pages of one tool each
    #[arg(long, value_name = "N")]
    pub(crate) pages: Option<u64>,
    /// Exit with 1 after this time
    #[arg(long, value_name = "MS")]
    pub(crate) die_after: Option<u64>,
    /// Exit with 1 this time after the tools were listed
    #[arg(long, value_name = "MS")]
    pub(crate) die_after_list: Option<u64>,
    /// Exit with 1 when this tool is called
    #[arg(long, value_name = "TOOL")]
    pub(crate) die_on: Option<String>,
    /// List the tools `storm`, which sends this many list changes, and `lists`, which counts how often the list was
    /// fetched
    #[arg(long, value_name = "N")]
    pub(crate) storm: Option<u64>,
    /// Start two processes that may outlive the server; the tool `pids` returns their ids
    #[arg(long)]
    pub(crate) grandchild: bool,
    /// Declare the logging capability, and write the levels that are set to the journal
    #[arg(long)]
    pub(crate) logging: bool,
    /// Append one line per event to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// List the tool `progress`, which reports progress this many times
    #[arg(long, value_name = "N")]
    pub(crate) progress: Option<u64>,
    /// List the tool `flood`, which sends `--flood-count` messages of this method: notifications if the method is one,
    /// else requests. It answers when all requests are answered
    #[arg(long, value_name = "METHOD")]
    pub(crate) flood: Option<String>,
    /// Number of messages that `flood` sends
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) flood_count: u64,
    /// Size of a text in each of these messages, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) flood_bytes: usize,
    /// Do not read while flooding
    #[arg(long)]
    pub(crate) deaf: bool,
    /// Flood before the tools are listed
    #[arg(long)]
    pub(crate) flood_before_list: bool,
    /// Write this text to standard error at the start, and use it as the server's name and in errors
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// Answer this `tools/list` request and all later ones with an error
    #[arg(long, value_name = "N")]
    pub(crate) refuse_list: Option<u64>,
}
