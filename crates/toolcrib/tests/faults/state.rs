//! Tests of saved state that is damaged, outdated, or cannot be written.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::environment::TestEnvironment;
use crate::probe::until_true;
use crate::raw_client::Era;

fn saved_lists(environment: &TestEnvironment) -> Vec<PathBuf> {
    let folder = fs::read_dir(environment.state().join("servers"));
    folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Runs the gateway, and checks that it lists tools and answers a call.
fn works(environment: &TestEnvironment, what: &str) {
    let peer = environment.stdio(Era::Older);
    let names = peer.names();
    assert!(!names.is_empty(), "{what}");
    // A state file that was tampered with must not be used at all.
    assert!(!names.contains(&"shop__forged".to_owned()), "{what}: {names:?}");
    until_true(what, || peer.call("shop__echo", json!({}))["structuredContent"] == json!({}));
    let stderr = environment.stderr();
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
}

#[test]
fn damaged_state_files_are_ignored() {
    let environment =
        TestEnvironment::new("damage").faulty("shop", &["--tools", "5", "--start-delay", "400"]);
    works(&environment, "the first run");
    let file = saved_lists(&environment).pop().expect("the server's list is saved");
    let whole = fs::read(&file).unwrap();
    let remembered = || {
        let peer = environment.stdio(Era::Older);
        peer.names().contains(&"shop__tool_4".to_owned())
    };
    assert!(remembered(), "an intact file is used at once");

    let text = String::from_utf8(whole.clone()).unwrap();
    let flipped = text.replacen("tool_4", "forged", 1);
    let newer = text.replacen(r#""version":1"#, r#""version":2"#, 1);
    assert!(newer != text && flipped != text);
    let mut damages = vec![
        ("garbage", b"\xff\x00{{{{".to_vec()),
        ("newer", newer.into_bytes()),
        ("flipped", flipped.into_bytes()),
        ("another document", b"[1, 2, 3]".to_vec()),
    ];
    for part in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        damages.push(("cut short", whole[..part].to_vec()));
    }
    for (what, bytes) in damages {
        fs::write(&file, &bytes).unwrap();
        works(&environment, what);
        assert_eq!(fs::read(&file).unwrap(), whole, "{what}: the file is written again");
    }
}

/// Root can write even to a read-only folder. So the test also replaces the state folder by a file, and a state file by
/// a folder.
#[test]
fn a_read_only_state_folder_does_not_stop_the_gateway() {
    let environment = TestEnvironment::new("readonly").faulty("shop", &[]);
    fs::create_dir_all(environment.state().parent().unwrap()).unwrap();
    fs::write(environment.state(), "a file where the folder should be").unwrap();
    works(&environment, "without a folder");
    assert!(
        environment.stderr().contains("cannot be saved for the next run"),
        "{}",
        environment.stderr()
    );
    fs::remove_file(environment.state()).unwrap();
    fs::create_dir_all(environment.state()).unwrap();
    let mode = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(environment.state(), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o500);
    works(&environment, "read-only");
    mode(0o700);
    // Now a folder takes the place of the state file.
    works(&environment, "as usual");
    let file = saved_lists(&environment).pop().unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("full")).unwrap();
    works(&environment, "a folder in place of the file");
}

fn mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Another user who can write to the state folder could plant a list of tools there.
#[test]
fn a_state_folder_that_others_can_write_is_not_used() {
    let environment = TestEnvironment::new("shared").faulty("shop", &["--tools", "5"]);
    works(&environment, "the first run");
    let file = saved_lists(&environment).pop().expect("the server's list is saved");
    for (shared, bits) in [
        (environment.state(), 0o777),
        (environment.state(), 0o770),
        (environment.state().join("servers"), 0o1777),
        (environment.state().parent().unwrap().to_owned(), 0o707),
    ] {
        let before = environment.stderr().len();
        fs::write(&file, "planted").unwrap();
        mode(&shared, bits);
        works(&environment, "a shared folder");
        mode(&shared, 0o700);
        let stderr = environment.stderr()[before..].to_owned();
        let path = shared.display();
        let expected = format!("other users may write to `{path}` (mode {bits:o})");
        assert!(stderr.contains("the lists of servers are not saved between runs: "), "{stderr}");
        assert!(
            stderr.contains(&expected) && stderr.contains(&format!("chmod go-w {path}")),
            "{stderr}"
        );
        assert_eq!(fs::read(&file).unwrap(), b"planted", "{path}");
    }
    works(&environment, "private again");
    assert_ne!(fs::read(&file).unwrap(), b"planted", "the file is written again");
}

#[test]
fn a_link_in_place_of_a_list_is_not_followed() {
    let environment = TestEnvironment::new("link").faulty("shop", &["--tools", "5"]);
    works(&environment, "the first run");
    let file = saved_lists(&environment).pop().unwrap();
    let elsewhere = environment.folder.join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    let whole = fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    works(&environment, "a link");
    assert!(environment.stderr().contains("is a symbolic link"), "{}", environment.stderr());
    until_true("the link is replaced by a file", || {
        !fs::symlink_metadata(&file).unwrap().is_symlink()
    });
    assert_eq!(fs::read(&elsewhere).unwrap(), whole, "the target of the link is unchanged");
}
