//! Tests of starting a server: its streams, exit code, environment and stderr, and errors at the start.

use crate::process_tree::{block_on, exists, fresh_mark, launch};
use crate::*;

pub(crate) fn bytes_pass_unchanged() {
    block_on(async {
        let mut process = launch(&fresh_mark(), "cat").spawn().await.unwrap();
        let (mut stdin, mut stdout) =
            (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        // Test data that contains every byte value. It repeats every 16 KiB.
        let bytes: Vec<u8> = (0..10_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let sent = bytes.clone();
        let writing = tokio::spawn(async move { stdin.write_all(&sent).await.unwrap() });
        let mut received = Vec::new();
        stdout.read_to_end(&mut received).await.unwrap();
        writing.await.unwrap();
        assert!(received == bytes, "{} of {} bytes", received.len(), bytes.len());
        assert_eq!(process.end().await, Exit::Code(0));
    });
}

pub(crate) fn a_line_of_a_gigabyte_takes_little_memory() {
    let output =
        Command::new(std::env::current_exe().unwrap()).arg("role:reader").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let [before, long, after, memory] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    assert_eq!([before, long, after], ["before", "too long, 512 shown", "after"]);
    let kib: u32 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    println!("  a line of 1 GiB: {kib} KiB at most");
    assert!(kib < 32 << 10, "{memory}");
}

pub(crate) fn the_exit_code_is_reported() {
    block_on(async {
        for code in [0, 1, 77, 127, 137, 255] {
            let mut process = launch(&fresh_mark(), &format!("exit {code}")).spawn().await.unwrap();
            let exit = process.wait().await;
            assert_eq!(
                (exit, exit.to_string()),
                (Exit::Code(code), format!("exited with code {code}"))
            );
        }
    });
}

pub(crate) fn stdin_and_stdout_end_with_the_server() {
    block_on(async {
        let mut process = launch(&fresh_mark(), "cat; echo ended").spawn().await.unwrap();
        process.stdin = None;
        let mut rest = String::new();
        process.stdout.as_mut().unwrap().read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "ended\n");
        assert_eq!(process.wait().await, Exit::Code(0));

        // This server closes its stdout and keeps running. End-of-file is reached only if no other process holds the
        // pipe open.
        let mut process = launch(&fresh_mark(), "exec >/dev/null; cat").spawn().await.unwrap();
        let end = process.stdout.as_mut().unwrap().read_to_string(&mut rest);
        assert_eq!(end.await.unwrap(), 0);
        assert!(exists(process.pid()));
        assert_eq!(process.end().await, Exit::Code(0));
    });
}

pub(crate) fn a_command_that_cannot_be_run_is_an_error() {
    block_on(async {
        let start = |program: &str| {
            let mut launch = launch(&fresh_mark(), "");
            launch.program = program.into();
            launch
        };
        let missing = start("no-such-command-anywhere").spawn().await.unwrap_err();
        assert_eq!(missing.to_string(), "cannot find the command `no-such-command-anywhere`");
        assert!(matches!(missing, SpawnError::NotFound { path: Some(_), .. }));

        // A script whose interpreter is missing passes all checks, so the error occurs only when the warden executes
        // it.
        let script = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-interpreter");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, run).unwrap();
        let broken = start(script.to_str().unwrap()).spawn().await.unwrap_err();
        let text =
            format!("cannot run `{}`: No such file or directory (os error 2)", script.display());
        assert_eq!(broken.to_string(), text);

        let mut elsewhere = start("sh");
        elsewhere.cwd = Some("/no/such/folder".into());
        let missing_folder = elsewhere.spawn().await.unwrap_err();
        assert_eq!(missing_folder.to_string(), "cannot run in `/no/such/folder`: not a folder");

        let mut no_warden = start("sh");
        no_warden.warden = vec!["/bin/sh".into(), "-c".into(), "echo I am no warden >&2".into()];
        let lost = no_warden.spawn().await.unwrap_err();
        assert_eq!(lost.to_string(), "the warden started no server: I am no warden");
    });
    // A warden that a user starts by hand prints an error and exits with code 127.
    let by_hand = Command::new(std::env::current_exe().unwrap())
        .args(["role:warden", "sh"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(by_hand.stderr).unwrap();
    assert!(stderr.starts_with("toolcrib warden: only the gateway can start a warden"), "{stderr}");
    assert_eq!(by_hand.status.code(), Some(127));
}

pub(crate) fn the_server_has_exactly_the_given_environment() {
    block_on(async {
        let mut launch = launch("m", "");
        launch.program = "env".into();
        launch.args.clear();
        launch.cwd = Some("/".into());
        launch.env =
            vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b c\n$HOME".into())];
        let mut process = launch.spawn().await.unwrap();
        let mut text = String::new();
        process.stdout.as_mut().unwrap().read_to_string(&mut text).await.unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["$HOME", "A=b c", "PATH=/usr/bin:/bin"]);
    });
}

pub(crate) fn stderr_is_kept_and_never_blocks() {
    block_on(async {
        let script =
            "head -c 5000000 /dev/zero | tr '\\0' e >&2; echo >&2; echo 'last words' >&2; exit 1";
        let mut process = launch(&fresh_mark(), script).spawn().await.unwrap();
        let stderr = process.stderr().clone();
        assert_eq!(process.wait().await, Exit::Code(1));
        process.end().await;
        // The loop needs no timeout of its own, because `block_on` has a deadline.
        while stderr.tail(1) != "last words" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
