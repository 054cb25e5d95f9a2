"""The program under test as a process: its config, its memory, its children, and faults from outside."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Servers that answer every call of `echo`, and those that attack.
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
    # Small, so that it is full long before the memory of the first third is compared with the rest.
    parts.append("[proxy.state]\nbytes = 8388608\n")
    return "\n".join(parts)


class Program:
    """`toolcrib serve` in a home folder of its own, by which all of its descendants are known."""

    def __init__(self, binary, home, text):
        self.home = Path(home)
        (self.home / "toolcrib.toml").write_text(text)
        self.log = open(self.home / "log", "w+")
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TOOLCRIB_LOG": "warn"}
        command = [binary, "serve", "--config", "toolcrib.toml", "--listen", "127.0.0.1:0"]
        self.child = subprocess.Popen(command, cwd=home, env=environment, stderr=self.log,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def port(self):
        """The port it listens on, once it says so."""
        text = (self.home / "log").read_text()
        found = text.partition("listening on http://127.0.0.1:")[2]
        return int(found.partition("/")[0]) if found else None

    def runs(self):
        return self.child.poll() is None

    def memory(self):
        """Resident memory in MB now, and the highest so far."""
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines())
        return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def descendants(self):
        """Processes with the same home folder, other than itself."""
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
        """Kills a descendant at random: a server, its warden or a grandchild."""
        pids = self.descendants()
        if pids:
            try:
                os.kill(random.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def edit_config(self, text):
        """Replaces the config with the same one, one in which a server has another name, or a broken one."""
        less = text.replace("[servers.changes]", "[servers.changed]")
        draft = self.home / "draft.toml"
        draft.write_text(random.choice([text, less, text + "\nbroken = [", text]))
        draft.replace(self.home / "toolcrib.toml")

    def terminate(self):
        self.child.send_signal(signal.SIGTERM)
