"""What all steps of a release share: errors, running programs, versions, targets, and reproducible tar files."""

import dataclasses
import functools
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = "toolcrib"
# The time of all files in packages, so that the same sources give the same bytes: 1980-01-01, the earliest time that a
# zip file can contain.
EPOCH = 315532800


class Failed(Exception):
    """An error with a hint for the user."""

    def __init__(self, problem, hint):
        super().__init__(problem)
        self.hint = hint


@dataclasses.dataclass(frozen=True)
class Target:
    """A platform for which packages are built."""

    triple: str
    # Names in npm's package.json.
    os: str
    cpu: str
    # The newest glibc and manylinux version that the binary may require. `None` on macOS.
    manylinux: str | None = None

    @property
    def npm_name(self):
        """The launcher `bin/toolcrib.cjs` computes the same name."""
        return f"@toolcrib/cli-{self.os}-{self.cpu}" + ("-gnu" if self.os == "linux" else "")


TARGETS = {target.triple: target for target in [
    Target("x86_64-unknown-linux-gnu", "linux", "x64", "2_17"),
    Target("aarch64-unknown-linux-gnu", "linux", "arm64", "2_17"),
    Target("x86_64-apple-darwin", "darwin", "x64"),
    Target("aarch64-apple-darwin", "darwin", "arm64"),
]}


def run(command, hint, **options):
    """Runs a program, and fails if the program fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, check=False, **options)
    except OSError as error:
        raise Failed(f"`{command[0]}` cannot be run: {error.strerror}", hint) from error
    if done.returncode != 0:
        message = (done.stderr or "").strip() if options.get("text") else ""
        raise Failed(f"`{' '.join(command)}` ended with code {done.returncode}" + (f":\n{message}" if message else ""), hint)
    return done


def output(command, hint, **options):
    """Runs a program and returns what it prints."""
    return run(command, hint, capture_output=True, text=True, **options).stdout


@functools.cache
def cargo_metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"]
    return json.loads(output(command, "install Rust", cwd=ROOT))


def manifest(key):
    """Returns a value of the program's Cargo.toml."""
    return next(package[key] for package in cargo_metadata()["packages"] if package["name"] == PROGRAM)


def version():
    return manifest("version")


def target_folder():
    """The folder for build outputs, which `CARGO_TARGET_DIR` can change."""
    return pathlib.Path(cargo_metadata()["target_directory"])


def host():
    lines = output(["rustc", "-vV"], "install Rust", cwd=ROOT).splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def write_tar(path, files, level):
    """Writes a `.tar.gz`. `files` maps names in the archive to paths or bytes. Files named in a folder `bin`, and the
    program, are executable. Owners and times are constant, and names are sorted, so the same files give the same bytes."""
    with open(path, "wb") as raw, \
            gzip.GzipFile("", "wb", level, raw, mtime=EPOCH) as compressed, \
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            content = files[name]
            content = content if isinstance(content, bytes) else pathlib.Path(content).read_bytes()
            entry = tarfile.TarInfo(name)
            parts = pathlib.PurePosixPath(name).parts
            entry.mode = 0o755 if parts[-1] == PROGRAM or parts[-2] == "bin" else 0o644
            entry.mtime, entry.size = EPOCH, len(content)
            archive.addfile(entry, io.BytesIO(content))


def environment(**variables):
    return {**os.environ, **variables}
