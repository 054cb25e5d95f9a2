//! Tests that tokens and logins are saved only in a folder that no other user can change, and not at all without a home
//! folder.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Run, own_path, run_in};

/// A home folder for one test, which contains the state folder.
struct Home {
    path: PathBuf,
}

impl Home {
    fn new() -> Self {
        let path = own_path("home");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join(".local/state/toolcrib")).unwrap();
        let home = Self { path: path.canonicalize().unwrap() };
        for folder in ["", ".local", ".local/state", ".local/state/toolcrib"] {
            mode(&home.path.join(folder), 0o700);
        }
        home
    }

    fn state(&self) -> PathBuf {
        self.path.join(".local/state/toolcrib")
    }

    /// Runs `serve` on an address that is not loopback and is already in use. If the token is usable, the only error is
    /// that the address is in use.
    fn serve(&self) -> Run {
        let taken = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        run_in(&self.path, &self.path, &["serve", "--listen", &address], "")
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn is_usable(run: &Run) -> bool {
    run.err.contains("ddress already in use")
}

#[test]
fn a_token_is_not_saved_where_others_can_write() {
    let home = Home::new();
    assert!(is_usable(&home.serve()));
    let token = home.state().join("token");
    let token_text = fs::read_to_string(&token).unwrap();
    assert_eq!(token_text.len(), 64);
    for (folder, bits) in [
        (home.state(), 0o777),
        (home.state(), 0o1777),
        (home.state(), 0o770),
        (home.path.join(".local/state"), 0o703),
        (home.path.join(".local"), 0o777),
        (home.path.clone(), 0o757),
    ] {
        mode(&folder, bits);
        let run = home.serve();
        mode(&folder, 0o700);
        assert!(run.code == 2 && !is_usable(&run), "{run:?}");
        let path = folder.display();
        let problem = format!("other users may write to `{path}` (mode {bits:o})");
        let hint = format!("hint: check the contents of `{path}`, then run: chmod go-w {path}\n");
        assert!(run.err.contains(&problem) && run.err.contains(&hint), "{run:?}");
    }
    assert!(is_usable(&home.serve()));
    assert_eq!(fs::read_to_string(&token).unwrap(), token_text);
}

#[test]
fn a_token_file_that_others_could_have_written_is_rejected() {
    let home = Home::new();
    let (token, other) = (home.state().join("token"), home.path.join("other"));
    fs::write(&other, "0123456789abcdef0123456789abcdef").unwrap();
    mode(&other, 0o600);
    let refused = |expected: &str| {
        let run = home.serve();
        assert!(run.code == 2 && !is_usable(&run), "{run:?}");
        assert!(run.err.contains(expected), "{expected}: {run:?}");
        assert!(run.err.contains("hint: "), "{run:?}");
        assert!(!run.err.contains("0123456789abcdef"), "{run:?}");
    };
    symlink(&other, &token).unwrap();
    refused("is a symbolic link");
    fs::remove_file(&token).unwrap();
    // The gateway must not create a file through a symbolic link either.
    let absent = home.path.join("absent");
    symlink(&absent, &token).unwrap();
    refused("is a symbolic link");
    assert!(!absent.exists());
    fs::remove_file(&token).unwrap();
    fs::hard_link(&other, &token).unwrap();
    refused("has 2 hard links");
    fs::remove_file(&token).unwrap();
    assert!(Command::new("mkfifo").arg(&token).status().unwrap().success());
    mode(&token, 0o600);
    refused("not a regular file");
    fs::remove_file(&token).unwrap();
    // Only root can change the owner of a file, so this part is skipped for other users.
    fs::copy(&other, &token).unwrap();
    for path in [token.clone(), home.state()] {
        if chown(&path, Some(12_345), None).is_ok() {
            refused("belongs to another user (uid 12345)");
            chown(&path, Some(0), None).unwrap();
        }
    }
    assert!(is_usable(&home.serve()));
}

#[test]
fn a_login_that_cannot_be_saved_is_rejected_before_the_user_signs_in() {
    let home = Home::new();
    let config = home.path.join("config.toml");
    // No server listens on this address, so a login that tried to connect would fail with a different error.
    fs::write(&config, "[servers.mail]\nurl = 'http://127.0.0.1:9/mcp'\n").unwrap();
    mode(&home.state(), 0o777);
    let args = ["login", "mail", "--config", config.to_str().unwrap()];
    let run = run_in(&home.path, &home.path, &args, "");
    assert_eq!(run.code, 2, "{run:?}");
    let problem = "error: `mail`: a login to `mail` cannot be stored: other users may write to";
    assert!(run.err.starts_with(problem) && run.err.contains("chmod go-w"), "{run:?}");
}

#[test]
fn without_a_home_nothing_is_saved_and_a_warning_is_printed() {
    let home = Home::new();
    let temporary = home.path.join("temporary");
    fs::create_dir(&temporary).unwrap();
    let run = |args: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(args)
            .current_dir(&home.path)
            .env_remove("HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("TMPDIR", &temporary)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { code: done.status.code().unwrap(), out: text(done.stdout), err: text(done.stderr) }
    };
    let warning = "warning: tool lists, logins and tokens are not saved, because there is no state folder; set \
                   HOME or XDG_STATE_HOME\n";
    for args in [&["mcp", "--own"][..], &["doctor"]] {
        let run = run(args);
        assert!(run.err.contains(warning), "{run:?}");
    }
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = run(&["serve", "--listen", &address]);
    assert_eq!(serve.code, 2, "{serve:?}");
    let problem = "a listener on a network address needs a token, and there is no state folder to store one in\n\
                   hint: set `http.token` in the config, or HOME\n";
    assert!(serve.err.contains(problem), "{serve:?}");
    // If the config contains a token, there is nothing to save, so no folder is needed.
    let config = home.path.join("config.toml");
    fs::write(&config, "[http]\ntoken = '0123456789abcdef'\n").unwrap();
    let serve = run(&["serve", "--listen", &address, "--config", config.to_str().unwrap()]);
    assert!(is_usable(&serve), "{serve:?}");
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "nothing is written to the temporary folder"
    );
}
