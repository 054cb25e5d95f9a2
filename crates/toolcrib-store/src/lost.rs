//! Why state could not be had.

use std::time::Duration;

/// State is out of reach. The caller goes on without it, as if nothing had been kept.
///
/// Made to be logged: nothing of the URL is in it, nor anything a server said beyond its error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// A failure is so recent that Redis was not asked at all.
    #[error("Redis is left alone for a moment after a failure")]
    Paused,
    /// No connection came about in time.
    #[error("no connection to Redis within {limit:?}")]
    ConnectTimeout {
        /// How long was waited.
        limit: Duration,
    },
    /// No answer came in time.
    #[error("no answer from Redis within {limit:?}")]
    AnswerTimeout {
        /// How long was waited.
        limit: Duration,
    },
    /// There is no connection, or it broke.
    #[error("no connection to Redis: {why}")]
    Disconnected {
        /// What the operating system, or TLS, says about it.
        why: String,
    },
    /// Redis answered, with an error.
    #[error("Redis refused: `{code}`")]
    Refused {
        /// The code of its error, such as `OOM`; the words after it may name users and commands.
        code: String,
    },
}

impl Lost {
    pub(crate) fn because(error: &::redis::RedisError) -> Self {
        if error.is_io_error() {
            Self::Disconnected { why: error.to_string() }
        } else {
            Self::Refused { code: error.code().unwrap_or_else(|| error.category()).to_owned() }
        }
    }
}
