"""The wheel for PyPI. maturin compiles the binary, so this is the one build of a release.

On Linux, zig links the binary against an old glibc (see `Target.manylinux`), and maturin checks that the binary requires
nothing newer. Without zig, the wheel works only on this machine and newer systems, and `cargo build` has the same outputs,
so a build that exists already is reused.
"""

import os
import re
import shutil
import sys
import zipfile

from .common import EPOCH, Failed, PROGRAM, ROOT, environment, host, run, target_folder
from .licences import THIRD_PARTY

# A venv with the tools for packaging.
VENV = ROOT / ".tools" / "packaging"
MATURIN = "maturin==1.16.0"
ZIG = "ziglang==0.17.0"
PROJECT = ROOT / "packages" / "pypi"


def install_tools(venv, *tools):
    """Installs packages from PyPI in a venv, unless they are there. An empty file records each one."""
    if not (venv / "bin" / "pip").exists():
        shutil.rmtree(venv, ignore_errors=True)
        run([sys.executable, "-m", "venv", venv], "install Python with venv (Debian: apt-get install python3-venv)")
    missing = [tool for tool in tools if not (venv / tool).exists()]
    if missing:
        pip = [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *missing]
        run(pip, "this needs the network, or a mirror of PyPI that pip is configured for")
    for tool in missing:
        (venv / tool).touch()


def uses_zig(target, options):
    return options.zig and target.manylinux is not None


def arguments(target, options):
    """Returns maturin's arguments for the target, without the output folder."""
    args = ["build", "--profile", options.profile, "--locked", "--compression-level", options.compression]
    if uses_zig(target, options):
        args += ["--zig", "--target", target.triple, "--compatibility", f"manylinux_{target.manylinux}"]
    elif target.manylinux is not None:
        # Without a check for old systems, the wheel gets the tag `linux_…`, which PyPI rejects.
        args += ["--compatibility", "linux", "--auditwheel", "skip"]
    # With `--target`, cargo uses other output folders, so a finished `cargo build` would not be reused.
    if not uses_zig(target, options) and target.triple != host():
        args += ["--target", target.triple]
    return args


def build_environment(options):
    """Returns the environment of maturin and of the compiler. A build for tests gets the environment of `cargo build`,
    because other flags, or another `SOURCE_DATE_EPOCH`, would cause crates to be compiled again."""
    variables = {"PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}
    if options.profile == "dist":
        variables["SOURCE_DATE_EPOCH"] = str(EPOCH)
        # Paths of this machine do not belong into published binaries.
        cargo_home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
        remapped = [f"--remap-path-prefix={cargo_home}/registry/src=registry", f"--remap-path-prefix={ROOT}="]
        variables["RUSTFLAGS"] = " ".join([*os.environ.get("RUSTFLAGS", "").split(), *remapped])
        # The oldest macOS that current Rust compilers support on both processors.
        variables["MACOSX_DEPLOYMENT_TARGET"] = os.environ.get("MACOSX_DEPLOYMENT_TARGET", "11.0")
    return environment(**variables)


def build(target, options, licence_texts, sbom, folder):
    """Builds the wheel in `folder`, and returns its path and the path of the compiled binary."""
    install_tools(VENV, MATURIN, *([ZIG] if uses_zig(target, options) else []))
    # Licence files must be inside of the project's folder.
    shutil.copyfile(licence_texts, PROJECT / THIRD_PARTY)
    shutil.rmtree(folder, ignore_errors=True)
    command = [VENV / "bin" / "maturin", *arguments(target, options), "--sbom-include", sbom, "--out", folder]
    hint = "the output above says what is wrong; without zig: scripts/release --no-zig"
    run(command, hint, cwd=PROJECT, env=build_environment(options))
    wheel, = folder.glob("*.whl")
    return wheel, compiled_binary(target, options)


def compiled_binary(target, options):
    profile = "debug" if options.profile == "dev" else options.profile
    is_cross = uses_zig(target, options) or target.triple != host()
    return target_folder() / (target.triple if is_cross else ".") / profile / PROGRAM


def binary_in(wheel):
    """Returns the bytes of the binary in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name, = (name for name in archive.namelist() if name.endswith(f".data/scripts/{PROGRAM}"))
        return archive.read(name)


def newest_glibc(binary):
    """Returns the newest version of glibc that an ELF binary names, such as `(2, 17)`, or `None` if it names none."""
    versions = re.findall(rb"\x00GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\x00)", binary)
    return max(((int(major), int(minor)) for major, minor in versions), default=None)


def check(target, options, wheel, binary):
    """Checks that the wheel contains the compiled binary unchanged, and that the binary runs on old systems."""
    content = binary_in(wheel)
    if content != binary.read_bytes():
        raise Failed(f"the binary in `{wheel.name}` differs from `{binary}`",
                     "maturin changed the binary, for example its library paths; it should link only to system libraries")
    newest = newest_glibc(content)
    if uses_zig(target, options):
        allowed = tuple(int(number) for number in target.manylinux.split("_"))
        if newest is None or newest > allowed:
            raise Failed(f"the binary requires glibc {newest}, which is newer than {allowed}", "see `Target.manylinux`")
    return newest
