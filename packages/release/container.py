"""The binary and the licences in the folder layout that the `Dockerfile` copies from its stage `build`. With this folder,
the image gets the same binary as the other packages, and nothing is compiled:

    docker build --build-context build=target/packages/container .
"""

import shutil

from .common import PROGRAM


def build(binary, licences, folder):
    """Writes the folder, and returns its path."""
    root = folder / "container"
    shutil.rmtree(root, ignore_errors=True)
    out = root / "out"
    (out / "licences").mkdir(parents=True)
    shutil.copy2(binary, out / PROGRAM)
    for name, path in licences.items():
        shutil.copyfile(path, out / "licences" / name)
    return root
