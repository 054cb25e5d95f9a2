//! Tests of signing in: which callbacks are accepted, and which addresses a sign-in may use.

use super::*;

#[tokio::test]
async fn a_login_is_used_by_the_gateway() {
    let setup = Setup::new();
    assert_needs_login(setup.client().await, &setup);
    assert_eq!(setup.needs_login().to_string(), "`mail` needs a login; run: toolcrib login mail");
    setup.login().await.unwrap();

    let client = setup.client().await.unwrap();
    let running = connect(client, &setup.upstream.url).await.unwrap();
    assert!(running.list_all_tools().await.unwrap().is_empty());
    let settings = setup.fake.settings();
    assert!(!settings.accepted.is_empty());
    assert!(
        settings.accepted.iter().all(|given| given == "Bearer CANARY-access-2"),
        "{:?}",
        settings.accepted
    );
    assert_eq!((settings.refreshes, settings.registrations), (0, 1));
    drop(settings);

    let stored = setup.stored();
    assert_eq!(stored["version"], 1);
    assert_eq!(stored["url"], setup.upstream.url.as_str());
    assert_eq!(stored["credentials"]["issuer"], setup.fake.issuer());
    assert!(!stored.to_string().contains("CANARY-id"), "only the needed fields are stored");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_callback_of_this_login_is_accepted() {
    let setup = Setup::new();
    let login = setup.start().await.unwrap();
    let url = login.url().clone();
    let finish = tokio::spawn(login.finish());
    let back = sign_in(url).await;
    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();

    let query = |text: String| {
        let mut url = back.clone();
        url.set_query(Some(&text));
        url
    };
    let other_callbacks = [
        query(String::new()),
        query("code=x".to_owned()),
        query("code=x&state=".to_owned()),
        query("code=x&state=wrong".to_owned()),
        query(format!("code=x&state={state}x")),
        query(format!("code=x&state={state}&state={state}")),
        query(format!("code=x&code=y&state={state}")),
        query(format!("state={state}")),
        query("error=<script>alert(1)</script>&state=wrong".to_owned()),
    ];
    for url in other_callbacks {
        let answer = browser().get(url.clone()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{url}");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(
            answer.text().await.unwrap(),
            "This is not the callback that Toolcrib waits for."
        );
    }
    let wrong_host =
        browser().get(back.clone()).header(header::HOST, "evil.com").send().await.unwrap();
    assert_eq!(wrong_host.status(), StatusCode::FORBIDDEN);
    assert!(!finish.is_finished());
    assert_eq!(setup.file(), None);

    assert_eq!(browser().get(back.clone()).send().await.unwrap().status(), StatusCode::OK);
    finish.await.unwrap().unwrap();
    assert!(setup.file().is_some());
    assert!(browser().get(back).send().await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn a_callback_from_another_issuer_is_rejected() {
    for iss in ["https://evil.example.com", ""] {
        let setup = Setup::new();
        setup.fake.settings().iss = Some(iss.to_owned());
        let error = setup.login().await.unwrap_err();
        assert!(matches!(error, Error::Issuer { .. }), "{iss:?}: {error:?}");
        assert_eq!(setup.file(), None);
    }
    let setup = Setup::new();
    setup.fake.settings().metadata.insert("issuer".to_owned(), json!("https://evil.example.com"));
    let error = setup.start().await.unwrap_err();
    assert!(matches!(error, Error::Issuer { .. }), "{error:?}");
}

#[tokio::test]
async fn a_sign_in_cannot_use_the_private_network() {
    let addresses = [
        "http://10.0.0.1/x",
        "https://10.0.0.1/x",
        "https://192.168.1.1/x",
        "https://169.254.169.254/x",
        "https://[fd00::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "http://example.com/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:pass@example.com/x",
        "-oProxyCommand=x",
    ];
    for address in addresses {
        for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let setup = Setup::new();
            setup.fake.settings().metadata.insert(endpoint.to_owned(), json!(address));
            let error = setup.start().await.unwrap_err();
            assert!(
                matches!(error, Error::DisallowedAddress { .. }),
                "{endpoint} {address}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn endpoints_are_not_guessed_if_a_server_advertises_none() {
    let setup = Setup::new();
    setup.fake.settings().no_metadata = true;
    assert!(matches!(setup.start().await, Err(Error::NoMetadata { .. })));
    assert_eq!(setup.fake.settings().registrations, 0);
}

#[tokio::test]
async fn the_code_is_not_sent_to_a_redirect_target() {
    let setup = Setup::new();
    setup.fake.settings().token_redirect = Some(setup.fake.at("elsewhere"));
    let error = setup.login().await.unwrap_err();
    assert!(matches!(error, Error::Exchange { .. }), "{error:?}");
    assert_eq!((setup.fake.settings().redirected, setup.file()), (0, None));
}

#[tokio::test]
async fn a_denied_login_and_a_login_without_a_callback_fail() {
    let setup = Setup::new();
    let login = setup.start().await.unwrap();
    let mut back = sign_in(login.url().clone()).await;
    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    back.query_pairs_mut()
        .clear()
        .append_pair("state", &state)
        .append_pair("error", "access_denied\u{1b}[2J");
    let (done, page) = tokio::join!(login.finish(), browser().get(back).send());
    assert_eq!(page.unwrap().status(), StatusCode::OK);
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "the sign-in to `mail` was refused: access_denied?[2J");

    let login = setup.start().await.unwrap().with_timeout(Duration::from_millis(50));
    let back = sign_in(login.url().clone()).await;
    assert!(matches!(login.finish().await, Err(Error::TimedOut { .. })));
    assert!(browser().get(back).send().await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn each_client_identity_works() {
    let mut setup = Setup::new();
    // If the registration issues a client secret, the secret is stored and used for every refresh.
    setup.fake.settings().client_secret = Some("CANARY-secret".to_owned());
    setup.login().await.unwrap();
    setup.expire_token();
    setup.client().await.unwrap();
    setup.expire_token();
    setup.client().await.unwrap();
    let basic = |authorization: &Option<String>| {
        authorization.as_ref().is_some_and(|text| text.starts_with("Basic "))
    };
    assert_eq!(setup.fake.settings().refreshes, 2);
    assert!(setup.fake.settings().token_authorization.drain(..).all(|given| basic(&given)));

    // With a client id and secret from the config, nothing is registered, and the secret is not stored.
    setup.upstream.client =
        ClientIdentity::Configured { id: "ours".to_owned(), secret: Some("CANARY-config".into()) };
    assert_needs_login(setup.client().await, &setup);
    setup.login().await.unwrap();
    setup.expire_token();
    setup.client().await.unwrap();
    assert!(setup.fake.settings().token_authorization.drain(..).all(|given| basic(&given)));
    assert_eq!(setup.fake.settings().registrations, 1);
    assert_eq!(setup.stored()["credentials"]["client_id"], "ours");
    assert!(!setup.stored().to_string().contains("CANARY-config"));
}
