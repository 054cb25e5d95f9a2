//! The log: each event is one line, even if it contains untrusted text.
//!
//! Servers, providers and clients choose much of what is logged: names, error messages, URIs. A line break in such a
//! text could forge a log line, and an escape sequence could reach the terminal. Both are escaped here, for every field
//! of every event, and not at each call site.

use std::fmt;
use std::io::IsTerminal as _;

use crate::terminal::has_colours;
use toolcrib_text::clean::hidden;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Starts logging to standard error.
pub(super) fn start() {
    start_with(std::io::stderr, has_colours(std::io::stderr().is_terminal()));
}

/// Starts logging to a writer. `TOOLCRIB_LOG` sets the level. Events of the MCP SDK are switched off, because they
/// contain the messages between clients and servers, which do not belong in a log.
pub(super) fn start_with(
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
    has_colours: bool,
) {
    let level = std::env::var("TOOLCRIB_LOG").unwrap_or_else(|_| "info".into());
    let level = ["error", "warn", "info", "debug", "trace", "off"]
        .into_iter()
        .find(|known| level.eq_ignore_ascii_case(known))
        .unwrap_or("info");
    let filter = EnvFilter::new(format!(
        "warn,rmcp=off,toolcrib={level},toolcrib_mcp={level},toolcrib_proxy={level},toolcrib_server={level},toolcrib_store={level}"
    ));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(has_colours);
    // If standard error is closed, writing a log line fails. By default, the logger would report that failure on
    // standard error as well, and panic.
    let lines = lines.log_internal_errors(false).fmt_fields(debug_fn(field).delimited(" "));
    let _ = lines.with_target(false).with_writer(writer).try_init();
}

/// Writes one field of an event: `name=value`, or only the value for the message.
fn field(to: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let name = field.name();
    if name == "message" {
        return escape(to, &format!("{value:?}"));
    }
    if to.has_ansi_escapes() {
        write!(to, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m")?;
    } else {
        write!(to, "{name}=")?;
    }
    escape(to, &format!("{value:?}"))
}

/// Writes a text with control characters and invisible characters escaped.
fn escape(to: &mut impl fmt::Write, text: &str) -> fmt::Result {
    for c in text.chars() {
        if c.is_control() || hidden(c).is_some() {
            // Writes `\n`, `\r` and `\t` by name, and all other escaped characters by number.
            write!(to, "{}", c.escape_default())?;
        } else {
            to.write_char(c)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut to = String::new();
        escape(&mut to, text).unwrap();
        to
    }

    #[test]
    fn control_characters_and_invisible_characters_are_escaped() {
        assert_eq!(escaped("plain, café, 日本 \\ \""), "plain, café, 日本 \\ \"");
        assert_eq!(escaped("a\nb\r\tc"), r"a\nb\r\tc");
        assert_eq!(escaped("\u{1b}[2J\u{9b}1m\0"), r"\u{1b}[2J\u{9b}1m\u{0}");
        assert_eq!(
            escaped("\u{202e}\u{200b}\u{e0041}\u{2028}"),
            r"\u{202e}\u{200b}\u{e0041}\u{2028}"
        );
    }
}
