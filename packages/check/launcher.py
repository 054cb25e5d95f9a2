"""Tests of npm's launcher with a Python script in place of the binary, in every version of Node that is available: Node can
replace its process since version 22.15, and older versions start a child process."""

import pathlib
import shutil
import signal
import subprocess
import sys

from release.common import ROOT, Failed

from .session import DEADLINE

LAUNCHER = ROOT / "packages" / "npm" / "toolcrib"
# Prints what it gets, then waits for the end of its input or for a signal. The signal is blocked before the line `ready` is
# printed, and `sigwait` also sees a signal that came earlier. A shell script could miss one just before it waits.
PROGRAM = f"""#!{sys.executable} -S
import os, signal, sys
args = sys.argv[1:]
print(f"args={{args}} launcher={{os.environ.get('TOOLCRIB_LAUNCHER')}}", flush=True)
match args[:1]:
    case ["exit"]:
        sys.exit(7)
    case ["kill"]:
        os.kill(os.getpid(), signal.SIGKILL)
    case ["sigwait"]:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        print("ready", flush=True)
        print("got", signal.Signals(signal.sigwait([signal.SIGTERM])).name)
        sys.exit(9)
    case ["read"]:
        print("ready", flush=True)
        print("input:", sys.stdin.read())
"""


def nodes():
    """Returns the available programs `node`: the one in `PATH`, and the one of the tests."""
    found = [shutil.which("node"), ROOT / ".tools" / "peers" / "node_modules" / ".bin" / "node"]
    return [str(node) for node in found if node and pathlib.Path(node).exists()]


def install(folder, name):
    """Installs the launcher and the script as npm does, and returns the launcher's path."""
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


def outcome(process, text=None):
    out, err = process.communicate(text, timeout=DEADLINE)
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
        "input": outcome(start(node, usual, "read"), "hello"),
        "killed": outcome(start(node, usual, "kill")),
        "in npx's cache": outcome(start(node, temporary)),
        "inherited variable": outcome(start(node, usual, TOOLCRIB_LAUNCHER="npx")),
    }
    process = when_ready(node, usual, "sigwait")
    process.send_signal(signal.SIGTERM)
    seen["SIGTERM"] = outcome(process)
    # If the launcher is killed, its child sees the end of its input when the client closes the pipe. Then the child ends,
    # which closes its output.
    process = when_ready(node, usual, "read")
    process.kill()
    process.wait(DEADLINE)
    seen["killed launcher"] = outcome(process)[1:]
    wanted = {
        "arguments": ("args=['a b', '--c=d e'] launcher=None\n", "", 0),
        "exit code": ("args=['exit'] launcher=None\n", "", 7),
        "input": ("args=['read'] launcher=None\nready\ninput: hello\n", "", 0),
        "killed": ("args=['kill'] launcher=None\n", "", -signal.SIGKILL),
        "in npx's cache": ("args=[] launcher=npx\n", "", 0),
        "inherited variable": ("args=[] launcher=None\n", "", 0),
        "SIGTERM": ("got SIGTERM\n", "", 9),
        "killed launcher": ("", -signal.SIGKILL),
    }
    return seen, wanted
