//! Tests that no token reaches a log, an error or debug output.

use super::*;

/// Collects the log at the most verbose level.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_secret_reaches_a_log_an_error_or_debug_output() {
    let sink = Sink::default();
    let writer = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    let mut errors = Vec::new();
    let mut record = |error: &oauth::Error| {
        errors.push(format!("{error} {error:?} {error:#?} {}", error.hint()));
    };

    let setup = Setup::new();
    setup.fake.settings().client_secret = Some("CANARY-secret".to_owned());
    let login = setup.start().await.unwrap();
    tracing::info!("{login:?} {:?}", setup.upstream);
    drop(login);
    setup.login().await.unwrap();
    let client = setup.client().await.unwrap();
    tracing::info!("{client:?}");
    let running = connect(client, &setup.upstream.url).await.unwrap();
    running.list_all_tools().await.unwrap();
    setup.expire_token();
    running.list_all_tools().await.unwrap();
    setup.fake.settings().valid_token = None;
    let error = running.list_all_tools().await;
    tracing::info!("{error:?}");

    // Responses of an authorization server that repeats secrets in every field.
    let echo = json!({
        "error": "CANARY", "error_description": "CANARY", "error_uri": "http://CANARY", "access_token": ["CANARY"],
        "refresh_token": {"CANARY": 1}, "expires_in": "CANARY", "token_type": "CANARY", "id_token": "CANARY",
    });
    let mut rejection = echo.clone();
    rejection["error"] = json!("invalid_grant");
    for (status, answer) in [
        (StatusCode::OK, echo.clone()),
        (StatusCode::OK, json!({ "access_token": "CANARY", "token_type": 1 })),
        (StatusCode::OK, json!("CANARY")),
        (StatusCode::BAD_REQUEST, echo.clone()),
        (StatusCode::INTERNAL_SERVER_ERROR, echo),
        (StatusCode::BAD_REQUEST, rejection),
    ] {
        setup.fake.settings().token_response = None;
        setup.login().await.unwrap();
        setup.expire_token();
        setup.fake.settings().token_response = Some((status, answer));
        record(&setup.client().await.unwrap_err());
        record(&setup.login().await.unwrap_err());
    }
    setup.fake.settings().token_response = None;
    setup.login().await.unwrap();
    setup.change(|stored| stored["credentials"]["token_response"]["expires_in"] = json!("CANARY"));
    record(&setup.client().await.unwrap_err());

    let log = String::from_utf8(sink.0.lock().clone()).unwrap();
    assert!(log.contains("rmcp::transport::auth"), "the log was captured");
    for text in [log, errors.concat()] {
        let leak =
            text.find("CANARY").map(|at| &text[at.saturating_sub(300)..(at + 40).min(text.len())]);
        assert_eq!(leak, None);
    }
}
