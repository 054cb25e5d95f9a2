"""What every installed command must do, whichever package it comes from, in a clean environment with an empty home."""

import pathlib
import subprocess

from release.common import Failed, version

from . import session


def environment(home, *folders):
    """Returns an environment that contains only a home and a PATH."""
    path = ":".join(str(folder) for folder in [*folders, "/usr/bin", "/bin"])
    return {"HOME": str(home), "PATH": path}


def printed(command, env, code=0, **options):
    """Runs a command, checks its exit code, and returns what it prints."""
    command = [str(word) for word in command]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600, **options)
    if done.returncode != code:
        raise Failed(f"`{' '.join(command)}` ended with code {done.returncode} instead of {code}:\n{done.stdout}{done.stderr}",
                     "run the command by hand")
    return done.stdout if code == 0 else done.stderr


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}:\n  seen   {seen!r}\n  wanted {wanted!r}", "see above")
    print(f"   ok: {what}")


def check(what, command, env, server):
    """Checks an installed command."""
    expect(f"{what}: version", printed([*command, "--version"], env), f"toolcrib {version()}\n")
    demo = printed([*command, "demo"], env).splitlines()
    expect(f"{what}: demo", demo[1].split(" instead")[0], "The model sees tool_search, tool_describe, tool_call")
    expect(f"{what}: exit code of wrong usage", printed([*command, "--no-such"], env, code=2)[:6], "error:")
    config = home_config(env)
    session.write_config(config, server)
    try:
        expect(f"{what}: MCP session", session.search_and_call([*command], env), session.EXPECTED)
    finally:
        printed([*command, "stop"], env)
        config.unlink()


def home_config(env):
    """Returns the path of the user's config, in a folder that exists."""
    folder = pathlib.Path(env["HOME"]) / ".config" / "toolcrib"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "toolcrib.toml"
