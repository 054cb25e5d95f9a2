//! Tests that the user name and password in the URL are never revealed.

use std::io::Read;
use std::net::TcpListener;

use toolcrib_store::{ConfiguredStore, InvalidRedisUrl, RedisStore, Store, StoreError};
use toolcrib_testkit::redis::Server;

use crate::{key, long_timeouts};

const USER: &str = "otter";
const PASSWORD: &str = "hunter2";

#[tokio::test]
async fn neither_debug_nor_errors_show_user_or_password() {
    let server = Server::start_with(Some("another"), &[]);
    let url = format!("redis://{USER}:{PASSWORD}@127.0.0.1:{}", server.port());
    let redis = RedisStore::open(&url, long_timeouts()).unwrap();
    let rejected = redis.get(&[key(1)]).await.unwrap_err();
    let port = server.port();
    drop(server);
    let unavailable =
        RedisStore::open(&format!("redis://{USER}:{PASSWORD}@127.0.0.1:{port}"), long_timeouts())
            .unwrap();
    let refused = unavailable.get(&[key(1)]).await.unwrap_err();
    let shown = format!(
        "{redis:?} {:?} {rejected} {rejected:?} {refused} {refused:?}",
        ConfiguredStore::Redis(redis.clone())
    );
    assert!(!shown.contains(USER) && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn an_invalid_url_is_an_error_that_does_not_repeat_it() {
    let urls = [
        "",
        "hunter2",
        "http://otter:hunter2@localhost",
        "redis://otter:hunter/2@localhost",
        "redis://otter:hunter2@localhost/otter",
        "rediss://otter:hunter2@localhost#insecure",
        "redis://otter:hunter2@localhost?protocol=otter",
    ];
    for url in urls {
        assert_eq!(RedisStore::open(url, long_timeouts()).unwrap_err(), InvalidRedisUrl, "{url}");
    }
    let shown = format!("{InvalidRedisUrl} {InvalidRedisUrl:?}");
    assert!(!shown.contains(USER) && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn opening_needs_neither_a_runtime_nor_a_redis() {
    for url in [
        "redis://nowhere.invalid",
        "rediss://otter:hunter%2F2@nowhere.invalid:6380/3",
        "redis+unix:///nowhere",
    ] {
        RedisStore::open(url, long_timeouts()).unwrap();
    }
}

#[tokio::test]
async fn a_tls_url_sends_nothing_unencrypted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = std::thread::spawn(move || {
        let mut received = vec![0; 4096];
        let length = listener.accept().unwrap().0.read(&mut received).unwrap();
        received[..length].to_vec()
    });
    let redis =
        RedisStore::open(&format!("rediss://{USER}:{PASSWORD}@localhost:{port}"), long_timeouts())
            .unwrap();
    let error = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Disconnected { .. }), "{error:?}");
    let received = received.join().unwrap();
    assert_eq!(received[0], 22, "the first record of TLS is a handshake: {received:?}");
    assert!(!received.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
}
