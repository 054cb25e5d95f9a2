//! Hosts and origins as browsers send them.
//!
//! Names are accepted only in the canonical spelling: lower case, no trailing dot, dotted IPv4, shortest
//! IPv6. Accepting other spellings is how checks of `Host` and `Origin` are bypassed.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The origin of a web page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    secure: bool,
    pub(crate) authority: Authority,
}

impl Origin {
    /// `None` for anything but the canonical spelling.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let mut authority = Authority::read(rest)?;
        // Browsers omit the default port of the scheme; a config may spell it out.
        let default = if secure { 443 } else { 80 };
        authority.port = authority.port.filter(|port| *port != default);
        Some(Self { secure, authority })
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
    /// `None` for anything but the canonical spelling.
    pub(crate) fn read(text: &str) -> Option<Self> {
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
                Some((name, port)) => (Host::read(name)?, Some(port)),
                None => (Host::read(text)?, None),
            },
        };
        let port = match port {
            Some(text) => Some(read_port(text)?),
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

    /// Whether it is the same host, on the same port if this one names a port.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

impl Host {
    fn read(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::V4(address));
        }
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        let label = |label: &str| !label.is_empty() && label.bytes().all(plain);
        // A name that ends in a number is an IPv4 address in another spelling: `2130706433`, `127.1`, `0x7f.1`.
        let last = text.rsplit('.').next()?;
        let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
        (text.split('.').all(label) && !number).then(|| Self::Name(text.to_owned()))
    }
}

/// Digits only: `u16::from_str` would also accept `+80` and `00080`.
fn read_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if digits { text.parse().ok() } else { None }
}
