"""Runs the command `toolcrib` of this installation, so that `python -m toolcrib` works if the folder with the scripts is
not in `PATH`. The process is replaced, so signals and the exit code are those of the command."""

import os
import site
import sys
import sysconfig


def folders():
    """Returns the folders to which installers write scripts: of this environment, and of `pip install --user`."""
    yield sysconfig.get_path("scripts")
    if site.ENABLE_USER_SITE:
        user_scheme = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else f"{os.name}_user"
        yield sysconfig.get_path("scripts", user_scheme)


def main():
    for folder in folders():
        command = os.path.join(folder, "toolcrib")
        if os.path.isfile(command):
            os.execv(command, [command, *sys.argv[1:]])
    sys.exit("error: the command `toolcrib` is not in " + " or ".join(f"`{folder}`" for folder in folders())
             + "\nhint: install it again: pip install --force-reinstall toolcrib")


if __name__ == "__main__":
    main()
