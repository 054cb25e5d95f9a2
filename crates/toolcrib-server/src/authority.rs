//! Hosts and origins as browsers send them.
//!
//! Names are accepted only in their canonical spelling: lower case, no trailing dot, dotted IPv4, shortest IPv6. Other
//! spellings are rejected because attackers use them to bypass checks of `Host` and `Origin`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The origin of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    is_https: bool,
    pub(crate) authority: Authority,
}

impl Origin {
    /// Parses an origin in canonical spelling. Returns `None` for any other spelling.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_https = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let mut authority = Authority::parse(rest)?;
        // Browsers omit the default port of the scheme, but an origin in the config may contain it.
        let default = if is_https { 443 } else { 80 };
        authority.port = authority.port.filter(|port| *port != default);
        Some(Self { is_https, authority })
    }
}

/// A host and an optional port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Name(String),
}

impl Authority {
    /// Parses a host and port in canonical spelling. Returns `None` for any other spelling.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (inside, after) = rest.split_once(']')?;
                let address: Ipv6Addr = inside.parse().ok()?;
                if address.to_string() != inside {
                    return None;
                }
                let port = if after.is_empty() { None } else { Some(after.strip_prefix(':')?) };
                (Host::V6(address), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (Host::parse(name)?, Some(port)),
                None => (Host::parse(text)?, None),
            },
        };
        let port = match port {
            Some(text) => Some(parse_port(text)?),
            None => None,
        };
        Some(Self { host, port })
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match &self.host {
            Host::V4(address) => address.is_loopback(),
            Host::V6(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }

    /// Whether `other` has the same host and, if `self` has a port, the same port.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::V4(address));
        }
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        let label = |label: &str| !label.is_empty() && label.bytes().all(plain);
        // A name that ends in a number is a non-canonical IPv4 address: `2130706433`, `127.1`, `0x7f.1`.
        let last = text.rsplit('.').next()?;
        let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        (text.split('.').all(label) && !number).then(|| Self::Name(text.to_owned()))
    }
}

/// Parses a port without a sign or leading zeros. `u16::from_str` would also accept `+80` and `00080`.
fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if digits { text.parse().ok() } else { None }
}
