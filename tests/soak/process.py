"""The process of the program under test: its config, its memory, its children, and faults that are injected."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# `GOOD` servers answer every call of `echo`. `HOSTILE` servers attack.
GOOD = ["plain", "family", "garbage"]
HOSTILE = ["ping", "ping-unread", "sampling", "huge", "crash", "hang", "changes", "remote-call", "remote-listen"]


def config(faulty_server, provider, remote):
    """A config with all servers, and with limits low enough to be reached."""
    def server(name, command, args):
        return f'[servers.{name}]\ncommand = "{command}"\nargs = {args}\ncall_timeout = 20\n'

    parts = [server("plain", faulty_server, '["--tools", "100"]')]
    for name in GOOD[1:] + HOSTILE[:7]:
        parts.append(server(name, sys.executable, f'["{HERE / "hostile_server.py"}", "{name}"]'))
    parts.append(f'[servers.remote-call]\nurl = "http://127.0.0.1:{remote}/call"\ncall_timeout = 20\n')
    parts.append(f'[servers.remote-listen]\nurl = "http://127.0.0.1:{remote}/listen"\ncall_timeout = 20\n')
    parts.append("[gateway.limits]\nsessions = 500\nsession_idle = 60\n")
    parts.append("[http]\nheader_timeout = 10\nidle_timeout = 10\nbody_timeout = 10\n")
    parts.append(f'[proxy]\nopenai = "http://127.0.0.1:{provider}"\n')
    # The store is small, so that it is full long before memory use in the later thirds of the test is compared.
    parts.append("[proxy.state]\nbytes = 8388608\n")
    return "\n".join(parts)


class Program:
    """`toolcrib serve` with its own home folder, by which all of its descendants are recognised."""

    def __init__(self, binary, home, text):
        self.home = Path(home)
        (self.home / "toolcrib.toml").write_text(text)
        self.log = open(self.home / "log", "w+")
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TOOLCRIB_LOG": "warn"}
        command = [binary, "serve", "--config", "toolcrib.toml", "--listen", "127.0.0.1:0"]
        self.child = subprocess.Popen(command, cwd=home, env=environment, stderr=self.log,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def port(self):
        """The port that the program listens on. `None` until the log contains it."""
        text = (self.home / "log").read_text()
        found = text.partition("listening on http://127.0.0.1:")[2]
        return int(found.partition("/")[0]) if found else None

    def runs(self):
        return self.child.poll() is None

    def memory(self):
        """The current and the highest resident memory, in MB."""
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines())
        return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def descendants(self):
        """The ids of all other processes with the same home folder."""
        mark = f"HOME={self.home}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == self.child.pid:
                continue
            try:
                if mark in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                continue
        return found

    def kill_one(self):
        """Kills a random descendant, which may be a server, its warden or a grandchild."""
        pids = self.descendants()
        if pids:
            try:
                os.kill(random.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def edit_config(self, text):
        """Replaces the config at random: with the same text, with one server renamed, or with invalid text."""
        less = text.replace("[servers.changes]", "[servers.changed]")
        draft = self.home / "draft.toml"
        draft.write_text(random.choice([text, less, text + "\nbroken = [", text]))
        draft.replace(self.home / "toolcrib.toml")

    def terminate(self):
        self.child.send_signal(signal.SIGTERM)
