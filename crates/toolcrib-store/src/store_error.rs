//! Why the store could not be used.

use std::time::Duration;

/// Why the store is unavailable. The caller continues without it, as if nothing had been stored.
///
/// The error is safe to log: it contains no part of the URL, and of Redis' own error only the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Redis failed a moment ago, so no request was sent.
    #[error("Redis failed a moment ago and is not tried again yet")]
    Paused,
    /// No connection was established in time.
    #[error("no connection to Redis within {limit:?}")]
    ConnectTimeout {
        /// The timeout.
        limit: Duration,
    },
    /// No response arrived in time.
    #[error("no response from Redis within {limit:?}")]
    ResponseTimeout {
        /// The timeout.
        limit: Duration,
    },
    /// The connection could not be established, or it broke.
    #[error("no connection to Redis: {reason}")]
    Disconnected {
        /// The error of the operating system or of TLS.
        reason: String,
    },
    /// Redis responded with an error.
    #[error("Redis responded with the error `{code}`")]
    Rejected {
        /// The code of the error, such as `OOM`. The text after the code is left out, because it may name users and
        /// commands.
        code: String,
    },
}

impl StoreError {
    pub(crate) fn from_redis(error: &redis::RedisError) -> Self {
        if error.is_io_error() {
            Self::Disconnected { reason: error.to_string() }
        } else {
            Self::Rejected { code: error.code().unwrap_or_else(|| error.category()).to_owned() }
        }
    }
}
