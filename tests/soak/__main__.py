"""Soak test: attacks one `toolcrib serve` with hostile servers, clients and providers for several minutes.

Passes if memory stays flat, every good client gets its answers, `/healthz` always answers and no process is
left running at the end. Run it with `scripts/soak`.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time

from clients import Tally, gateway_client, proxy_client
from http11 import Lost, request
from process import GOOD, HERE, Program, config

# Seconds between two samples of memory and health.
SAMPLE = 2.0
# Memory counts as flat if the median of the last third of the samples is at most `GROWTH` times the median of the
# middle third, plus `SLACK_MB` for memory that the allocator keeps.
GROWTH, SLACK_MB = 1.10, 16


async def watched(program, address, samples, until):
    """Takes samples of the memory, the open file descriptors and the response to `/healthz`."""
    while not until():
        memory, peak = program.memory()
        began = time.monotonic()
        try:
            healthy = (await request(address, "GET", "/healthz")).status == 200
        except Lost:
            healthy = False
        samples.append((memory, peak, program.descriptors(), healthy, time.monotonic() - began))
        await asyncio.sleep(SAMPLE)


async def faults(program, text, until):
    """Kills a process every 3 s and edits the config every 21 s."""
    turn = 0
    while not until():
        await asyncio.sleep(3)
        turn += 1
        program.kill_one()
        if turn % 7 == 0:
            program.edit_config(text)


def beside(name, *arguments):
    """Runs another script of this folder in a separate process, so that it cannot slow down the good clients."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def soak(arguments, home):
    provider, remote = beside("provider.py"), beside("remote_server.py")
    text = config(arguments.faulty_server, int(provider.stdout.readline()), int(remote.stdout.readline()))
    program = Program(arguments.binary, home, text)
    while program.runs() and program.port() is None:
        await asyncio.sleep(0.1)
    if not program.runs():
        sys.exit(f"toolcrib did not start:\n{(program.home / 'log').read_text()}")
    address = ("127.0.0.1", program.port())
    attackers = beside("attackers.py", program.port(), 60 * arguments.minutes)
    end = time.monotonic() + 60 * arguments.minutes
    until = lambda: time.monotonic() > end or not program.runs()
    tally, samples = Tally(), []
    work = [watched(program, address, samples, until), faults(program, text, until)]
    work += [gateway_client(address, tally, until, server) for server in GOOD for _ in range(4)]
    work += [proxy_client(address, tally, until) for _ in range(8)]
    await asyncio.gather(*work)
    attacked = json.loads((await asyncio.to_thread(attackers.communicate))[0])
    tally.lost += attacked["lost"]
    crashed = not program.runs()
    # Give requests in flight time to finish before memory is measured.
    await asyncio.sleep(30)
    rest = 0.0 if crashed else program.memory()[0]
    program.terminate()
    while program.runs():
        await asyncio.sleep(0.1)
    # Give processes that were told to exit up to 10 seconds.
    for _ in range(100):
        if not program.descendants():
            break
        await asyncio.sleep(0.1)
    provider.kill()
    remote.kill()
    print((program.home / "log").read_text()[-arguments.log_bytes:] if arguments.log_bytes else "", file=sys.stderr)
    return verdict(arguments, tally, samples, attacked["attacks"], rest, crashed, program.descendants())


def verdict(arguments, tally, samples, attacks, rest, crashed, orphans):
    """Prints the figures and what failed. Returns the exit code."""
    third = max(len(samples) // 3, 1)
    median = lambda part: statistics.median(sample[0] for sample in part) if part else 0.0
    first, middle, last = (median(samples[at * third:(at + 1) * third]) for at in range(3))
    unhealthy = sum(not sample[3] for sample in samples)
    rows = [
        ("duration", f"{arguments.minutes:g} min"),
        ("attacks (calls, connections, streams, sessions, bodies)", f"{attacks:,}"),
        ("requests of good clients with the right answer", f"{tally.right:,}"),
        ("— refused with a clear error", f"{tally.refused:,}"),
        ("— lost or wrong", f"{len(tally.lost):,}"),
        ("resident memory, median of each third", f"{first:.0f}, {middle:.0f}, {last:.0f} MB"),
        ("resident memory 30 s after the end of the attacks", f"{rest:.0f} MB"),
        ("highest resident memory", f"{max((sample[1] for sample in samples), default=0):.0f} MB"),
        ("highest number of descriptors", f"{max((sample[2] for sample in samples), default=0)}"),
        ("health checks, failed", f"{len(samples)}, {unhealthy}"),
        ("slowest health check", f"{max((sample[4] for sample in samples), default=0) * 1000:.0f} ms"),
        ("processes left", f"{len(orphans)}"),
    ]
    print("\n| figure | value |\n|---|---:|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    failed = [f"lost: {what}" for what in tally.lost[:20]]
    if last > middle * GROWTH + SLACK_MB:
        failed.append(f"memory grows: {middle:.0f} to {last:.0f} MB")
    if unhealthy:
        failed.append(f"{unhealthy} health checks failed")
    if crashed:
        failed.append("toolcrib ended during the test")
    if orphans:
        failed.append(f"processes left: {orphans}")
    if not tally.right:
        failed.append("no good client ever got an answer")
    for line in failed:
        print(f"failed: {line}")
    print("\n== soak failed" if failed else "\n== soak passed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/soak")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--faulty-server", required=True)
    parser.add_argument("--log-bytes", type=int, default=0, help="how much of the log's end to print")
    with tempfile.TemporaryDirectory(prefix="toolcrib-soak-") as home:
        sys.exit(asyncio.run(soak(parser.parse_args(), home)))


main()
