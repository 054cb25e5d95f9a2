//! The addresses of running `toolcrib serve` processes, which `stats --live` finds in the state folder.
//!
//! Each process has a file of its own, named after its process id. The folder is private, so a key is sent only to
//! addresses that the user's own processes have written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toolcrib_server::private_file::PrivateFolder;

/// Maximum size of a file with an address, in bytes.
const MAX_ADDRESS_BYTES: u64 = 256;

fn folder(state: &PrivateFolder) -> PrivateFolder {
    state.subfolder("serve")
}

/// The file with the address of this process. It is removed when this value is dropped.
pub(super) struct PublishedAddress {
    folder: Option<PrivateFolder>,
    name: String,
}

impl PublishedAddress {
    /// Writes the file. Errors are only logged, because only `stats --live` needs it.
    pub(super) fn new(state: Option<PrivateFolder>, scheme: &str, address: SocketAddr) -> Self {
        let url = format!("{scheme}://{}", reachable(address));
        let name = std::process::id().to_string();
        let folder = state.map(|state| folder(&state));
        if let Some(folder) = &folder
            && let Err(error) = folder.replace(&name, url.as_bytes())
        {
            tracing::debug!("`stats --live` cannot find this process: {error}");
        }
        Self { folder, name }
    }
}

impl Drop for PublishedAddress {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = folder.remove(&self.name);
        }
    }
}

/// Returns an address at which this machine reaches a listener. A listener on all addresses is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// An address that a process has written. The process may have been killed since.
pub(in super::super) struct FoundAddress {
    pub(in super::super) url: String,
    folder: PrivateFolder,
    name: String,
}

impl FoundAddress {
    /// Removes the file of a process that does not run any more.
    pub(in super::super) fn remove(&self) {
        let _ = self.folder.remove(&self.name);
    }
}

/// Returns the addresses of all processes, sorted.
pub(in super::super) fn published_addresses(state: &PrivateFolder) -> Vec<FoundAddress> {
    let folder = folder(state);
    // A folder that other users can write to is not read.
    if !matches!(folder.check(), Ok(true)) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<FoundAddress> = names
        .filter_map(|name| {
            let bytes = folder.read(&name, MAX_ADDRESS_BYTES).ok()??;
            let url = String::from_utf8(bytes).ok()?;
            Some(FoundAddress { url, folder: folder.clone(), name })
        })
        .collect();
    found.sort_by(|a, b| a.url.cmp(&b.url));
    found
}
