//! A real Redis server for one test. It has its own port and is stopped at the end of the test.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Maximum time to wait for a server's first response. A server needs far less.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running Redis server without persistence. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    port: u16,
    password: Option<String>,
    folder: TempDir,
}

impl Server {
    /// Starts a server on a free port and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(None, &[])
    }

    /// Starts a server with additional options. If a password is given, the server requires it.
    pub fn start_with(password: Option<&str>, options: &[&str]) -> Self {
        // Another process may take the free port first. Then the server exits immediately, and another port is tried.
        (0..20)
            .find_map(|_| Self::try_start(free_port(), password, options))
            .expect("no port was free for redis-server")
    }

    /// Starts a server on this port, which must be free. It is usually the port of a server that was killed.
    pub fn start_at(port: u16) -> Self {
        Self::try_start(port, None, &[]).expect("redis-server ended at once; is the port taken?")
    }

    fn try_start(port: u16, password: Option<&str>, options: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(program());
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(folder.path());
        if let Some(password) = password {
            command.args(["--requirepass", password]);
        }
        command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let mut server = Self { process, port, password: password.map(str::to_owned), folder };
        server.wait().then_some(server)
    }

    /// Waits until the server answers. Returns `false` if its process exits first.
    fn wait(&mut self) -> bool {
        // The process id is compared, because a different Redis server on this port would also answer.
        let own = format!("process_id:{}\r\n", self.process.id());
        let end = Instant::now() + PATIENCE;
        loop {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            if self.try_ask(&[&["INFO", "server"]]).is_ok_and(|answer| answer.contains(&own)) {
                return true;
            }
            assert!(Instant::now() < end, "redis-server did not answer within {PATIENCE:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the server, including the password if there is one.
    pub fn url(&self) -> String {
        let login =
            self.password.as_ref().map(|password| format!(":{password}@")).unwrap_or_default();
        format!("redis://{login}127.0.0.1:{}", self.port)
    }

    /// Returns the path of a temporary folder that is removed when the server is dropped.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends one command directly to the server, without the code under test. Returns the reply without its type marker
    /// and line end, such as `PONG`, `1` or a value. Panics on an error reply.
    pub fn ask(&self, command: &[&str]) -> String {
        let answer = self.try_ask(&[command]).unwrap();
        assert!(!answer.starts_with('-'), "{command:?}: {answer}");
        match answer.split_once("\r\n") {
            Some((head, value)) if head.starts_with('$') => {
                value.trim_end_matches("\r\n").to_owned()
            }
            _ => answer[1..].trim_end().to_owned(),
        }
    }

    /// Opens a new connection, logs in if the server has a password, and sends commands. Returns the raw replies to the
    /// commands.
    fn try_ask(&self, commands: &[&[&str]]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut login = "";
        if let Some(password) = &self.password {
            stream.write_all(encoded(&["AUTH", password]).as_bytes())?;
            login = "+OK\r\n";
        }
        for command in commands {
            stream.write_all(encoded(command).as_bytes())?;
        }
        // After `QUIT`, Redis closes the connection, so the replies end with the stream.
        stream.write_all(encoded(&["QUIT"]).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let answer = answer.strip_prefix(login).and_then(|answer| answer.strip_suffix("+OK\r\n"));
        answer.map(str::to_owned).ok_or(ErrorKind::UnexpectedEof.into())
    }

    /// Suspends the process with SIGSTOP. Open connections stay open and new connections are accepted, but no command
    /// is answered.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes the process after `freeze`.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status =
            Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killing fails if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn encoded(command: &[&str]) -> String {
    let mut wire = format!("*{}\r\n", command.len());
    for part in command {
        write!(wire, "${}\r\n{part}\r\n", part.len()).unwrap();
    }
    wire
}

fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/redis/redis-server");
    assert!(program.exists(), "there is no {}\nhint: run scripts/install-redis", program.display());
    program
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
