//! The address to listen on, as it is written in the config and on the command line.
//!
//! A port without a host means 127.0.0.1, so that no short form makes the listener reachable from the network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::de::{Deserializer, Error, Visitor};

/// Why a text is not an address to listen on. The error does not contain the text, which may be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddressError {
    /// What is wrong.
    pub problem: &'static str,
    /// What the user should write instead.
    pub hint: &'static str,
}

impl fmt::Display for ListenAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem, self.hint)
    }
}

impl std::error::Error for ListenAddressError {}

/// Parses an address such as `127.0.0.1:4180`, `[::1]:4180`, `localhost:4180`, `:4180` or `4180`. The last three mean
/// 127.0.0.1.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, ListenAddressError> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let (problem, hint) = match port.parse() {
        Err(_) => ("not an address with a port", "write it as in 127.0.0.1:4180"),
        Ok(port) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => {
            return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        }
        Ok(_) if host.contains(':') => {
            ("an IPv6 address without brackets", "write it as in [::1]:4180")
        }
        Ok(_) => (
            "a host name other than `localhost`",
            "write the IP address of one of this machine's networks, or 0.0.0.0:4180 for all of them",
        ),
    };
    Err(ListenAddressError { problem, hint })
}

/// Reads the address from the config, for serde's attribute `deserialize_with`.
pub(super) fn listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SocketAddr, D::Error> {
    deserializer.deserialize_any(ListenVisitor)
}

/// The schema of an address: a text, or a number, which is a port.
#[cfg(feature = "schema")]
pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [
            { "type": "string", "pattern": r"^(\d+|:\d+|[Ll]ocalhost:\d+|[0-9.]+:\d+|\[[0-9a-fA-F:.%]+\]:\d+)$" },
            { "type": "integer", "minimum": 0, "maximum": 65_535 }
        ]
    })
}

struct ListenVisitor;

impl Visitor<'_> for ListenVisitor {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address with a port, such as \"127.0.0.1:4180\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<SocketAddr, E> {
        let port = u16::try_from(value).map_err(|_| E::custom("not a port: 0 to 65535"))?;
        Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketAddr, E> {
        parse_listen_address(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_mean_this_machine() {
        for (text, expected) in [
            ("127.0.0.1:4180", "127.0.0.1:4180"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:4180", "[::1]:4180"),
            ("localhost:4180", "127.0.0.1:4180"),
            ("LOCALHOST:0", "127.0.0.1:0"),
            (":4180", "127.0.0.1:4180"),
            ("4180", "127.0.0.1:4180"),
        ] {
            assert_eq!(parse_listen_address(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_errors_that_say_what_to_write() {
        for (text, expected) in [
            ("", "not an address with a port"),
            ("here", "not an address with a port"),
            ("localhost", "not an address with a port"),
            ("localhost:65536", "not an address with a port"),
            (":", "not an address with a port"),
            ("127.0.0.1", "not an address with a port"),
            ("example.com:4180", "a host name other than `localhost`"),
            ("localhost.example:4180", "a host name other than `localhost`"),
            ("0:4180", "a host name other than `localhost`"),
            ("*:4180", "a host name other than `localhost`"),
            ("::1:4180", "brackets"),
            (":::4180", "brackets"),
        ] {
            let error = parse_listen_address(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
