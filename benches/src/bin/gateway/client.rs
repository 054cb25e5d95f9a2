//! The interface that the stdio and HTTP clients share. A client can send single requests, calls on a schedule, or
//! calls as fast as responses arrive.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use toolcrib_bench::BenchError;

/// A tool call, which is sent many times without changes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Call {
    pub(crate) fn new(name: &str, arguments: Value) -> Self {
        Self { name: name.to_owned(), arguments }
    }

    /// Returns a call of the tool `name` through the gateway's `tool_call` tool.
    pub(crate) fn bridged(name: &str, arguments: &Value) -> Self {
        Self::new("tool_call", json!({"name": name, "arguments": arguments}))
    }

    pub(crate) fn params(&self) -> Value {
        json!({"name": self.name, "arguments": self.arguments})
    }
}

/// A schedule on which `calls` calls are due, at `rate` calls per second, whether or not earlier calls have been
/// answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) rate: u32,
    pub(crate) calls: u32,
}

impl Schedule {
    pub(crate) fn due(self, begin: Instant, call: u32) -> Instant {
        begin + Duration::from_secs(1) * call / self.rate
    }
}

pub(crate) fn wait(until: Instant) {
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
}

/// Returns the milliseconds that have passed since `begin`.
pub(crate) fn since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

/// A client of one MCP server.
pub(crate) trait Client {
    /// Sends one request and returns its result.
    fn ask(&self, method: &str, params: &Value) -> Result<Value, BenchError>;

    /// Makes the calls of a schedule. Returns, for each call, the milliseconds from the time it was due until its
    /// response.
    fn open_loop(&self, call: &Call, schedule: Schedule) -> Result<Vec<f64>, BenchError>;

    /// Makes `calls` calls as fast as responses arrive, with a few calls always in flight. Returns the throughput, in
    /// calls per second.
    fn saturate(&self, call: &Call, calls: u32) -> Result<f64, BenchError>;

    /// Repeats a call until it succeeds, for at most 30 seconds. The call fails until the gateway has connected to the
    /// tool's server.
    fn retry_until_success(&self, call: &Call) -> Result<(), BenchError> {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            let result = self.ask("tools/call", &call.params());
            if result.is_ok_and(|result| result["isError"] != true) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("`{}` does not answer: {}", call.name, call.arguments).into())
    }
}

/// The only parts of a response that the benchmark parses.
#[derive(Deserialize)]
pub(crate) struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl Answer<'_> {
    /// Returns the id of the request that a message responds to, or `None` if the message is not a response. Returns an
    /// error if the call failed.
    pub(crate) fn id(message: &[u8]) -> Result<Option<u64>, BenchError> {
        let answer: Answer = serde_json::from_slice(message)?;
        let Some(id) = answer.id else { return Ok(None) };
        let result = answer.result.map_or("", RawValue::get);
        if result.is_empty() || result.contains("\"isError\":true") {
            return Err(format!("a call failed: {}", String::from_utf8_lossy(message)).into());
        }
        Ok(Some(id))
    }
}
