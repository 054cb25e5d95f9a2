//! Determines which addresses a sign-in may contact.
//!
//! The upstream server names the addresses of its sign-in, so they are untrusted input: they could point the gateway's
//! requests at the machine itself or into the private network. The server's own host and the hosts that the config
//! trusts may have private addresses. Any other host needs a public address. A sign-in on this machine is allowed only
//! if the server is on this machine too. On any other machine https is required, unless the sign-in is on the host of a
//! server that itself uses http. The address that is checked is the one that is connected to. Redirects are not
//! followed, except that the SDK follows redirects of discovery within one origin.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::SignInTarget;

/// Why an address is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DisallowedAddress {
    /// The address is not a URL, or contains a user name.
    #[error("it is malformed")]
    Malformed,
    /// The address is neither http nor https.
    #[error("it is neither http nor https")]
    Scheme,
    /// The address uses http, but https is required.
    #[error("it is not https")]
    NotHttps,
    /// The address is on this machine or in a private network, and the config does not trust its host.
    #[error("it is a private address")]
    Private,
}

/// Decides which addresses the sign-in of one upstream server may contact.
#[derive(Debug, Clone)]
pub(super) struct AddressRule {
    base: Url,
    trusted: Arc<[String]>,
}

impl AddressRule {
    pub(super) fn new(target: &SignInTarget) -> Self {
        let trusted = target.trusted_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { base: target.url.clone(), trusted }
    }

    pub(super) fn check(&self, url: &Url) -> Result<(), DisallowedAddress> {
        let host = url.host().ok_or(DisallowedAddress::Malformed)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(DisallowedAddress::Malformed);
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(DisallowedAddress::Scheme);
        }
        let downgrade = url.scheme() == "http" && self.base.scheme() != "http";
        if is_loopback(&host) {
            return if self.is_local() { Ok(()) } else { Err(DisallowedAddress::Private) };
        }
        if downgrade || (url.scheme() == "http" && url.host() != self.base.host()) {
            return Err(DisallowedAddress::NotHttps);
        }
        let address = match host {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            Host::Domain(_) => return Ok(()),
        };
        let is_trusted = url.host_str().is_some_and(|host| self.is_trusted(host));
        if is_trusted || is_public(address) { Ok(()) } else { Err(DisallowedAddress::Private) }
    }

    /// Returns those of the `resolved` addresses of `host` that may be connected to.
    fn allowed(&self, host: &str, resolved: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
        let any = self.is_trusted(host) || (self.is_local() && is_loopback(&Host::Domain(host)));
        resolved.filter(|address| any || is_public(address.ip())).collect()
    }

    /// Whether the upstream server itself is on this machine.
    fn is_local(&self) -> bool {
        self.base.host().is_some_and(|host| is_loopback(&host))
    }

    /// Whether the host's addresses may be private. This is so for the server's own host and for the trusted hosts in
    /// the config.
    fn is_trusted(&self, host: &str) -> bool {
        self.base.host_str() == Some(host) || self.trusted.iter().any(|trusted| trusted == host)
    }
}

/// Checks an endpoint from a metadata document.
pub(super) fn check_endpoint(target: &SignInTarget, text: &str) -> Result<(), DisallowedAddress> {
    let url = text.parse().map_err(|_| DisallowedAddress::Malformed)?;
    AddressRule::new(target).check(&url)
}

/// Resolves a host only to its allowed addresses, so that the address that is connected to is one that was checked.
impl Resolve for AddressRule {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let resolved = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let allowed = rule.allowed(&host, resolved);
            if allowed.is_empty() {
                Err(DisallowedAddress::Private.into())
            } else {
                Ok(Box::new(allowed.into_iter()) as Addrs)
            }
        })
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().is_loopback(),
    }
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    let special = matches!((a, b), (0 | 240.., _) | (100, 64..=127) | (198, 18 | 19) | (192, 0));
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast())
}

/// Whether an address is public, which means global unicast (`2000::/3`). Tunnel addresses that embed an IPv4 address
/// do not count as public. For NAT64 addresses, the embedded IPv4 address decides.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        [0x2001, 0, ..] | [0x2002, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(base: &str) -> AddressRule {
        AddressRule {
            base: base.parse().unwrap(),
            trusted: ["sso.corp".to_owned(), "10.0.0.9".to_owned()].into(),
        }
    }

    #[test]
    fn endpoints_are_checked_against_the_rule() {
        use DisallowedAddress::{Malformed, NotHttps, Private, Scheme};
        let (public, plain, local) =
            ("https://mcp.example.com/mcp", "http://intranet:8080/mcp", "http://localhost:1/mcp");
        let table = [
            (public, "https://auth.example.net/token", Ok(())),
            (public, "https://mcp.example.com:8443/token", Ok(())),
            (public, "https://93.184.216.34/token", Ok(())),
            (public, "https://sso.corp/token", Ok(())),
            (public, "https://10.0.0.9/token", Ok(())),
            (public, "http://mcp.example.com/token", Err(NotHttps)),
            (public, "http://auth.example.net/token", Err(NotHttps)),
            (public, "http://sso.corp/token", Err(NotHttps)),
            (public, "http://localhost/token", Err(Private)),
            (public, "https://localhost./token", Err(Private)),
            (public, "https://a.localhost/token", Err(Private)),
            (public, "https://127.0.0.1/token", Err(Private)),
            (public, "https://2130706433/token", Err(Private)),
            (public, "https://[::1]/token", Err(Private)),
            (public, "https://[::ffff:127.0.0.1]/token", Err(Private)),
            (public, "https://10.0.0.8/token", Err(Private)),
            (public, "https://169.254.169.254/token", Err(Private)),
            (public, "https://[64:ff9b::a00:1]/token", Err(Private)),
            (public, "https://[2002:a00:1::]/token", Err(Private)),
            (public, "https://u@auth.example.net/token", Err(Malformed)),
            (public, "file:///etc/passwd", Err(Malformed)),
            (public, "ftp://auth.example.net/token", Err(Scheme)),
            (plain, "http://intranet:9090/token", Ok(())),
            (plain, "https://auth.example.net/token", Ok(())),
            (plain, "http://elsewhere/token", Err(NotHttps)),
            (plain, "http://127.0.0.1/token", Err(Private)),
            (local, "http://127.0.0.1:2/token", Ok(())),
            (local, "http://[::1]:2/token", Ok(())),
            (local, "http://10.0.0.8/token", Err(NotHttps)),
            (local, "https://10.0.0.8/token", Err(Private)),
        ];
        for (base, url, expected) in table {
            assert_eq!(rule(base).check(&url.parse().unwrap()), expected, "{base} -> {url}");
        }
    }

    #[test]
    fn resolved_addresses_are_filtered_by_the_rule() {
        let public = "https://mcp.example.com/mcp";
        let all = [
            "93.184.216.34",
            "10.0.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fd00::1",
            "fe80::1",
            "2606:2800::1",
            "64:ff9b::5db8:d822",
            "64:ff9b::7f00:1",
        ];
        let all = all.map(|text| SocketAddr::new(text.parse().unwrap(), 0));
        let allowed = |base: &str, host: &str| -> Vec<String> {
            let allowed = rule(base).allowed(host, all.into_iter());
            allowed.iter().map(|address| address.ip().to_string()).collect()
        };
        let public_addresses = ["93.184.216.34", "2606:2800::1", "64:ff9b::5db8:d822"];
        assert_eq!(allowed(public, "auth.example.net"), public_addresses);
        assert_eq!(allowed(public, "localhost"), public_addresses);
        assert_eq!(allowed("http://localhost:1/mcp", "auth.example.net"), public_addresses);
        for (base, host) in
            [(public, "mcp.example.com"), (public, "sso.corp"), ("http://localhost/", "localhost")]
        {
            assert_eq!(allowed(base, host).len(), all.len(), "{host}");
        }
    }
}
