//! What was kept between runs is damaged, from another time, or cannot be written.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::peer::Era;
use crate::probe::until_true;
use crate::stage::Stage;

fn kept(stage: &Stage) -> Vec<PathBuf> {
    let folder = fs::read_dir(stage.state().join("servers"));
    folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A run: the list comes, and so does an answer.
fn works(stage: &Stage, what: &str) {
    let peer = stage.stdio(Era::Handshake);
    let names = peer.names();
    assert!(!names.is_empty(), "{what}");
    // Nothing of a file that is not as it was written.
    assert!(!names.contains(&"shop__forged".to_owned()), "{what}: {names:?}");
    until_true(what, || peer.call("shop__echo", json!({}))["structuredContent"] == json!({}));
    let said = stage.said();
    assert!(!said.contains("panicked"), "{what}: {said}");
}

#[test]
fn damaged_files_count_as_none() {
    let stage = Stage::new("damage").faulty("shop", &["--tools", "5", "--start-delay", "400"]);
    works(&stage, "the first run");
    let file = kept(&stage).pop().expect("what was learnt is kept");
    let whole = fs::read(&file).unwrap();
    let remembered = || {
        let peer = stage.stdio(Era::Handshake);
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
        works(&stage, what);
        assert_eq!(fs::read(&file).unwrap(), whole, "{what}: it is written anew");
    }
}

/// As root permissions mean nothing, so the folder is in the way of a file too.
#[test]
fn a_folder_that_cannot_be_written() {
    let stage = Stage::new("readonly").faulty("shop", &[]);
    fs::create_dir_all(stage.state().parent().unwrap()).unwrap();
    fs::write(stage.state(), "a file where the folder should be").unwrap();
    works(&stage, "without a folder");
    assert!(stage.said().contains("cannot be saved for the next run"), "{}", stage.said());
    fs::remove_file(stage.state()).unwrap();
    fs::create_dir_all(stage.state()).unwrap();
    let mode = |mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(stage.state(), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o500);
    works(&stage, "read-only");
    mode(0o700);
    // A folder where a file should be.
    works(&stage, "as usual");
    let file = kept(&stage).pop().unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("full")).unwrap();
    works(&stage, "a folder in place of the file");
}

fn mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A user who can write to the folder could give the gateway a list of tools.
#[test]
fn a_folder_that_others_can_write_is_neither_read_nor_written() {
    let stage = Stage::new("shared").faulty("shop", &["--tools", "5"]);
    works(&stage, "the first run");
    let file = kept(&stage).pop().expect("what was learnt is kept");
    for (shared, bits) in [
        (stage.state(), 0o777),
        (stage.state(), 0o770),
        (stage.state().join("servers"), 0o1777),
        (stage.state().parent().unwrap().to_owned(), 0o707),
    ] {
        let before = stage.said().len();
        fs::write(&file, "planted").unwrap();
        mode(&shared, bits);
        works(&stage, "a shared folder");
        mode(&shared, 0o700);
        let said = stage.said()[before..].to_owned();
        let path = shared.display();
        let expected = format!("other users may write to `{path}` (mode {bits:o})");
        assert!(said.contains("the lists of servers are not saved between runs: "), "{said}");
        assert!(said.contains(&expected) && said.contains(&format!("chmod go-w {path}")), "{said}");
        assert_eq!(fs::read(&file).unwrap(), b"planted", "{path}");
    }
    works(&stage, "private again");
    assert_ne!(fs::read(&file).unwrap(), b"planted", "it is written again");
}

#[test]
fn a_link_in_place_of_a_list_is_not_followed() {
    let stage = Stage::new("link").faulty("shop", &["--tools", "5"]);
    works(&stage, "the first run");
    let file = kept(&stage).pop().unwrap();
    let elsewhere = stage.folder.join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    let whole = fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    works(&stage, "a link");
    assert!(stage.said().contains("is a symbolic link"), "{}", stage.said());
    until_true("a file in its place", || !fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(fs::read(&elsewhere).unwrap(), whole, "what the link led to is as it was");
}
