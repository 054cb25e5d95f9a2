//! State in Redis, shared by replicas.
//!
//! Opening never waits: the first request connects, and so does the first one after any failure. Each
//! step has a short limit, and after a failure Redis is left alone for a moment (`circuit`), so a Redis
//! that is away costs a few requests a fraction of a second and the others nothing.
//!
//! The client's own `ConnectionManager` was not taken: it keeps a connection that no longer answers until
//! the operating system gives it up, minutes later, and never tries again after a refused login.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, FromRedisValue, Pipeline, RedisResult,
};
use bytes::Bytes;
use tokio::time::timeout;

use crate::circuit::{Circuit, Leave};
use crate::{Key, Lost, Store, record};

/// How Redis is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What each key in Redis begins with. `toolcrib:` unless told otherwise.
    pub prefix: String,
    /// How long a record stays that nobody reads. 24 hours unless told otherwise.
    pub idle: Duration,
    /// One record, in bytes; a larger one is not kept. 4 MiB unless told otherwise.
    pub record: usize,
    /// How long to wait for a connection, login included. 250 ms unless told otherwise.
    pub connect: Duration,
    /// How long to wait for an answer. 250 ms unless told otherwise.
    pub answer: Duration,
    /// How long to leave Redis alone after a failure. A second unless told otherwise.
    pub pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "toolcrib:".to_owned(),
            idle: record::IDLE,
            record: record::LARGEST,
            connect: Duration::from_millis(250),
            answer: Duration::from_millis(250),
            pause: Duration::from_secs(1),
        }
    }
}

/// The URL is not one of a Redis. It is not repeated, as there may be a password in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the URL of Redis does not have the form `redis://[user:password@]host[:port][/database]`, \
     or `rediss://` for TLS\nhint: write `%40` for `@`, `%2F` for `/` and so on in the password"
)]
pub struct BadUrl;

/// Records in Redis 6.2 or newer. Clones share one connection.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    client: Client,
    options: Options,
    circuit: Circuit,
    line: Mutex<Option<Arc<MultiplexedConnection>>>,
    /// Held by the one who connects; the others wait for that connection.
    connecting: tokio::sync::Mutex<()>,
}

impl Redis {
    /// Gets ready to use the Redis at `url`. Whether there is one turns out at the first request.
    pub fn open(url: &str, options: Options) -> Result<Self, BadUrl> {
        let client = Client::open(url).map_err(|_| BadUrl)?;
        if let ConnectionAddr::TcpTls { insecure, .. } = client.get_connection_info().addr() {
            // `#insecure` would take any certificate.
            if *insecure {
                return Err(BadUrl);
            }
            toolcrib_tls::install_crypto_provider();
        }
        let circuit = Circuit::new(options.pause);
        Ok(Self(Arc::new(Inner {
            client,
            options,
            circuit,
            line: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        })))
    }
}

impl Store for Redis {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Lost> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline
                .cmd("GETEX")
                .arg(key.named(&self.0.options.prefix))
                .arg("PX")
                .arg(self.0.idle());
        }
        let answers = self.0.send(pipeline).await?;
        answers.into_iter().map(|answer| self.0.read(answer)).collect()
    }

    async fn put(&self, records: Vec<(Key, Bytes)>) -> Result<usize, Lost> {
        let (kept, refused) = record::within(self.0.options.record, records);
        if kept.is_empty() {
            return Ok(refused);
        }
        let mut pipeline = Pipeline::with_capacity(kept.len());
        for (key, value) in &kept {
            let name = key.named(&self.0.options.prefix);
            pipeline.cmd("SET").arg(name).arg(record::encode(value)).arg("PX").arg(self.0.idle());
        }
        for answer in self.0.send(pipeline).await? {
            let () = answer.map_err(|error| self.0.refused(&error))?;
        }
        Ok(refused)
    }
}

impl Inner {
    /// Milliseconds, as Redis counts an expiry.
    fn idle(&self) -> u64 {
        u64::try_from(record::expiry(self.options.idle).as_millis()).unwrap_or(u64::MAX)
    }

    fn read(&self, answer: RedisResult<Option<Bytes>>) -> Result<Option<Bytes>, Lost> {
        match answer {
            Ok(stored) => Ok(stored.as_ref().and_then(record::decode)),
            // Somebody keeps a list or a set under our key: nothing we wrote.
            Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// One round trip, or the two limits' time at most. An answer for each command, which may be an error.
    async fn send<T: FromRedisValue>(
        &self,
        mut pipeline: Pipeline,
    ) -> Result<Vec<RedisResult<T>>, Lost> {
        // One command's error must not hide the answers to the others.
        pipeline.ignore_errors();
        let leave = self.circuit.admit(Instant::now()).ok_or(Lost::Paused)?;
        let line = self.line(leave).await?;
        let mut connection = MultiplexedConnection::clone(&line);
        let limit = self.options.answer;
        match timeout(limit, pipeline.query_async(&mut connection)).await {
            Ok(Ok(answers)) => {
                if self.circuit.close() {
                    tracing::info!("Redis answers again");
                }
                Ok(answers)
            }
            Ok(Err(error)) => Err(self.failed(Some(&line), Lost::because(&error))),
            // A connection that has fallen silent may stay so; a new one need not.
            Err(_) => Err(self.failed(Some(&line), Lost::AnswerTimeout { limit })),
        }
    }

    /// The connection everybody uses, made now if there is none.
    async fn line(&self, leave: Leave) -> Result<Arc<MultiplexedConnection>, Lost> {
        if let Some(line) = self.slot().clone() {
            return Ok(line);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(line) = self.slot().clone() {
            return Ok(line);
        }
        if self.circuit.overtaken(leave) {
            return Err(Lost::Paused);
        }
        // Both limits are kept here, over name lookup, TLS and login as well.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let limit = self.options.connect;
        match timeout(limit, self.client.get_multiplexed_async_connection_with_config(&config))
            .await
        {
            Ok(Ok(connection)) => Ok(Arc::clone(self.slot().insert(Arc::new(connection)))),
            Ok(Err(error)) => Err(self.failed(None, Lost::because(&error))),
            Err(_) => Err(self.failed(None, Lost::ConnectTimeout { limit })),
        }
    }

    /// Gives up the connection, if it is still the one in use, and starts a pause.
    fn failed(&self, line: Option<&Arc<MultiplexedConnection>>, lost: Lost) -> Lost {
        if let Some(line) = line {
            self.slot().take_if(|current| Arc::ptr_eq(current, line));
        }
        if self.circuit.trip(Instant::now()) {
            tracing::warn!(%lost, "Redis is out of reach; state is lost until it answers");
        }
        lost
    }

    /// An error that Redis answered with costs no time, so nobody is turned away for it.
    fn refused(&self, error: &::redis::RedisError) -> Lost {
        let lost = Lost::because(error);
        if error.code() == Some("READONLY") {
            // This one was the primary once. A new connection looks the name up again.
            self.slot().take();
        }
        lost
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<MultiplexedConnection>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the URL, which may hold a password.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("options", &self.0.options).finish_non_exhaustive()
    }
}
