//! The lock that `connect`, `disconnect` and `import --write` hold while they run. Without it, two of them at the same
//! time would each write back what they had read before, and servers or backups of the other one would be lost.

use std::fs::{File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use toolcrib_server::private_file::PrivateFileError;

use crate::output::Failure;
use crate::user_folders::state_folder;

/// The name of the lock file in the state folder. The file stays, because removing it would let two processes hold
/// locks on different files of the same name.
const NAME: &str = "connect.lock";
/// How long to wait for a command that is about to end. A command that waits for an answer may take much longer.
const WAIT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// The lock, which is released when this is dropped.
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Takes the lock.
    pub(crate) fn take() -> Result<Self, Failure> {
        let failed = |error: &PrivateFileError| {
            Failure::input("backups of clients' files", error, error.hint())
        };
        let folder = state_folder().ok_or_else(|| {
            let problem = "there is no state folder for them";
            Failure::input("backups of clients' files", &problem, "set HOME or XDG_STATE_HOME")
        })?;
        Self::lock(folder.open_lock(NAME).map_err(|error| failed(&error))?)
    }

    /// Takes the lock if there is a usable state folder.
    pub(crate) fn take_if_available() -> Result<Option<Self>, Failure> {
        let file = state_folder().and_then(|folder| folder.open_lock(NAME).ok());
        file.map(Self::lock).transpose()
    }

    fn lock(file: File) -> Result<Self, Failure> {
        let end = Instant::now() + WAIT;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => {
                    return Err(Failure::input(
                        "nothing was changed",
                        &"another `toolcrib connect` or `disconnect` is running",
                        "it may be waiting for an answer in another terminal; end it, then run this command again",
                    ));
                }
                // Some network file systems have no locks.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self { _file: file }),
            }
        }
    }
}
