//! The Unix socket of a background gateway: where it is, and the lock that lets only one process listen on it.
//!
//! There is one socket for each config file and build, in a folder that only the user can enter. A gateway holds a lock
//! until its servers have ended, so a socket without a lock is left over from a gateway that has died, and is replaced.
//!
//! Servers inherit some properties of the gateway's process, such as its umask and its Linux namespaces. So clients for which
//! these differ use different sockets: a client in a sandbox must not get servers outside of it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{UnixListener, UnixStream};
use toolcrib_server::private_file::{PrivateFileError, PrivateFolder};

/// Maximum length of the path of a Unix socket, in bytes. This is the limit of macOS; Linux allows four more.
const MAX_PATH_BYTES: usize = 103;

/// The name of the folder with the sockets, inside the state folder.
const FOLDER: &str = "background";
const EXTENSION: &str = "sock";

/// The socket of the background gateway for one config file.
#[derive(Debug, Clone)]
pub struct BackgroundSocket {
    folder: PrivateFolder,
    /// The name of the socket without its extension.
    name: String,
}

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The folder of the sockets is not safe to use.
    #[error(transparent)]
    Folder(#[from] PrivateFileError),
    /// The path is too long for a Unix socket.
    #[error("the path `{}` is too long for a Unix socket; set `XDG_STATE_HOME` to a shorter path", .0.display())]
    TooLong(PathBuf),
    /// The path is not a socket, or it belongs to another user.
    #[error("`{}` is not a socket of this user", .0.display())]
    Foreign(PathBuf),
    /// Another process listens.
    #[error("another background gateway listens on `{}`", .0.display())]
    InUse(PathBuf),
    /// An operation of the system failed.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl SocketError {
    /// Whether so many connections wait that there cannot be another one. A gateway that responds accepts them at once.
    pub fn is_overloaded(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether no gateway listens on the socket.
    pub fn is_unused(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        // The last one is the error if the gateway ends at the same moment.
        matches!(
            source.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
        )
    }
}

/// A path of a socket that can be bound and connected to.
struct Address {
    path: PathBuf,
    /// The open folder that the path refers to.
    _folder: Option<File>,
}

/// A listening socket. The socket is removed when this value is dropped.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Identifies the socket file, so that a newer one is not removed.
    inode: u64,
    lock: Arc<File>,
}

/// Keeps other gateways from listening on a socket until it is dropped.
#[derive(Debug)]
pub struct SocketLock {
    _lock: Arc<File>,
}

impl BackgroundSocket {
    /// Returns the socket for a config file, which is given by its absolute path, and a build, see
    /// [`super::build_id`]. It is for clients from which servers would inherit the same as from this process. `state` is
    /// the user's state folder.
    pub fn new(state: &PrivateFolder, config: &Path, build: &str) -> Self {
        let config = fs::canonicalize(config).unwrap_or_else(|_| config.to_owned());
        let inherited = inherited_properties();
        let parts = [config.as_os_str().as_encoded_bytes(), inherited.as_bytes(), build.as_bytes()];
        let parts = parts.map(|part| blake3::hash(part).to_hex()[..8].to_owned());
        Self::named(state, &parts.join("-"))
    }

    /// Whether another socket is for the same config file.
    pub fn has_same_config(&self, other: &Self) -> bool {
        self.name.split('-').next() == other.name.split('-').next()
    }

    /// Whether another socket differs at most in the build.
    pub fn has_same_clients(&self, other: &Self) -> bool {
        let clients =
            |socket: &Self| socket.name.rsplit_once('-').map(|(clients, _)| clients.to_owned());
        clients(self) == clients(other)
    }

    /// Returns the socket with this name, see [`Self::name`].
    pub fn named(state: &PrivateFolder, name: &str) -> Self {
        Self { folder: state.subfolder(FOLDER), name: name.to_owned() }
    }

    /// Returns all sockets of the user, whether or not a gateway listens on them.
    pub fn all(state: &PrivateFolder) -> Result<Vec<Self>, SocketError> {
        let folder = state.subfolder(FOLDER);
        if !folder.check()? {
            return Ok(Vec::new());
        }
        let failed = |source| SocketError::Io { path: folder.path().to_owned(), source };
        let mut sockets = Vec::new();
        for entry in fs::read_dir(folder.path()).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            if let Some(name) = name.filter(|_| path.extension().is_some_and(|it| it == EXTENSION))
            {
                sockets.push(Self::named(state, name));
            }
        }
        sockets.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(sockets)
    }

    /// Returns the name of the socket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> PathBuf {
        self.folder.file(&format!("{}.{EXTENSION}", self.name))
    }

    /// Returns the path of the log of the gateway.
    pub fn log_path(&self) -> PathBuf {
        self.folder.file(&format!("{}.log", self.name))
    }

    /// Opens the log of the gateway, to append to it. If it has reached `max_bytes`, it becomes the previous log, which
    /// replaces an older one.
    pub fn open_log(&self, max_bytes: u64) -> Result<File, SocketError> {
        let path = self.log_path();
        if fs::metadata(&path).is_ok_and(|log| log.len() >= max_bytes) {
            let _ = fs::rename(&path, path.with_extension("log.old"));
        }
        Ok(self.folder.open_lock(&format!("{}.log", self.name))?)
    }

    /// Connects to the gateway that listens on the socket.
    pub async fn connect(&self) -> Result<UnixStream, SocketError> {
        let path = self.path();
        // The folder is checked first: in a folder of another user, the socket could be anybody's.
        self.folder.check()?;
        if let Ok(metadata) = fs::symlink_metadata(&path) {
            let is_own = metadata.uid() == rustix::process::getuid().as_raw();
            if !metadata.file_type().is_socket() || !is_own {
                return Err(SocketError::Foreign(path));
            }
        }
        let address = self.address()?;
        UnixStream::connect(&address.path).await.map_err(|source| SocketError::Io { path, source })
    }

    /// Kills the gateway that listens on the socket, and returns its process id. Its wardens end its servers.
    pub async fn kill_gateway(&self) -> Result<u32, SocketError> {
        let stream = self.connect().await?;
        let failed = |source| SocketError::Io { path: self.path(), source };
        let process = stream.peer_cred().map_err(failed)?.pid().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        kill_process(process, Signal::KILL).map_err(|error| failed(error.into()))?;
        Ok(process.as_raw_nonzero().get().unsigned_abs())
    }

    /// Returns a path of the socket that is short enough for the system.
    fn address(&self) -> Result<Address, SocketError> {
        let path = self.path();
        if path.as_os_str().len() <= MAX_PATH_BYTES {
            return Ok(Address { path, _folder: None });
        }
        if !cfg!(target_os = "linux") {
            return Err(SocketError::TooLong(path));
        }
        // On Linux, an open folder has a short path as well.
        let folder = File::open(self.folder.path())
            .map_err(|source| SocketError::Io { path: path.clone(), source })?;
        let name = format!("{}.{EXTENSION}", self.name);
        let short = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        Ok(Address { path: short.into(), _folder: Some(folder) })
    }

    /// Waits until no other process is starting a gateway for this socket, and prevents others from starting one until the
    /// returned value is dropped. Blocks.
    pub fn lock_start(&self) -> Result<File, SocketError> {
        self.lock("start", FlockOperation::LockExclusive)
    }

    /// Listens on the socket. Removes a socket file that a dead gateway has left behind.
    pub fn listen(&self) -> Result<ListeningSocket, SocketError> {
        let path = self.path();
        let lock = self.lock("lock", FlockOperation::NonBlockingLockExclusive)?;
        let failed = |source| SocketError::Io { path: path.clone(), source };
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        // Nobody else can enter the folder, so the permissions may be set after the socket is created.
        let listener = UnixListener::bind(&self.address()?.path).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let inode = fs::symlink_metadata(&path).map_err(failed)?.ino();
        Ok(ListeningSocket { listener, path, inode, lock: Arc::new(lock) })
    }

    fn lock(&self, kind: &str, operation: FlockOperation) -> Result<File, SocketError> {
        let file = self.folder.open_lock(&format!("{}.{kind}", self.name))?;
        flock(&file, operation).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => SocketError::InUse(self.path()),
            error => SocketError::Io { path: self.path(), source: error.into() },
        })?;
        Ok(file)
    }
}

/// Describes what servers inherit from the process that starts them, in addition to the environment and the working
/// folder. Empty on systems other than Linux. The rules of a seccomp filter and of Landlock cannot be read.
fn inherited_properties() -> String {
    const NAMESPACES: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    const KEYS: [&str; 6] =
        ["Umask:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapEff:", "CapBnd:"];
    let namespaces = NAMESPACES.into_iter().filter_map(|namespace| {
        let link = fs::read_link(format!("/proc/self/ns/{namespace}")).ok()?;
        Some(link.display().to_string())
    });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_inherited = |line: &&str| KEYS.iter().any(|key| line.starts_with(key));
    // Several hosts may share a home folder.
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // The label of AppArmor or SELinux.
    let label = fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    namespaces
        .chain([host, label])
        .chain(status.lines().filter(is_inherited).map(str::to_owned))
        .collect()
}

impl ListeningSocket {
    /// Removes the socket. No other gateway can listen on it until the returned value is dropped.
    pub fn close(self) -> SocketLock {
        SocketLock { _lock: Arc::clone(&self.lock) }
    }

    /// Waits for the next connection of the same user.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if stream.peer_cred()?.uid() == rustix::process::getuid().as_raw() {
                return Ok(stream);
            }
        }
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode);
        if is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}
