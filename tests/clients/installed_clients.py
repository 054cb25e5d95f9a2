"""Installs the command lines of real clients, and runs them in their own home folders, for
`scripts/check-clients` and `scripts/check-agents`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / ".tools" / "clients"
NPM = ["@anthropic-ai/claude-code@2.1.197", "@openai/codex@0.169.0", "@google/gemini-cli@0.61.0", "opencode-ai@1.18.33"]
PYTHON = ["hermes-agent==0.19.0"]
# Variables that would change what a client or Toolcrib does.
FOREIGN = ("XDG_", "TOOLCRIB", "CLAUDE", "ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_")


def check(condition: bool, message: str):
    if not condition:
        sys.exit(f"failed: {message}")


def install():
    """Installs the clients, unless they are installed."""
    stamp = TOOLS / "stamp"
    wanted = "\n".join(NPM + PYTHON)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir(parents=True)
    npm = ["npm", "install", "--prefix", TOOLS, "--no-audit", "--no-fund", "--loglevel=error"]
    # Claude Code and opencode download their binary in an install script.
    subprocess.run([*npm, *NPM], check=True)
    subprocess.run([sys.executable, "-m", "venv", TOOLS / "python"], check=True)
    subprocess.run([TOOLS / "python/bin/pip", "install", "--quiet", *PYTHON], check=True)
    stamp.write_text(wanted)


class Home:
    """A home folder for one client."""

    def __init__(self, folder: Path, toolcrib: Path):
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir(parents=True)
        self.work.mkdir()
        self.toolcrib = toolcrib
        path = [TOOLS / "node_modules/.bin", TOOLS / "python/bin", os.environ["PATH"]]
        keep = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self.environment = keep | {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(map(str, path)),
            "DISABLE_AUTOUPDATER": "1",
        }

    def write(self, file: str, text: str):
        path = self.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, words: list, *, may_fail=False, stdin="y\ny\n", env=None) -> str:
        """Runs a program, and returns what it prints."""
        done = subprocess.run(
            words, cwd=self.work, env=self.environment | (env or {}), input=stdin, capture_output=True, text=True, timeout=180
        )
        if done.returncode != 0 and not may_fail:
            sys.exit(f"{words} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def start(self, words: list, until: str) -> subprocess.Popen:
        """Starts a program, and waits until it prints a line with this text on standard error."""
        process = subprocess.Popen(words, cwd=self.work, env=self.environment, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if until in line:
                return process
        sys.exit(f"{words} exited with {process.wait()}")
