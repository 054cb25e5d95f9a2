"""The npm packages: `toolcrib`, which is a launcher, and one package per platform, which contains the binary.

The packages for the platforms have a scope (`@toolcrib/…`), because only the owner of a scope can publish in it. With
names such as `toolcrib-linux-x64`, anyone could take the name of a platform that is added later.
"""

import json

from .common import PROGRAM, ROOT, TARGETS, manifest, version, write_tar

LAUNCHER = ROOT / "packages" / "npm" / PROGRAM
README = ROOT / "crates" / PROGRAM / "README.md"


def shared_fields():
    # Trusted publishing compares the repository with the one whose workflow publishes.
    return {"version": version(), "repository": {"type": "git", "url": manifest("repository")}}


def launcher_manifest():
    """Returns the launcher's package.json with the version, and with the packages of all platforms in that version."""
    fields = json.loads((LAUNCHER / "package.json").read_text(encoding="utf-8"))
    names = sorted(target.npm_name for target in TARGETS.values())
    return {**fields, **shared_fields(), "optionalDependencies": dict.fromkeys(names, version())}


def platform_manifest(target):
    fields = {
        "name": target.npm_name,
        **shared_fields(),
        "description": f"The program of the package `{PROGRAM}`, for {target.os} on {target.cpu}",
        "license": "MIT OR Apache-2.0",
        # Yarn's Plug'n'Play keeps packages in zip files, from which a program cannot be started.
        "preferUnplugged": True,
        "os": [target.os],
        "cpu": [target.cpu],
    }
    return fields if target.manylinux is None else {**fields, "libc": ["glibc"]}


def to_json(fields):
    return (json.dumps(fields, indent=2) + "\n").encode()


def build(target, options, binary, licences, folder):
    """Writes both tarballs, and returns their paths."""
    launcher = folder / f"{PROGRAM}-{version()}.tgz"
    platform = folder / f"{target.npm_name.removeprefix('@').replace('/', '-')}-{version()}.tgz"
    own_licences = {name: path for name, path in licences.items() if name.startswith("LICENSE")}
    write_tar(launcher, in_package({
        **own_licences,
        "README.md": README,
        "bin/toolcrib.cjs": LAUNCHER / "bin" / "toolcrib.cjs",
        "package.json": to_json(launcher_manifest()),
    }), options.compression)
    write_tar(platform, in_package({
        **licences,
        f"bin/{PROGRAM}": binary,
        "package.json": to_json(platform_manifest(target)),
    }), options.compression)
    return [launcher, platform]


def in_package(files):
    """npm expects all files in a folder `package`."""
    return {f"package/{name}": content for name, content in files.items()}
