//! Records in Redis, shared by replicas.
//!
//! Opening a store never waits: the first request connects, and so does the first request after a failure. Each step
//! has a short timeout, and after a failure Redis is not tried for a moment (`circuit_breaker`). So an unavailable
//! Redis delays a few requests by a fraction of a second, and the others not at all.
//!
//! Rejected: the client's own `ConnectionManager`. It keeps a connection that no longer responds until the operating
//! system gives the connection up, minutes later, and it never retries after a failed login.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, FromRedisValue, Pipeline, RedisResult};
use tokio::time::timeout;

use crate::circuit_breaker::{AttemptPermit, CircuitBreaker};
use crate::{Key, Store, StoreError, record_limits, versioned_value};

/// How Redis is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// Prefix of each key in Redis. Default: `toolcrib:`.
    pub prefix: String,
    /// Time after which a record that is not read expires. Default: 24 hours.
    pub idle_expiry: Duration,
    /// Maximum size of one record, in bytes. A larger one is not stored. Default: 4 MiB.
    pub record_bytes: usize,
    /// Maximum time to connect, including the login. Default: 250 ms.
    pub connect_timeout: Duration,
    /// Maximum time to wait for a response. Default: 250 ms.
    pub response_timeout: Duration,
    /// Time after a failure during which Redis is not tried. Default: one second.
    pub pause_after_failure: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "toolcrib:".to_owned(),
            idle_expiry: record_limits::DEFAULT_IDLE_EXPIRY,
            record_bytes: record_limits::DEFAULT_MAX_BYTES,
            connect_timeout: Duration::from_millis(250),
            response_timeout: Duration::from_millis(250),
            pause_after_failure: Duration::from_secs(1),
        }
    }
}

/// The error about a text that is not a Redis URL. The message leaves the text out, because it may contain a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the URL of Redis does not have the form `redis://[user:password@]host[:port][/database]`, \
     or `rediss://` for TLS\nhint: in the password, write `%40` for `@`, `%2F` for `/` and so on"
)]
pub struct InvalidRedisUrl;

/// Records in Redis 6.2 or newer. Clones share one connection.
#[derive(Clone)]
pub struct RedisStore(Arc<SharedConnection>);

struct SharedConnection {
    client: Client,
    options: RedisOptions,
    breaker: CircuitBreaker,
    connection: Mutex<Option<Arc<MultiplexedConnection>>>,
    /// Locked by the request that opens the connection. Other requests wait for that connection.
    connecting: tokio::sync::Mutex<()>,
}

impl RedisStore {
    /// Prepares to use the Redis at `url`. The first request connects to it.
    pub fn open(url: &str, options: RedisOptions) -> Result<Self, InvalidRedisUrl> {
        let client = Client::open(url).map_err(|_| InvalidRedisUrl)?;
        if let ConnectionAddr::TcpTls { insecure, .. } = client.get_connection_info().addr() {
            // `#insecure` would accept any certificate.
            if *insecure {
                return Err(InvalidRedisUrl);
            }
            toolcrib_tls::install_crypto_provider();
        }
        let breaker = CircuitBreaker::new(options.pause_after_failure);
        Ok(Self(Arc::new(SharedConnection {
            client,
            options,
            breaker,
            connection: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })))
    }
}

impl Store for RedisStore {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline
                .cmd("GETEX")
                .arg(key.redis_key(&self.0.options.prefix))
                .arg("PX")
                .arg(self.0.expiry_ms());
        }
        let responses = self.0.send(pipeline).await?;
        responses.into_iter().map(|response| self.0.read(response)).collect()
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, StoreError> {
        let (records, oversized) =
            record_limits::without_oversized(self.0.options.record_bytes, records);
        if records.is_empty() {
            return Ok(oversized);
        }
        let mut pipeline = Pipeline::with_capacity(records.len());
        for (key, value) in &records {
            pipeline
                .cmd("SET")
                .arg(key.redis_key(&self.0.options.prefix))
                .arg(versioned_value::encode(value))
                .arg("PX")
                .arg(self.0.expiry_ms());
        }
        for response in self.0.send(pipeline).await? {
            let () = response.map_err(|error| self.0.rejected(&error))?;
        }
        Ok(oversized)
    }
}

impl SharedConnection {
    fn expiry_ms(&self) -> u64 {
        let expiry = record_limits::clamp_expiry(self.options.idle_expiry);
        u64::try_from(expiry.as_millis()).unwrap_or(u64::MAX)
    }

    fn read(&self, response: RedisResult<Option<Bytes>>) -> Result<Option<Bytes>, StoreError> {
        match response {
            Ok(stored) => Ok(stored.as_ref().and_then(versioned_value::decode)),
            // Another program stores a list or a set under this key, so there is no record.
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
            Err(error) => Err(self.rejected(&error)),
        }
    }

    /// Sends the commands in one round trip, within the timeouts for connecting and for the response. Returns one
    /// response for each command, which may be an error.
    async fn send<T: FromRedisValue>(
        &self,
        mut pipeline: Pipeline,
    ) -> Result<Vec<RedisResult<T>>, StoreError> {
        // The error of one command must not hide the responses to the others.
        pipeline.ignore_errors();
        let permit = self.breaker.admit(Instant::now()).ok_or(StoreError::Paused)?;
        let shared = self.connect(permit).await?;
        let mut connection = MultiplexedConnection::clone(&shared);
        let limit = self.options.response_timeout;
        match timeout(limit, pipeline.query_async(&mut connection)).await {
            Ok(Ok(responses)) => {
                if self.breaker.record_success() {
                    tracing::info!("Redis is available again");
                }
                Ok(responses)
            }
            Ok(Err(error)) => Err(self.failed(Some(&shared), StoreError::from_redis(&error))),
            // A connection that has stopped responding may never recover, so the next request opens a new one.
            Err(_) => Err(self.failed(Some(&shared), StoreError::ResponseTimeout { limit })),
        }
    }

    /// Returns the connection that all requests share, and opens it if there is none.
    async fn connect(
        &self,
        permit: AttemptPermit,
    ) -> Result<Arc<MultiplexedConnection>, StoreError> {
        if let Some(connection) = self.connection().clone() {
            return Ok(connection);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(connection) = self.connection().clone() {
            return Ok(connection);
        }
        if self.breaker.has_failed_since(permit) {
            return Err(StoreError::Paused);
        }
        // The client's own timeouts are off, because the timeouts of this store also cover name lookup, TLS and login.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let limit = self.options.connect_timeout;
        match timeout(limit, self.client.get_multiplexed_async_connection_with_config(&config))
            .await
        {
            Ok(Ok(connection)) => Ok(Arc::clone(self.connection().insert(Arc::new(connection)))),
            Ok(Err(error)) => Err(self.failed(None, StoreError::from_redis(&error))),
            Err(_) => Err(self.failed(None, StoreError::ConnectTimeout { limit })),
        }
    }

    /// Drops the connection if it is still the current one, starts a pause, and returns `error`.
    fn failed(
        &self,
        connection: Option<&Arc<MultiplexedConnection>>,
        error: StoreError,
    ) -> StoreError {
        if let Some(connection) = connection {
            self.connection().take_if(|current| Arc::ptr_eq(current, connection));
        }
        if self.breaker.record_failure(Instant::now()) {
            tracing::warn!(%error, "Redis is unavailable; no state is kept until it responds again");
        }
        error
    }

    /// Returns the [`StoreError`] for an error response of Redis. No pause starts, because Redis is available and
    /// responds quickly.
    fn rejected(&self, error: &redis::RedisError) -> StoreError {
        if error.code() == Some("READONLY") {
            // This server is no longer the primary. A new connection looks up the host name again.
            self.connection().take();
        }
        StoreError::from_redis(error)
    }

    fn connection(&self) -> MutexGuard<'_, Option<Arc<MultiplexedConnection>>> {
        self.connection.lock()
    }
}

/// Leaves out the URL, which may contain a password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("options", &self.0.options).finish_non_exhaustive()
    }
}
