//! The roles that the test executable has when a test starts it: a gateway and a reader. The warden role is
//! `warden::run`.

use crate::process_tree::{block_on, launch, launch_sigkill_soon, ready};
use crate::*;

/// The gateway role: starts `sh -c SCRIPT` as a server with the given mark, and runs until the gateway process receives
/// SIGTERM or is killed. `args` are the mark and SCRIPT.
pub(crate) fn gateway(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop)).unwrap();
    let (mark, script) = (args.next().unwrap(), args.next().unwrap());
    block_on(async {
        let mut process = launch_sigkill_soon(mark.to_str().unwrap(), script.to_str().unwrap())
            .spawn()
            .await
            .unwrap();
        ready(&mut process).await;
        println!("ready");
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    ExitCode::SUCCESS
}

/// The reader role: reads a line of 1 GiB between two short lines. Prints the short lines and the peak memory of this
/// process.
pub(crate) fn reader() -> ExitCode {
    block_on(async {
        let script = "echo before; head -c 1073741824 /dev/zero | tr '\\0' x; echo; echo after";
        let mut process = launch("reader", script).spawn().await.unwrap();
        let mut stdout = process.stdout.take().unwrap();
        let (mut lines, mut chunk) = (LineSplitter::default(), vec![0; 64 << 10]);
        loop {
            let read = stdout.read(&mut chunk).await.unwrap();
            let mut input = &chunk[..read];
            while let Some(event) = lines.next_event(&mut input) {
                match event {
                    LineEvent::Line(line) => println!("{}", String::from_utf8_lossy(line)),
                    LineEvent::TooLong { start } => println!("too long, {} shown", start.len()),
                }
            }
            if read == 0 {
                break;
            }
        }
        process.end().await;
    });
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM:")).unwrap());
    ExitCode::SUCCESS
}
