//! Finds the binaries of this package, for the tests of other packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

/// Returns the path of one of this package's binaries, such as `faulty-server`. `executable` is the path of any binary
/// that cargo built for the test; all binaries are in the same folder.
///
/// `cargo test --workspace` builds the binaries of this package. `cargo test -p toolcrib` does not, because a package
/// cannot depend on the binaries of another package. In that case, this function builds them once, with the same
/// profile. It does not rebuild existing binaries, because their dependencies would then be compiled again with other
/// features than with `--workspace`.
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
    // The path is `TARGET/PROFILE/NAME`, except that the folder of the profile `dev` is called `debug`.
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
