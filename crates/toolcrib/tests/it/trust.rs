//! Tests that only the user's own config decides which programs run, and nothing in the working folder does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Run, run_in};

/// A home folder and a working folder for one test. The config in either folder would start a program that creates a
/// file.
struct Folders {
    root: PathBuf,
}

impl Folders {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trust").join(name);
        let _ = fs::remove_dir_all(&root);
        for folder in ["home", "home/.config", "home/.config/toolcrib", "work"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            mode(&root.join(folder), 0o700);
        }
        Self { root: root.canonicalize().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn users(&self) -> PathBuf {
        self.at("home/.config/toolcrib/toolcrib.toml")
    }

    /// Writes a config whose only server creates the file `mark` and exits.
    fn put(&self, file: &Path, mark: &str) {
        let text = format!(
            "[servers.{mark}]\ncommand = 'touch'\nargs = ['{}']\n",
            self.at(mark).display()
        );
        fs::write(file, text).unwrap();
        mode(file, 0o600);
    }

    fn ran(&self, mark: &str) -> bool {
        self.at(mark).exists()
    }

    fn run(&self, args: &[&str]) -> Run {
        run_in(&self.at("work"), &self.at("home"), args, "")
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

const NOTE: &str =
    "note: ./toolcrib.toml is not used; if you trust it, name it with `--config ./toolcrib.toml`\n";

#[test]
fn a_config_in_the_working_folder_is_never_used_unless_it_is_named() {
    let folders = Folders::new("here");
    folders.put(&folders.at("work/toolcrib.toml"), "theirs");
    // Tests both cases: without and with a config of the user's own.
    for own in [false, true] {
        if own {
            folders.put(&folders.users(), "mine");
        }
        for args in [&["doctor"][..], &["mcp", "--own"], &["search", "x"], &["login", "theirs"]] {
            let run = folders.run(args);
            assert!(!folders.ran("theirs"), "{args:?}: {run:?}");
            assert!(run.err.contains(NOTE), "{args:?}: {run:?}");
        }
        assert_eq!(folders.ran("mine"), own);
    }
    let run = folders.run(&["doctor", "--config", "./toolcrib.toml"]);
    assert!(folders.ran("theirs"), "{run:?}");
    assert!(!run.err.contains("note: "), "{run:?}");
}

#[test]
fn a_provider_in_the_working_folder_gets_no_key() {
    // If the config were used, the proxy would fail, because its upstream is not a valid URL.
    let folders = Folders::new("provider");
    fs::write(folders.at("work/toolcrib.toml"), "[proxy]\nopenai = 'no address'\n").unwrap();
    let serve = |more: &[&str]| {
        // This address is in use, so the listener fails after the config was read.
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        folders.run(&[&["serve", "--listen", &address], more].concat())
    };
    let run = serve(&[]);
    assert!(run.err.contains("ddress already in use"), "{run:?}");
    assert!(!run.err.contains("no address") && run.err.contains(NOTE), "{run:?}");
    let run = serve(&["--config", "toolcrib.toml"]);
    assert!(run.code == 2 && !run.err.contains("in use"), "{run:?}");
}

#[test]
fn the_first_line_names_the_config() {
    let folders = Folders::new("first");
    folders.put(&folders.at("work/toolcrib.toml"), "theirs");
    let first = |args: &[&str]| {
        let run = folders.run(args);
        let line = run.err.lines().next().unwrap_or_default().to_owned();
        line.split_once("config: ").unwrap_or_else(|| panic!("{args:?}: {run:?}")).1.to_owned()
    };
    let users = folders.users();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--listen", &address];
    for command in [&["doctor"][..], &["mcp", "--own"], &serve] {
        let _ = fs::remove_file(&users);
        let none =
            format!("none; `{}` does not exist, and `--config` is not given", users.display());
        assert_eq!(first(command), none);
        folders.put(&users, "mine");
        assert_eq!(first(command), format!("`{}`", users.display()));
        let named = [command, &["--config", "toolcrib.toml"]].concat();
        assert_eq!(first(&named), "`toolcrib.toml`");
    }
}

#[test]
fn a_relative_config_folder_is_ignored() {
    let folders = Folders::new("relative");
    fs::create_dir_all(folders.at("work/.config/toolcrib")).unwrap();
    folders.put(&folders.at("work/.config/toolcrib/toolcrib.toml"), "theirs");
    for (name, value) in [("XDG_CONFIG_HOME", ".config"), ("HOME", "."), ("HOME", "")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.arg("doctor").current_dir(folders.at("work")).env("HOME", folders.at("home"));
        let done = command.env(name, value).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(!folders.ran("theirs"), "{name}={value}: {stderr}");
        assert!(stderr.starts_with("config: none"), "{name}={value}: {stderr}");
    }
}

#[test]
fn a_config_that_others_could_change_is_rejected() {
    let folders = Folders::new("shared");
    let users = folders.users();
    folders.put(&users, "mine");
    let folder = users.parent().unwrap();
    for (path, bits) in
        [(&*users, 0o666), (&*users, 0o602), (folder, 0o777), (folder, 0o1777), (folder, 0o702)]
    {
        let before = fs::metadata(path).unwrap().permissions().mode();
        mode(path, bits);
        for args in [&["doctor"][..], &["mcp", "--own"], &["search", "x"]] {
            let run = folders.run(args);
            assert_eq!(run.code, 2, "{run:?}");
            let problem = format!("other users may write to `{}` (mode {bits:o})", path.display());
            let hint = format!("hint: run: chmod go-w {}", path.display());
            assert!(run.err.contains(&problem) && run.err.contains(&hint), "{run:?}");
        }
        mode(path, before);
    }
    assert!(!folders.ran("mine"));
    // A config that is named with `--config` is used, with a warning.
    mode(&users, 0o666);
    let run = folders.run(&["doctor", "--config", users.to_str().unwrap()]);
    assert!(folders.ran("mine"), "{run:?}");
    let warning = format!("warning: other users may write to `{}` (mode 666)", users.display());
    assert!(run.err.contains(&warning), "{run:?}");
}

#[test]
fn a_config_of_another_user_is_rejected() {
    // Only root can change the owner of a file, so this test is skipped for other users.
    let folders = Folders::new("foreign");
    let users = folders.users();
    folders.put(&users, "mine");
    if std::os::unix::fs::chown(&users, Some(12_345), None).is_err() {
        return;
    }
    let run = folders.run(&["doctor"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("belongs to another user (uid 12345)"), "{run:?}");
    assert!(!folders.ran("mine"));
}

#[test]
fn a_pipe_in_place_of_the_config_does_not_block() {
    let folders = Folders::new("pipe");
    let status = Command::new("mkfifo").arg(folders.users()).status().unwrap();
    assert!(status.success());
    let run = folders.run(&["doctor"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("not a regular file"), "{run:?}");
}

/// Creates a program in the working folder that creates the file `mark`.
fn plant(folders: &Folders, name: &str, mark: &str) {
    let path = folders.at("work").join(name);
    fs::write(&path, format!("#!/bin/sh\ntouch '{}'\n", folders.at(mark).display())).unwrap();
    mode(&path, 0o755);
}

#[test]
fn commands_are_not_resolved_against_the_working_folder() {
    let folders = Folders::new("command");
    for name in ["server", "sh"] {
        plant(&folders, name, "ran");
    }
    let doctor = |server: &str| {
        fs::write(folders.users(), format!("[servers.a]\n{server}\n")).unwrap();
        let run = folders.run(&["doctor", "--json"]);
        let row = run.json()["servers"][0].clone();
        (row["error"].as_str().unwrap_or_default().to_owned(), row["hint"].clone())
    };
    let relative = "is relative to the folder that Toolcrib was started in";
    for (server, expected) in [
        ("command = './server'", relative),
        ("command = '../work/server'", relative),
        ("command = '/bin/sh'\nargs = ['server']\ncwd = '.'", relative),
        ("command = 'server'\nenv = { PATH = '.' }", "cannot find the command `server`"),
        ("command = 'server'\nenv = { PATH = ':/nowhere' }", "cannot find the command `server`"),
    ] {
        let (error, hint) = doctor(server);
        assert!(error.contains(expected), "{server}: {error}");
        assert!(!folders.ran("ran"), "{server}");
        if expected == relative {
            assert!(hint.as_str().unwrap().contains("`${workspaceFolder}/`"), "{hint}");
        }
    }
    // `${workspaceFolder}` refers to the working folder explicitly, so the program in it runs.
    doctor("command = '${workspaceFolder}/server'");
    assert!(folders.ran("ran"));
}

#[test]
fn file_references_are_not_resolved_against_the_working_folder() {
    let folders = Folders::new("secret");
    fs::write(folders.at("work/key"), "planted").unwrap();
    fs::write(folders.at("home/key"), "mine").unwrap();
    let doctor = |path: &str| {
        let touch = folders.at("seen-").display().to_string();
        let text = format!("[servers.a]\ncommand = 'touch'\nargs = ['{touch}${{file:{path}}}']\n");
        fs::write(folders.users(), text).unwrap();
        folders.run(&["doctor", "--json"]).json()["servers"][0]["error"].clone()
    };
    let error = doctor("key");
    assert!(error.as_str().unwrap().contains("the path of `${file:key}` is relative"), "{error}");
    doctor("~/key");
    assert!(folders.ran("seen-mine") && !folders.ran("seen-planted"));
}

/// The server is a script that names its interpreter through `env`, which searches for the interpreter in `PATH`.
#[test]
fn programs_that_a_server_starts_are_not_searched_in_the_working_folder() {
    let folders = Folders::new("interpreter");
    plant(&folders, "planted-interpreter", "ran");
    let script = folders.at("home/script");
    fs::write(&script, "#!/usr/bin/env planted-interpreter\n").unwrap();
    mode(&script, 0o755);
    fs::write(folders.users(), format!("[servers.a]\ncommand = '{}'\n", script.display())).unwrap();
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    let done = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["doctor", "--json"])
        .current_dir(folders.at("work"))
        .env("HOME", folders.at("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer = String::from_utf8(done.stdout).unwrap();
    assert!(answer.contains("\"state\":\"down\""), "{answer}");
    assert!(!folders.ran("ran"), "{answer}");
}

/// Relative arguments refer to the folder in which a server starts, and `python3 -m x`, `npx x` and `sh server` search
/// there. So a server must not start in the working folder by default.
#[test]
fn a_server_starts_in_the_home_folder_unless_it_refers_to_the_working_folder() {
    let folders = Folders::new("folder");
    let seen = folders.at("seen");
    let script = format!("pwd > {}", seen.display());
    let started_in = |run: Run| {
        let folder = fs::read_to_string(&seen).unwrap_or_else(|error| panic!("{error}: {run:?}"));
        fs::remove_file(&seen).unwrap();
        PathBuf::from(folder.trim_end())
    };
    let put = |more: &str| {
        let text = format!("[servers.a]\ncommand = 'sh'\nargs = ['-c', '{script}', '{more}']\n");
        fs::write(folders.users(), text).unwrap();
    };
    put("");
    assert_eq!(started_in(folders.run(&["doctor"])), folders.at("home"));
    // A relative home folder would lead into the working folder, so it is not used.
    let users = folders.users();
    let args = ["doctor", "--config", users.to_str().unwrap()];
    let run = run_in(&folders.at("work"), Path::new("."), &args, "");
    assert_eq!(started_in(run), Path::new("/"));
    put("$${workspaceFolder}");
    assert_eq!(started_in(folders.run(&["doctor"])), folders.at("home"));
    put("${workspaceFolder}");
    assert_eq!(started_in(folders.run(&["doctor"])), folders.at("work"));

    plant(&folders, "server", "ran");
    fs::write(folders.users(), "[servers.a]\ncommand = 'sh'\nargs = ['server']\n").unwrap();
    let run = folders.run(&["doctor"]);
    assert!(!folders.ran("ran"), "{run:?}");

    // Relative arguments in a project's file refer to the project's folder.
    fs::create_dir_all(folders.at("work/project")).unwrap();
    let server = serde_json::json!({"command": "sh", "args": ["-c", script]});
    let text = serde_json::json!({"mcpServers": {"a": server}}).to_string();
    fs::write(folders.at("work/project/.mcp.json"), text).unwrap();
    let run = folders.run(&["doctor", "--config", "project/.mcp.json"]);
    assert_eq!(started_in(run), folders.at("work/project"));
}
