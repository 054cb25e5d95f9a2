"""The licence files that every package contains: the project's own, the notice about the weights, and those of the crates in the binary."""

import sys

from .common import PROGRAM, ROOT, run

THIRD_PARTY = "THIRD-PARTY-LICENSE-TEXTS.txt"
OWN = ["LICENSE-APACHE", "LICENSE-MIT"]
# The notice about the weights inside the binary.
NOTICE = ROOT / "crates" / "toolcrib" / "weights" / "NOTICE"


def collect(target, folder):
    """Writes the SBOM and the licence texts of the crates for one target. Returns the licence files by name, and the
    SBOM."""
    command = [sys.executable, ROOT / "scripts" / "sbom", "--target", target.triple, "--texts", "--out", folder]
    run(command, "fetch the crates first: cargo fetch --locked")
    files = {name: ROOT / name for name in OWN} | {NOTICE.name: NOTICE}
    files[THIRD_PARTY] = folder / THIRD_PARTY
    return files, folder / f"{PROGRAM}.cdx.json"
