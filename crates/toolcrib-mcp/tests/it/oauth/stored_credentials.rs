//! Tests of the file that stores the credentials of a login.

use super::*;

#[tokio::test]
async fn the_file_is_private_from_the_login_on_and_after_a_refresh() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;

    let setup = Setup::new();
    setup.login().await.unwrap();
    let file = setup.file().unwrap();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    setup.expire_token();
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

    setup.change(|stored| stored["credentials"]["issuer"] = json!("https://before.example.com"));
    assert_needs_login(setup.client().await, &setup);
}

#[tokio::test]
async fn a_damaged_file_counts_as_not_logged_in() {
    let setup = Setup::new();
    setup.login().await.unwrap();
    let intact = std::fs::read(setup.file().unwrap()).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut stored: Value = serde_json::from_slice(&intact).unwrap();
        change(&mut stored);
        stored.to_string().into_bytes()
    };
    let damaged = [
        Vec::new(),
        b"{".to_vec(),
        b"null".to_vec(),
        vec![0xff; 100],
        intact[..intact.len() - 1].to_vec(),
        intact[..intact.len() / 2].to_vec(),
        changed(|stored| stored["version"] = json!(2)),
        changed(|stored| stored["server"] = json!("other")),
        changed(|stored| stored["url"] = json!("https://evil.example.com/")),
        changed(|stored| stored["credentials"]["issuer"] = Value::Null),
        changed(|stored| stored["credentials"]["token_response"] = Value::Null),
        changed(|stored| stored["credentials"]["token_response"]["access_token"] = json!(7)),
        changed(|stored| stored["credentials"] = json!([])),
    ];
    for bytes in damaged {
        std::fs::write(setup.file().unwrap(), &bytes).unwrap();
        assert_needs_login(setup.client().await, &setup);
    }
    setup.login().await.unwrap();
    setup.client().await.unwrap();
}
