//! Tokens grow old: they are refreshed once, and a login is asked for when that is refused.

use tokio::sync::watch;

use super::*;

/// Waits for a condition.
async fn until(condition: impl Fn() -> bool) {
    let look = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), look).await.unwrap();
}

#[tokio::test]
async fn calls_that_find_the_token_old_refresh_it_once() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    let running = connect(client.clone(), &setup.upstream.url).await.unwrap();

    setup.age();
    let tokens = tokio::join!(
        client.get_access_token(),
        client.get_access_token(),
        client.get_access_token()
    );
    let valid = setup.fake.settings().valid.clone().unwrap();
    assert_eq!(
        (tokens.0.unwrap(), tokens.1.unwrap(), tokens.2.unwrap()),
        (valid.clone(), valid.clone(), valid.clone())
    );
    assert_eq!(setup.fake.settings().refreshes, 1);
    assert_eq!(setup.kept()["credentials"]["token_response"]["access_token"], valid.as_str());
    running.list_all_tools().await.unwrap();
    assert_eq!(setup.fake.settings().inside.last().unwrap(), &format!("Bearer {valid}"));
}

#[tokio::test]
async fn calls_that_are_turned_away_refresh_it_once_too() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    // The clock says the token is good; the server has withdrawn it.
    setup.fake.settings().valid = None;
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
async fn two_gateways_do_not_spend_the_same_refresh_token() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    // The first to ask waits for its token while the other starts.
    let (open, gate) = watch::channel(false);
    setup.fake.settings().token_gate = Some(gate);
    let before = setup.fake.settings().token_requests;
    let release = async {
        until(|| setup.fake.settings().token_requests > before).await;
        open.send(true).unwrap();
    };
    let (one, two, ()) = tokio::join!(setup.client(), setup.client(), release);
    let (one, two) = (one.unwrap(), two.unwrap());
    let valid = setup.fake.settings().valid.clone().unwrap();
    assert_eq!(one.get_access_token().await.unwrap(), valid);
    assert_eq!(two.get_access_token().await.unwrap(), valid);
}

#[tokio::test]
async fn a_refresh_outlives_the_connection_that_asked_for_it() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    let aged = setup.kept();
    let (open, gate) = watch::channel(false);
    setup.fake.settings().token_gate = Some(gate);
    let before = setup.fake.settings().token_requests;
    // The connection is given up while the sign-in has the request and has not answered it.
    tokio::select! {
        _ = setup.client() => panic!("there is no token yet"),
        () = until(|| setup.fake.settings().token_requests > before) => {}
    }
    open.send(true).unwrap();
    until(|| setup.kept() != aged).await;
    assert_eq!(setup.fake.settings().refreshes, 1);
    let valid = setup.fake.settings().valid.clone().unwrap();
    assert_eq!(setup.kept()["credentials"]["token_response"]["access_token"], valid.as_str());
}

#[test]
fn the_futures_can_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    let setup = Setup::new();
    is_send(setup.client());
    is_send(setup.login());
}

#[tokio::test]
async fn a_refused_refresh_needs_a_login() {
    for code in ["invalid_grant", "invalid_client", "unauthorized_client"] {
        let setup = Setup::new();
        setup.login().await.unwrap();
        let running = connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
        setup.age();
        setup.fake.settings().valid = None;
        setup.fake.settings().token_answer =
            Some((StatusCode::BAD_REQUEST, json!({ "error": code })));
        assert_needs_login(setup.client().await, &setup);
        assert_eq!(setup.file(), None, "what was refused is not tried again");
        assert_needs_login(setup.client().await, &setup);

        // The connection that was open meanwhile learns it from its next call.
        let error = running.list_all_tools().await.unwrap_err();
        assert_eq!(needs_login("mail", &error), Some(setup.needs_login()), "{error:?}");
        // And so does the next login's connection, before and after.
        setup.fake.settings().token_answer = None;
        setup.login().await.unwrap();
        connect(setup.client().await.unwrap(), &setup.upstream.url).await.unwrap();
    }
}

#[tokio::test]
async fn an_error_at_the_connection_tells_a_login_from_a_fault() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    std::fs::remove_file(setup.file().unwrap()).unwrap();
    let error = connect(client.clone(), &setup.upstream.url).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), Some(setup.needs_login()), "{error:?}");

    let nobody = "http://127.0.0.1:9/mcp".parse().unwrap();
    let error = connect(client, &nobody).await.unwrap_err();
    assert_eq!(needs_login("mail", &*error), None, "{error:?}");
}

#[tokio::test]
async fn a_sign_in_that_is_down_for_now_costs_no_login() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    setup.age();
    setup.fake.settings().token_answer = Some((StatusCode::SERVICE_UNAVAILABLE, json!("later")));
    assert!(matches!(setup.client().await, Err(Error::Unavailable { .. })));
    setup.fake.settings().token_answer = None;
    setup.client().await.unwrap();
}
