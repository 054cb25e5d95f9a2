"""The archive for one target: the binary with completions, man pages and licences. It needs neither Python nor Node."""

import pathlib
import tempfile

from .common import PROGRAM, ROOT, Failed, output, version, write_tar

# Names under which the shells look for completions.
COMPLETIONS = {"bash": f"{PROGRAM}.bash", "zsh": f"_{PROGRAM}", "fish": f"{PROGRAM}.fish"}


def name(target):
    """The name of the archive without its ending, and of the folder in it."""
    return f"{PROGRAM}-{version()}-{target.triple}"


def generated(binary):
    """Returns the completions and man pages. The binary prints them, so it must run on this machine."""
    try:
        output([binary, "--version"], "")
    except Failed as failed:
        raise Failed(f"`{binary}` cannot be run here, but it prints the man pages of the archive",
                     "build on a machine of the target's platform, or leave the archive out: --only wheel,npm") from failed
    hint = "this is a bug of the command"
    files = {f"completions/{file}": output([binary, "completions", shell], hint).encode()
             for shell, file in COMPLETIONS.items()}
    with tempfile.TemporaryDirectory() as folder:
        output([binary, "man", "--out", folder], hint)
        for page in pathlib.Path(folder).iterdir():
            files[f"man/{page.name}"] = page.read_bytes()
    return files


def build(target, options, binary, licences, folder):
    """Writes the archive, and returns its path."""
    path = folder / f"{name(target)}.tar.gz"
    readme = ROOT / "crates" / PROGRAM / "README.md"
    files = {PROGRAM: binary, "README.md": readme, **licences, **generated(binary)}
    write_tar(path, {f"{name(target)}/{file}": content for file, content in files.items()}, options.compression)
    return path
