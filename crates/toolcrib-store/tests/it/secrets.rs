//! What is in the URL stays in the URL.

use std::io::Read;
use std::net::TcpListener;

use toolcrib_store::{ConfiguredStore, InvalidRedisUrl, RedisStore, Store, StoreError};
use toolcrib_testkit::redis::Server;

use crate::{key, patient};

const USER: &str = "otter";
const PASSWORD: &str = "hunter2";

#[tokio::test]
async fn neither_debug_nor_errors_show_user_or_password() {
    let server = Server::start_with(Some("another"), &[]);
    let url = format!("redis://{USER}:{PASSWORD}@127.0.0.1:{}", server.port());
    let redis = RedisStore::open(&url, patient()).unwrap();
    let rejected = redis.get(&[key(1)]).await.unwrap_err();
    let port = server.port();
    drop(server);
    let away = RedisStore::open(&format!("redis://{USER}:{PASSWORD}@127.0.0.1:{port}"), patient())
        .unwrap();
    let refused = away.get(&[key(1)]).await.unwrap_err();
    let shown = format!(
        "{redis:?} {:?} {rejected} {rejected:?} {refused} {refused:?}",
        ConfiguredStore::Redis(redis.clone())
    );
    assert!(!shown.contains(USER) && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn a_url_that_is_none_is_refused_without_repeating_it() {
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
        assert_eq!(RedisStore::open(url, patient()).unwrap_err(), InvalidRedisUrl, "{url}");
    }
    let shown = format!("{InvalidRedisUrl} {InvalidRedisUrl:?}");
    assert!(!shown.contains(USER) && !shown.contains(PASSWORD), "{shown}");
}

#[test]
fn opening_needs_no_runtime_and_no_redis() {
    for url in [
        "redis://nowhere.invalid",
        "rediss://otter:hunter%2F2@nowhere.invalid:6380/3",
        "redis+unix:///nowhere",
    ] {
        RedisStore::open(url, patient()).unwrap();
    }
}

#[tokio::test]
async fn a_url_for_tls_sends_nothing_in_the_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let mut heard = vec![0; 4096];
        let length = listener.accept().unwrap().0.read(&mut heard).unwrap();
        heard[..length].to_vec()
    });
    let redis =
        RedisStore::open(&format!("rediss://{USER}:{PASSWORD}@localhost:{port}"), patient())
            .unwrap();
    let lost = redis.get(&[key(1)]).await.unwrap_err();
    assert!(matches!(lost, StoreError::Disconnected { .. }), "{lost:?}");
    let heard = heard.join().unwrap();
    assert_eq!(heard[0], 22, "the first record of TLS is a handshake: {heard:?}");
    assert!(!heard.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
}
