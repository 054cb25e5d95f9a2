//! Tests of what is stored, in which format in Redis, and for how long.

use std::time::Duration;

use bytes::Bytes;
use toolcrib_store::{ConfiguredStore, MemoryLimits, MemoryStore, RedisOptions, RedisStore, Store};
use toolcrib_testkit::redis::Server;

use crate::{key, long_timeouts, open, redis_key};

const DAY: u64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn every_store_returns_what_was_stored_and_nothing_else() {
    let server = Server::start();
    for store in [
        ConfiguredStore::Memory(MemoryStore::new(MemoryLimits::default())),
        ConfiguredStore::Redis(open(&server)),
    ] {
        let binary = Bytes::from_static(b"\0\r\n$-1\r\n\xff");
        assert_eq!(store.get(&[key(1)]).await, Ok(vec![None]));
        assert_eq!(store.put(vec![(key(1), binary.clone()), (key(2), Bytes::new())]).await, Ok(0));
        let found = store.get(&[key(2), key(3), key(1), key(2)]).await;
        assert_eq!(found, Ok(vec![Some(Bytes::new()), None, Some(binary), Some(Bytes::new())]));
        assert_eq!(store.get(&[]).await, Ok(Vec::new()));
        assert_eq!(store.put(Vec::new()).await, Ok(0));
    }
}

#[tokio::test]
async fn a_thousand_records_are_stored_in_one_call() {
    let server = Server::start();
    let redis = open(&server);
    let value = |number: u32| Bytes::from(vec![number as u8; 1000]);
    redis.put((0..1000).map(|number| (key(number), value(number))).collect()).await.unwrap();
    let keys: Vec<_> = (0..2000).map(key).collect();
    let expected: Vec<_> = (0..2000).map(|number| (number < 1000).then(|| value(number))).collect();
    assert_eq!(redis.get(&keys).await.unwrap(), expected);
    assert_eq!(server.ask(&["DBSIZE"]), "1000");
}

#[tokio::test]
async fn a_record_is_stored_under_prefix_and_hash_with_a_header() {
    let server = Server::start();
    open(&server).put(vec![(key(7), "value".into())]).await.unwrap();
    assert_eq!(server.ask(&["GET", &redis_key(7)]), "tc\u{1}value");
    let elsewhere = RedisOptions { prefix: "staging:".to_owned(), ..long_timeouts() };
    let elsewhere = RedisStore::open(&server.url(), elsewhere).unwrap();
    assert_eq!(elsewhere.get(&[key(7)]).await, Ok(vec![None]));
}

#[tokio::test]
async fn two_handles_on_one_redis_see_each_others_records() {
    let server = Server::start();
    let (one, other) = (open(&server), open(&server));
    one.put(vec![(key(1), "of one".into())]).await.unwrap();
    other.put(vec![(key(2), "of the other".into())]).await.unwrap();
    let both = Ok(vec![Some("of one".into()), Some("of the other".into())]);
    assert_eq!(one.get(&[key(1), key(2)]).await, both);
    assert_eq!(other.get(&[key(1), key(2)]).await, both);
}

#[tokio::test]
async fn reading_a_record_restarts_its_expiry() {
    let server = Server::start();
    let redis = open(&server);
    redis.put(vec![(key(1), "read".into()), (key(2), "not read".into())]).await.unwrap();
    let left = |number| server.ask(&["PTTL", &redis_key(number)]).parse::<u64>().unwrap();
    // Shortens the expiry by an hour, as if an hour had passed.
    let later = (DAY - 60 * 60 * 1000).to_string();
    for number in [1, 2] {
        assert!((DAY - 60_000..=DAY).contains(&left(number)), "{}", left(number));
        server.ask(&["PEXPIRE", &redis_key(number), &later]);
    }
    redis.get(&[key(1)]).await.unwrap();
    assert!((DAY - 60_000..=DAY).contains(&left(1)), "{}", left(1));
    assert!(left(2) <= DAY - 60 * 60 * 1000, "{}", left(2));
}

#[tokio::test]
async fn a_record_that_is_not_read_expires() {
    let server = Server::start();
    let options = RedisOptions { idle_expiry: Duration::from_millis(1), ..long_timeouts() };
    let redis = RedisStore::open(&server.url(), options).unwrap();
    redis.put(vec![(key(1), "short-lived".into())]).await.unwrap();
    // `EXISTS` does not restart the expiry, unlike a read.
    let expired = async {
        while server.ask(&["EXISTS", &redis_key(1)]) != "0" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), expired).await.unwrap();
    assert_eq!(redis.get(&[key(1)]).await, Ok(vec![None]));
}

#[tokio::test]
async fn values_of_other_programs_under_our_keys_read_as_absent() {
    let server = Server::start();
    let redis = open(&server);
    server.ask(&["SET", &redis_key(1), "garbage"]);
    server.ask(&["SET", &redis_key(2), ""]);
    server.ask(&["SET", &redis_key(3), "tc\u{2}of a newer version"]);
    server.ask(&["RPUSH", &redis_key(4), "a list"]);
    redis.put(vec![(key(5), "ours".into())]).await.unwrap();
    let keys: Vec<_> = (1..=5).map(key).collect();
    assert_eq!(redis.get(&keys).await, Ok(vec![None, None, None, None, Some("ours".into())]));
}

#[tokio::test]
async fn a_record_over_the_limit_is_skipped_and_the_others_are_stored() {
    let server = Server::start();
    let redis =
        RedisStore::open(&server.url(), RedisOptions { record_bytes: 1000, ..long_timeouts() })
            .unwrap();
    let memory = MemoryStore::new(MemoryLimits { record_bytes: 1000, ..MemoryLimits::default() });
    for store in [ConfiguredStore::Memory(memory), ConfiguredStore::Redis(redis)] {
        let value = |size: usize| Bytes::from(vec![b'x'; size]);
        let records = vec![(key(1), value(999)), (key(2), value(1000)), (key(3), value(1001))];
        assert_eq!(store.put(records).await, Ok(1));
        let found = store.get(&[key(1), key(2), key(3)]).await;
        assert_eq!(found, Ok(vec![Some(value(999)), Some(value(1000)), None]));
    }
}
