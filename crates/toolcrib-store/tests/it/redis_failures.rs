//! A Redis that is away, comes back, falls silent or says no.

use std::time::Duration;

use toolcrib_store::{RedisOptions, RedisStore, Store, StoreError};
use toolcrib_testkit::redis::Server;

use crate::{key, open, patient};

/// Longer than any test takes: whoever is let through within it was not held back.
const FOREVER: Duration = Duration::from_hours(1);

/// Asks until Redis is heard again; each time it is not must say reason.
async fn heard_again(redis: &RedisStore) {
    let heard = async {
        while redis.get(&[key(0)]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), heard)
        .await
        .expect("Redis is there and is not heard");
}

#[tokio::test]
async fn opening_waits_for_nobody_and_asking_nobody_is_a_loss() {
    let port = Server::start().port();
    let redis = RedisStore::open(&format!("redis://127.0.0.1:{port}"), patient()).unwrap();
    let lost = redis.get(&[key(1)]).await.unwrap_err();
    assert!(
        matches!(&lost, StoreError::Disconnected { reason } if reason.contains("refused")),
        "{lost:?}"
    );
    assert_eq!(redis.put(vec![(key(1), "value".into())]).await, Err(StoreError::Paused));
}

#[tokio::test]
async fn a_redis_killed_and_started_again_is_used_again() {
    let server = Server::start();
    let port = server.port();
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { pause_after_failure: Duration::from_millis(20), ..patient() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();

    drop(server);
    let lost = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Disconnected { .. }), "{lost:?}");

    let _server = Server::start_at(port);
    heard_again(&redis).await;
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![None]), "this Redis is an empty one");
    redis.put(vec![(key(1), "after".into())]).await.unwrap();
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![Some("after".into())]));
}

#[tokio::test]
async fn a_silent_redis_is_waited_for_once_and_then_left_alone() {
    let server = Server::start();
    // Long enough for a busy machine to answer the first request in.
    let response_timeout = Duration::from_secs(3);
    let redis = RedisStore::open(
        &server.url(),
        RedisOptions { response_timeout, pause_after_failure: FOREVER, ..patient() },
    )
    .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();
    server.freeze();
    assert_eq!(
        redis.get(&[key(1)]).await,
        Err(StoreError::ResponseTimeout { limit: response_timeout })
    );
    assert_eq!(redis.get(&[key(1)]).await, Err(StoreError::Paused));
    // A handle that was never connected: the kernel takes its connection, and nobody says hello.
    let connect_timeout = Duration::from_millis(50);
    let late = RedisStore::open(
        &server.url(),
        RedisOptions { connect_timeout, pause_after_failure: FOREVER, ..patient() },
    )
    .unwrap();
    let keys = [key(1)];
    let (one, other) = tokio::join!(late.get(&keys), late.get(&keys));
    assert_eq!(one, Err(StoreError::ConnectTimeout { limit: connect_timeout }));
    assert_eq!(
        other,
        Err(StoreError::Paused),
        "who waited for a connection that failed does not try another"
    );
}

#[tokio::test]
async fn a_redis_that_was_silent_is_used_again() {
    let server = Server::start();
    let limit = Duration::from_millis(200);
    let options = RedisOptions {
        connect_timeout: limit,
        response_timeout: limit,
        pause_after_failure: Duration::from_millis(20),
        ..RedisOptions::default()
    };
    let redis = RedisStore::open(&server.url(), options).unwrap();
    heard_again(&redis).await;
    server.freeze();
    redis.get(&[key(1)]).await.unwrap_err();
    server.thaw();
    heard_again(&redis).await;
}

#[tokio::test]
async fn what_redis_refuses_to_write_it_still_reads() {
    let server = Server::start();
    let redis =
        RedisStore::open(&server.url(), RedisOptions { pause_after_failure: FOREVER, ..patient() })
            .unwrap();
    redis.put(vec![(key(1), "before".into())]).await.unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = redis.put(vec![(key(2), "after".into())]).await;
    assert_eq!(refused, Err(StoreError::Rejected { code: "OOM".to_owned() }));
    assert_eq!(redis.get(&[key(1), key(2)]).await, Ok(vec![Some("before".into()), None]));
}

#[tokio::test]
async fn a_primary_that_was_demoted_is_left_for_whoever_has_its_name_now() {
    let server = Server::start();
    let redis =
        RedisStore::open(&server.url(), RedisOptions { pause_after_failure: FOREVER, ..patient() })
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
    // One is the question itself.
    assert_eq!(received(connections()) - before, 2);
}

#[tokio::test]
async fn a_login_that_was_refused_is_tried_again() {
    let server = Server::start_with(Some("right"), &[]);
    let url = format!("redis://:wrong@127.0.0.1:{}", server.port());
    let redis = RedisStore::open(
        &url,
        RedisOptions { pause_after_failure: Duration::from_millis(20), ..patient() },
    )
    .unwrap();
    let lost = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Rejected { .. }), "{lost:?}");
    server.ask(&["CONFIG", "SET", "requirepass", "wrong"]);
    heard_again(&redis).await;
}

#[tokio::test]
async fn requests_that_vanish_half_way_harm_nobody() {
    let server = Server::start();
    let redis = open(&server);
    redis.put(vec![(key(1), "kept".into())]).await.unwrap();
    for _ in 0..100 {
        // Polled once, then dropped: the command is on its way and nobody waits for its answer.
        let keys = [key(2)];
        let asking = redis.get(&keys);
        tokio::select! { biased; _ = asking => {}, () = std::future::ready(()) => {} }
    }
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![Some("kept".into())]));
}
