//! The addresses of running `toolcrib serve` processes, which `stats --live` finds in the state folder.
//!
//! Each process has its own file, named after its process id, and holds a lock on it for as long as it runs. A file
//! without a lock was left behind by a process that was killed. It is removed and never used, because another program may
//! now listen at that address, and would then get the user's key.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toolcrib_server::private_file::PrivateFolder;

/// Maximum size of a file with an address, in bytes.
const MAX_ADDRESS_BYTES: u64 = 256;

fn folder(state: &PrivateFolder) -> PrivateFolder {
    state.subfolder("serve")
}

/// The file with the address of this process. It is removed when this value is dropped.
pub(super) struct PublishedAddress {
    folder: PrivateFolder,
    name: String,
    /// Holds the lock.
    _file: File,
}

impl PublishedAddress {
    /// Writes the file. Errors are only logged, because only `stats --live` needs it.
    pub(super) fn new(
        state: Option<PrivateFolder>,
        scheme: &str,
        address: SocketAddr,
    ) -> Option<Self> {
        let folder = folder(&state?);
        let name = std::process::id().to_string();
        let write = || {
            // An earlier process may have had the same id.
            folder.remove(&name).map_err(|error| error.to_string())?;
            let mut file = folder.open_lock(&name).map_err(|error| error.to_string())?;
            file.try_lock().map_err(|error| error.to_string())?;
            let url = format!("{scheme}://{}", reachable(address));
            file.write_all(url.as_bytes()).map_err(|error| error.to_string())?;
            Ok::<_, String>(file)
        };
        let file = write().inspect_err(|error| {
            tracing::debug!("`stats --live` cannot find this process: {error}");
        });
        Some(Self { _file: file.ok()?, folder, name })
    }
}

impl Drop for PublishedAddress {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.name);
    }
}

/// Returns an address at which this machine can reach a listener. For a listener on all addresses, this is loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the addresses of all running processes, sorted.
pub(in super::super) fn published_addresses(state: &PrivateFolder) -> Vec<String> {
    let folder = folder(state);
    // A folder that other users can write to is not read.
    if !matches!(folder.check(), Ok(true)) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut addresses: Vec<String> =
        names.filter_map(|name| address_of_running(&folder, &name)).collect();
    addresses.sort_unstable();
    addresses
}

/// Returns the address in a file if its process is running. Otherwise removes the file.
fn address_of_running(folder: &PrivateFolder, name: &str) -> Option<String> {
    let file = File::open(folder.file(name)).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        let _ = folder.remove(name);
        return None;
    }
    let mut url = String::new();
    file.take(MAX_ADDRESS_BYTES).read_to_string(&mut url).ok()?;
    // The process may not have written its address yet.
    Some(url).filter(|url| !url.is_empty())
}
