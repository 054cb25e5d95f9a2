//! Tests of refreshing tokens: concurrent calls refresh a token only once, and a login is required if the refresh is
//! rejected.

use tokio::sync::watch;

use super::*;

async fn until(condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), look).await.unwrap();
}

#[tokio::test]
async fn concurrent_calls_refresh_an_expired_token_once() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    let running = connect(client.clone(), &setup.upstream.url).await.unwrap();

    setup.expire_token();
    let tokens = tokio::join!(
        client.get_access_token(),
        client.get_access_token(),
        client.get_access_token()
    );
    let valid = setup.fake.settings().valid_token.clone().unwrap();
    assert_eq!(
        (tokens.0.unwrap(), tokens.1.unwrap(), tokens.2.unwrap()),
        (valid.clone(), valid.clone(), valid.clone())
    );
    assert_eq!(setup.fake.settings().refreshes, 1);
    assert_eq!(setup.stored()["credentials"]["token_response"]["access_token"], valid.as_str());
    running.list_all_tools().await.unwrap();
    assert_eq!(setup.fake.settings().accepted.last().unwrap(), &format!("Bearer {valid}"));
}

#[tokio::test]
async fn concurrent_calls_refresh_a_revoked_token_once() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    // The token has not expired, but the server has revoked it.
    setup.fake.settings().valid_token = None;
    let calls = (0..8).map(|_| {
        let peer = running.peer().clone();
        tokio::spawn(async move { peer.list_all_tools().await.map(drop) })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(setup.fake.settings().refreshes, 1);
}

#[tokio::test]
async fn two_gateways_do_not_use_the_same_refresh_token() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.expire_token();
    // The first gateway waits for its token while the second one starts.
    let (open, gate) = watch::channel(false);
    setup.fake.settings().token_gate = Some(gate);
    let before = setup.fake.settings().token_requests;
    let release = async {
        until(|| setup.fake.settings().token_requests > before).await;
        open.send(true).unwrap();
    };
    let (one, two, ()) = tokio::join!(setup.client(), setup.client(), release);
    let (one, two) = (one.unwrap(), two.unwrap());
    let valid = setup.fake.settings().valid_token.clone().unwrap();
    assert_eq!(one.get_access_token().await.unwrap(), valid);
    assert_eq!(two.get_access_token().await.unwrap(), valid);
}

#[tokio::test]
async fn a_refresh_completes_after_its_connection_is_dropped() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.expire_token();
    let expired = setup.stored();
    let (open, gate) = watch::channel(false);
    setup.fake.settings().token_gate = Some(gate);
    let before = setup.fake.settings().token_requests;
    // The connection is dropped after the authorization server has received the refresh request and before it answers.
    tokio::select! {
        _ = setup.client() => panic!("the client connected without a token"),
        () = until(|| setup.fake.settings().token_requests > before) => {}
    }
    open.send(true).unwrap();
    until(|| setup.stored() != expired).await;
    assert_eq!(setup.fake.settings().refreshes, 1);
    let valid = setup.fake.settings().valid_token.clone().unwrap();
    assert_eq!(setup.stored()["credentials"]["token_response"]["access_token"], valid.as_str());
}

#[test]
fn the_futures_are_send() {
    fn is_send<T: Send>(_: T) {}
    let setup = Setup::new();
    is_send(setup.client());
    is_send(setup.login());
}

#[tokio::test]
async fn a_rejected_refresh_requires_a_login() {
    for code in ["invalid_grant", "invalid_client", "unauthorized_client"] {
        let setup = Setup::new();
        setup.login().await.unwrap();
        let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
        setup.expire_token();
        setup.fake.settings().valid_token = None;
        setup.fake.settings().token_response =
            Some((StatusCode::BAD_REQUEST, json!({ "error": code })));
        assert_needs_login(setup.client().await, &setup);
        assert_eq!(setup.file(), None, "rejected tokens are not used again");
        assert_needs_login(setup.client().await, &setup);

        // A connection that was already open learns from its next call that a login is required.
        let error = running.list_all_tools().await.unwrap_err();
        assert_eq!(needs_login("mail", &error), Some(setup.needs_login()), "{error:?}");
        // After another login, a new connection works.
        setup.fake.settings().token_response = None;
        setup.login().await.unwrap();
        connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_error_tells_whether_a_login_is_required() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    std::fs::remove_file(setup.file().unwrap()).unwrap();
    let error = connect(client.clone(), &setup.upstream.url).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), Some(setup.needs_login()), "{error:?}");

    let no_server = "http://127.0.0.1:9/mcp".parse().unwrap();
    let error = connect(client, &no_server).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), None, "{error:?}");
}

#[tokio::test]
async fn an_unavailable_authorization_server_requires_no_login() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.expire_token();
    setup.fake.settings().token_response = Some((StatusCode::SERVICE_UNAVAILABLE, json!("later")));
    assert!(matches!(setup.client().await, Err(Error::Unavailable { .. })));
    setup.fake.settings().token_response = None;
    setup.client().await.unwrap();
}
