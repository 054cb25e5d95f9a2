//! When a server's process runs: from the gateway's start or from the first call, and until when.
//!
//! [`Server::run_policy`] is the only place that decides this. It also returns the reason, which `doctor` prints.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use toolcrib_server::config::duration::parse_duration;

use super::stateful_servers::{self, stateful_word};
use super::{Server, Transport, seconds};

/// How long a server stays unused before it is stopped, unless the config says otherwise. Long enough for a pause in a
/// conversation, short enough that servers do not run overnight.
const DEFAULT_IDLE: Duration = Duration::from_mins(15);

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StartPolicy {
    /// When a request needs it. A server whose lists are unknown is started at once, to learn them.
    Lazy,
    /// When the gateway starts.
    Eager,
}

/// How long a server stays unused before it is stopped, as it is written in the config.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IdleTimeout {
    /// The server is not stopped.
    Never,
    /// The number of seconds after its last request.
    After(f64),
}

/// When a server runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPolicy {
    /// When the server is started.
    pub start: StartPolicy,
    /// How long the server stays unused before it is stopped. `None`: it is not stopped.
    pub idle: Option<Duration>,
    /// Why, as a phrase for people.
    pub reason: String,
}

/// Writes the policy as `started when needed, stopped when idle for 15 min (default)`.
impl fmt::Display for RunPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.start, self.idle) {
            (StartPolicy::Eager, _) => f.write_str("always connected")?,
            (StartPolicy::Lazy, None) => {
                f.write_str("started when needed, not stopped when idle")?;
            }
            (StartPolicy::Lazy, Some(idle)) => {
                let seconds = idle.as_secs_f64();
                let (number, unit) =
                    if seconds % 60.0 == 0.0 { (seconds / 60.0, "min") } else { (seconds, "s") };
                write!(f, "started when needed, stopped when idle for {number} {unit}")?;
            }
        }
        write!(f, " ({})", self.reason)
    }
}

impl Server {
    /// Decides when the server runs. `name` is its name in the config.
    pub fn run_policy(&self, name: &str) -> RunPolicy {
        let is_remote = matches!(self.transport, Transport::Http { .. });
        let (start, start_reason) = match self.start {
            Some(StartPolicy::Eager) => (StartPolicy::Eager, "configured with `start`".to_owned()),
            Some(StartPolicy::Lazy) => (StartPolicy::Lazy, "configured with `start`".to_owned()),
            // A remote connection needs no process, and the server can announce changes of its lists over it.
            None if is_remote => {
                (StartPolicy::Eager, "a remote server needs no process".to_owned())
            }
            None => (StartPolicy::Lazy, "default".to_owned()),
        };
        if start == StartPolicy::Eager {
            return RunPolicy { start, idle: None, reason: start_reason };
        }
        let (idle, reason) = match self.idle {
            Some(IdleTimeout::Never) => (None, "configured with `idle`".to_owned()),
            Some(IdleTimeout::After(after)) => {
                (Some(seconds(after)), "configured with `idle`".to_owned())
            }
            None => match stateful_word(name, &self.transport) {
                Some(word) => (None, stateful_servers::reason(word)),
                None => (Some(DEFAULT_IDLE), start_reason),
            },
        };
        RunPolicy { start, idle, reason }
    }
}

impl<'de> Deserialize<'de> for IdleTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdleVisitor)
    }
}

/// The schema of a duration or `never`.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for IdleTimeout {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IdleTimeout".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let duration = generator.subschema_for::<toolcrib_server::config::duration::Seconds>();
        schemars::json_schema!({ "anyOf": [duration, { "const": "never" }] })
    }
}

struct IdleVisitor;

impl Visitor<'_> for IdleVisitor {
    type Value = IdleTimeout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a number of seconds, a duration such as \"15m\", \"90s\" or \"1h30m\", or \"never\"",
        )
    }

    fn visit_i64<E: Error>(self, seconds: i64) -> Result<IdleTimeout, E> {
        Ok(IdleTimeout::After(seconds as f64))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<IdleTimeout, E> {
        Ok(IdleTimeout::After(seconds))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IdleTimeout, E> {
        if text == "never" {
            return Ok(IdleTimeout::Never);
        }
        let seconds = parse_duration(text);
        seconds
            .map(IdleTimeout::After)
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GatewayConfig;

    fn policy(lines: &str) -> RunPolicy {
        let text = format!("[servers.it]\n{lines}");
        GatewayConfig::from_toml(&text).unwrap().servers["it"].run_policy("it")
    }

    fn run(start: StartPolicy, idle_seconds: Option<u64>, reason: &str) -> RunPolicy {
        RunPolicy { start, idle: idle_seconds.map(Duration::from_secs), reason: reason.to_owned() }
    }

    #[test]
    fn one_function_decides_when_a_server_runs() {
        use StartPolicy::{Eager, Lazy};
        let configured = "configured with `idle`";
        let cases = [
            ("command = 'files'", run(Lazy, Some(900), "default")),
            ("command = 'files'\nidle = '90s'", run(Lazy, Some(90), configured)),
            ("command = 'files'\nidle = '2h'", run(Lazy, Some(7_200), configured)),
            ("command = 'files'\nidle = '1m30s'", run(Lazy, Some(90), configured)),
            ("command = 'files'\nidle = 30", run(Lazy, Some(30), configured)),
            ("command = 'files'\nidle = 'never'", run(Lazy, None, configured)),
            ("command = 'files'\nstart = 'eager'", run(Eager, None, "configured with `start`")),
            (
                "command = 'npx'\nargs = ['-y', '@playwright/mcp@latest']",
                run(Lazy, None, &stateful_servers::reason("playwright")),
            ),
            (
                "command = 'npx'\nargs = ['-y', '@playwright/mcp@latest']\nidle = '5m'",
                run(Lazy, Some(300), configured),
            ),
            ("url = 'https://a.example/mcp'", run(Eager, None, "a remote server needs no process")),
            (
                "url = 'https://a.example/mcp'\nstart = 'lazy'",
                run(Lazy, Some(900), "configured with `start`"),
            ),
        ];
        for (lines, expected) in cases {
            assert_eq!(policy(lines), expected, "{lines}");
        }
    }

    #[test]
    fn the_idle_time_is_printed_in_minutes_or_seconds() {
        for (idle, expected) in [
            ("'15m'", "started when needed, stopped when idle for 15 min (configured with `idle`)"),
            ("60.5", "started when needed, stopped when idle for 60.5 s (configured with `idle`)"),
            ("0.1", "started when needed, stopped when idle for 0.1 s (configured with `idle`)"),
            ("'never'", "started when needed, not stopped when idle (configured with `idle`)"),
        ] {
            assert_eq!(policy(&format!("command = 'x'\nidle = {idle}")).to_string(), expected);
        }
    }

    #[test]
    fn a_wrong_idle_time_is_an_error_that_shows_the_right_form() {
        for wrong in ["'15'", "'m'", "'soon'", "'1d'", "0", "-5", "'9e99h'", "true", "''", "'15ü'"]
        {
            let text = format!("[servers.it]\ncommand = 'files'\nidle = {wrong}");
            let error = GatewayConfig::from_toml(&text).unwrap_err();
            let shown = format!("{error} {}", error.hint);
            assert!(shown.contains("15m") || shown.contains("0.1"), "{wrong}: {shown}");
        }
    }
}
