//! What is kept of a login, and for whom.

use super::*;

#[tokio::test]
async fn the_file_is_private_from_the_login_on_and_after_a_refresh() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;

    let setup = Setup::new();
    setup.login().await.unwrap();
    let file = setup.file().unwrap();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    setup.age();
    setup.client().await.unwrap();
    assert_eq!(setup.fake.settings().refreshes, 1);
    assert_eq!(mode(&file), 0o600);

    for shared in [0o640, 0o604] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(shared)).unwrap();
        assert_needs_login(setup.client().await, &setup);
    }
}

#[tokio::test]
async fn credentials_are_bound_to_server_url_and_issuer() {
    let mut setup = Setup::new();
    setup.login().await.unwrap();
    let url = std::mem::replace(&mut setup.upstream.url, setup.fake.at("other").parse().unwrap());
    assert_needs_login(setup.client().await, &setup);
    setup.upstream.url = url;
    setup.upstream.name = "other".to_owned();
    assert_needs_login(setup.client().await, &setup);
    setup.upstream.name = "mail".to_owned();
    setup.client().await.unwrap();

    setup.change(|kept| kept["credentials"]["issuer"] = json!("https://before.example.com"));
    assert_needs_login(setup.client().await, &setup);
}

#[tokio::test]
async fn a_damaged_file_is_no_login_and_no_panic() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let whole = std::fs::read(setup.file().unwrap()).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut kept: Value = serde_json::from_slice(&whole).unwrap();
        change(&mut kept);
        kept.to_string().into_bytes()
    };
    let damaged = [
        Vec::new(),
        b"{".to_vec(),
        b"null".to_vec(),
        vec![0xff; 100],
        whole[..whole.len() - 1].to_vec(),
        whole[..whole.len() / 2].to_vec(),
        changed(|kept| kept["version"] = json!(2)),
        changed(|kept| kept["server"] = json!("other")),
        changed(|kept| kept["url"] = json!("https://evil.example.com/")),
        changed(|kept| kept["credentials"]["issuer"] = Value::Null),
        changed(|kept| kept["credentials"]["token_response"] = Value::Null),
        changed(|kept| kept["credentials"]["token_response"]["access_token"] = json!(7)),
        changed(|kept| kept["credentials"] = json!([])),
    ];
    for bytes in damaged {
        std::fs::write(setup.file().unwrap(), &bytes).unwrap();
        assert_needs_login(setup.client().await, &setup);
    }
    setup.login().await.unwrap();
    setup.client().await.unwrap();
}
