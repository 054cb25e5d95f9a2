//! Tests with a Redis that is unavailable, comes back, stops responding or responds with errors.

use std::time::Duration;

use toolcrib_store::{RedisOptions, RedisStore, Store, StoreError};
use toolcrib_testkit::redis::Server;

use crate::{key, long_timeouts, open};

/// A pause longer than any test. If a request succeeds after a failure, the failure caused no pause.
const LONG_PAUSE: Duration = Duration::from_hours(1);

/// Waits until Redis is used again.
async fn wait_until_available(redis: &RedisStore) {
    let available = async {
        while redis.get(&[key(0)]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), available)
        .await
        .expect("Redis runs but is not used");
}

#[tokio::test]
async fn opening_never_waits_and_a_request_without_redis_is_an_error() {
    let port = Server::start().port();
    let redis = RedisStore::open(&format!("redis://127.0.0.1:{port}"), long_timeouts()).unwrap();
    let error = redis.get(&[key(1)]).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Disconnected { reason } if reason.contains("refused")),
        "{error:?}"
    );
    assert_eq!(redis.put(vec![(key(1), "value".into())]).await, Err(StoreError::Paused));
}

#[tokio::test]
async fn a_restarted_redis_is_used_again() {
    let server = Server::start();
    let port = server.port();
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { pause_after_failure: Duration::from_millis(20), ..long_timeouts() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();

    drop(server);
    let error = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Disconnected { .. }), "{error:?}");

    let _server = Server::start_at(port);
    wait_until_available(&redis).await;
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![None]), "the restarted Redis is empty");
    redis.put(vec![(key(1), "after".into())]).await.unwrap();
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![Some("after".into())]));
}

#[tokio::test]
async fn a_redis_that_stops_responding_is_tried_once_and_then_paused() {
    let server = Server::start();
    // Long enough for the first request to succeed on a busy machine.
    let response_timeout = Duration::from_secs(3);
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { response_timeout, pause_after_failure: LONG_PAUSE, ..long_timeouts() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();
    server.freeze();
    assert_eq!(
        redis.get(&[key(1)]).await,
        Err(StoreError::ResponseTimeout { limit: response_timeout })
    );
    assert_eq!(redis.get(&[key(1)]).await, Err(StoreError::Paused));
    // This store was never connected. The kernel accepts its connection, but the frozen Redis never responds to the
    // login.
    let connect_timeout = Duration::from_millis(50);
    let late = RedisStore::open(
        &server.url(),
        RedisOptions { connect_timeout, pause_after_failure: LONG_PAUSE, ..long_timeouts() },
    )
    .unwrap();
    let keys = [key(1)];
    let (one, other) = tokio::join!(late.get(&keys), late.get(&keys));
    assert_eq!(one, Err(StoreError::ConnectTimeout { limit: connect_timeout }));
    assert_eq!(
        other,
        Err(StoreError::Paused),
        "a request that waited for a failed connection does not open another"
    );
}

#[tokio::test]
async fn a_redis_that_responds_again_is_used_again() {
    let server = Server::start();
    let limit = Duration::from_millis(200);
    let options = RedisOptions {
        connect_timeout: limit,
        response_timeout: limit,
        pause_after_failure: Duration::from_millis(20),
        ..RedisOptions::default()
    };
    let redis = RedisStore::open(&server.url(), options).unwrap();
    wait_until_available(&redis).await;
    server.freeze();
    redis.get(&[key(1)]).await.unwrap_err();
    server.thaw();
    wait_until_available(&redis).await;
}

#[tokio::test]
async fn records_are_still_read_while_redis_rejects_writes() {
    let server = Server::start();
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { pause_after_failure: LONG_PAUSE, ..long_timeouts() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = redis.put(vec![(key(2), "after".into())]).await;
    assert_eq!(refused, Err(StoreError::Rejected { code: "OOM".to_owned() }));
    assert_eq!(redis.get(&[key(1), key(2)]).await, Ok(vec![Some("before".into()), None]));
}

#[tokio::test]
async fn a_demoted_primary_is_disconnected_so_that_its_name_is_looked_up_again() {
    let server = Server::start();
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { pause_after_failure: LONG_PAUSE, ..long_timeouts() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();
    let connections = || server.ask(&["INFO", "stats"]);
    let received = |stats: String| {
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"))
            .unwrap();
        line.parse::<u32>().unwrap()
    };
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    let before = received(connections());
    let refused = Err(StoreError::Rejected { code: "READONLY".to_owned() });
    assert_eq!(redis.put(vec![(key(1), "after".into())]).await, refused);
    assert_eq!(redis.put(vec![(key(1), "after".into())]).await, refused);
    // Two connections were opened: one after the first `READONLY` error, and one for `INFO` itself.
    assert_eq!(received(connections()) - before, 2);
}

#[tokio::test]
async fn a_failed_login_is_retried() {
    let server = Server::start_with(Some("right"), &[]);
    let url = format!("redis://:wrong@127.0.0.1:{}", server.port());
    let redis = RedisStore::open(
        &url,
        RedisOptions { pause_after_failure: Duration::from_millis(20), ..long_timeouts() },
    )
    .unwrap();
    let error = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Rejected { .. }), "{error:?}");
    server.ask(&["CONFIG", "SET", "requirepass", "wrong"]);
    wait_until_available(&redis).await;
}

#[tokio::test]
async fn cancelled_requests_do_not_affect_others() {
    let server = Server::start();
    let redis = open(&server);
    redis.put(vec![(key(1), "stored".into())]).await.unwrap();
    for _ in 0..100 {
        // The request is polled once and then dropped, so its command is sent and the response is ignored.
        let keys = [key(2)];
        let request = redis.get(&keys);
        tokio::select! { biased; _ = request => {}, () = std::future::ready(()) => {} }
    }
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![Some("stored".into())]));
}
