//! An MCP client that starts a server and talks to it over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::{Answer, Call, Client, Schedule, since, wait};
use toolcrib_bench::BenchError;
use toolcrib_bench::process::Process;

/// Number of concurrent calls in [`Client::saturate`].
const AT_ONCE: u32 = 32;

/// A server process and the pipes to it.
pub(crate) struct StdioClient {
    pub(crate) process: Process,
    wire: Mutex<Wire>,
}

struct Wire {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Wire {
    /// Reserves `count` consecutive ids and returns the first.
    fn ids(&mut self, count: u32) -> u64 {
        self.next += u64::from(count);
        self.next - u64::from(count)
    }
}

/// Reads the next response and returns its id.
fn answer(output: &mut BufReader<ChildStdout>, line: &mut Vec<u8>) -> Result<u64, BenchError> {
    loop {
        line.clear();
        if output.read_until(b'\n', line)? == 0 {
            return Err("the server went away".into());
        }
        if let Some(id) = Answer::id(line)? {
            return Ok(id);
        }
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
}

impl StdioClient {
    /// Starts a server and performs the handshake.
    pub(crate) fn start(command: Command) -> Result<Self, BenchError> {
        Self::start_with(command, &json!({}))
    }

    /// Like [`Self::start`], for a client that has a root.
    pub(crate) fn start_with_root(command: Command) -> Result<Self, BenchError> {
        Self::start_with(command, &json!({"roots": {}}))
    }

    fn start_with(mut command: Command, capabilities: &Value) -> Result<Self, BenchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process(command.spawn()?);
        let input = process.0.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(process.0.stdout.take().ok_or("no standard output")?);
        let pipe = Self { process, wire: Mutex::new(Wire { input, output, next: 1 }) };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "bench", "version": "1"},
        });
        pipe.ask("initialize", &hello)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(pipe.wire().input, "{ready}")?;
        Ok(pipe)
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client for StdioClient {
    fn ask(&self, method: &str, params: &Value) -> Result<Value, BenchError> {
        let mut wire = self.wire();
        let id = wire.ids(1);
        wire.input.write_all(request(id, method, params).as_bytes())?;
        let mut line = String::new();
        loop {
            line.clear();
            if wire.output.read_line(&mut line)? == 0 {
                return Err("the server went away".into());
            }
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["method"] == "roots/list" {
                let result = json!({"roots": [{"uri": "file:///"}]});
                let reply = json!({"jsonrpc": "2.0", "id": answer["id"], "result": result});
                writeln!(wire.input, "{reply}")?;
            } else if answer["id"] == id {
                return match answer["result"].take() {
                    Value::Null => Err(line.into()),
                    result => Ok(result),
                };
            }
        }
    }

    fn open_loop(&self, call: &Call, schedule: Schedule) -> Result<Vec<f64>, BenchError> {
        let mut wire = self.wire();
        let first = wire.ids(schedule.calls);
        let params = call.params();
        let lines: Vec<String> = (0..schedule.calls)
            .map(|i| request(first + u64::from(i), "tools/call", &params))
            .collect();
        let begin = Instant::now();
        let Wire { input, output, .. } = &mut *wire;
        std::thread::scope(|threads| {
            let reading = threads.spawn(move || -> Result<Vec<f64>, BenchError> {
                let (mut took, mut line) = (Vec::new(), Vec::new());
                for _ in 0..schedule.calls {
                    let id = answer(output, &mut line)?;
                    let call = u32::try_from(id - first)?;
                    took.push(since(schedule.due(begin, call)));
                }
                Ok(took)
            });
            for (i, line) in (0..).zip(&lines) {
                wait(schedule.due(begin, i));
                input.write_all(line.as_bytes())?;
            }
            reading.join().map_err(|_| "the reader ended")?
        })
    }

    fn saturate(&self, call: &Call, calls: u32) -> Result<f64, BenchError> {
        let mut wire = self.wire();
        let first = wire.ids(calls);
        let params = call.params();
        let mut line = Vec::new();
        let begin = Instant::now();
        for i in 0..calls + AT_ONCE {
            if i >= AT_ONCE {
                answer(&mut wire.output, &mut line)?;
            }
            if i < calls {
                let request = request(first + u64::from(i), "tools/call", &params);
                wire.input.write_all(request.as_bytes())?;
            }
        }
        Ok(f64::from(calls) / begin.elapsed().as_secs_f64())
    }
}
