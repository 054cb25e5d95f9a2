//! Where the servers of this package are, for the tests of other packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// The path of a server of this package, such as `faulty-server`, beside `executable`, a program that cargo
/// built for the test.
///
/// `cargo test --workspace` has built it. `cargo test -p toolcrib` has not, as cargo knows no dependency on
/// another package's programs, so it is built here, once, with the same profile.
pub fn program(executable: &str, name: &str) -> PathBuf {
    static BUILT: Once = Once::new();
    let path = Path::new(executable).with_file_name(name);
    if !path.exists() {
        BUILT.call_once(|| build(&path));
    }
    assert!(path.exists(), "`{}` is missing; hint: test with `--workspace`", path.display());
    path
}

fn build(path: &Path) {
    // `TARGET/PROFILE/NAME`; the folder of the profile `dev` is `debug`.
    let profile = path.parent().unwrap();
    let target = profile.parent().unwrap();
    let profile = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--locked", "--package", env!("CARGO_PKG_NAME"), "--bins"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success(), "`cargo build --package {}` failed", env!("CARGO_PKG_NAME"));
}
