"""Tests of npm's launcher with a shell script in place of the binary, in every version of Node that is available: Node can
replace its process since version 22.15, and older versions start a child process."""

import pathlib
import shutil
import signal
import subprocess

from release.common import ROOT, Failed

LAUNCHER = ROOT / "packages" / "npm" / "toolcrib"
# Prints what it gets, then waits for the end of its input or for a signal.
PROGRAM = """#!/bin/sh
echo "args=$* launcher=${TOOLCRIB_LAUNCHER-none}"
case "$1" in
exit) exit 7 ;;
kill) kill -KILL $$ ;;
trap) trap 'echo got TERM; exit 9' TERM; echo ready; while read -r line; do :; done ;;
wait) echo ready; cat; echo input ended ;;
esac
"""


def nodes():
    """Returns the available programs `node`: the one in `PATH`, and the one of the tests."""
    found = [shutil.which("node"), ROOT / ".tools" / "peers" / "node_modules" / ".bin" / "node"]
    return [str(node) for node in found if node and pathlib.Path(node).exists()]


def install(folder, name):
    """Installs the launcher and the shell script as npm does, and returns the launcher's path."""
    modules = folder / "node_modules"
    shutil.copytree(LAUNCHER, modules / "toolcrib", dirs_exist_ok=True)
    program = modules / name / "bin" / "toolcrib"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    return modules / "toolcrib" / "bin" / "toolcrib.cjs"


def start(node, launcher, *args, **env):
    pipe = subprocess.PIPE
    env = {"PATH": "/usr/bin:/bin", **env}
    return subprocess.Popen([node, launcher, *args], env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def outcome(process, deadline=120):
    out, err = process.communicate(timeout=deadline)
    return out, err, process.returncode


def when_ready(node, launcher, mode):
    """Starts the script, and returns the process when the script has written `ready`."""
    process = start(node, launcher, mode)
    lines = [process.stdout.readline() for _ in range(2)]
    if lines[1] != "ready\n":
        raise Failed(f"the launcher printed {lines}", "run it by hand")
    return process


def observations(node, folder, name):
    """Runs the launcher in all situations. Returns what was seen and what should have been seen."""
    usual = install(folder / "project", name)
    temporary = install(folder / ".npm" / "_npx" / "0a1b", name)
    seen = {
        "arguments": outcome(start(node, usual, "a b", "--c=d e")),
        "exit code": outcome(start(node, usual, "exit")),
        "killed": outcome(start(node, usual, "kill")),
        "in npx's cache": outcome(start(node, temporary)),
        "inherited variable": outcome(start(node, usual, TOOLCRIB_LAUNCHER="npx")),
    }
    process = when_ready(node, usual, "trap")
    process.send_signal(signal.SIGTERM)
    seen["SIGTERM"] = process.stdout.read(), process.stderr.read(), process.wait(120)
    # If the launcher is killed, its child sees the end of its input when the client closes the pipe.
    process = when_ready(node, usual, "wait")
    process.kill()
    process.wait(120)
    process.stdin.close()
    last = process.stdout.read()
    seen["killed launcher"] = last in ("", "input ended\n"), process.stderr.read(), process.returncode
    wanted = {
        "arguments": ("args=a b --c=d e launcher=none\n", "", 0),
        "exit code": ("args=exit launcher=none\n", "", 7),
        "killed": ("args=kill launcher=none\n", "", -signal.SIGKILL),
        "in npx's cache": ("args= launcher=npx\n", "", 0),
        "inherited variable": ("args= launcher=none\n", "", 0),
        "SIGTERM": ("got TERM\n", "", 9),
        "killed launcher": (True, "", -signal.SIGKILL),
    }
    return seen, wanted
