"""Hostile clients, and clients of hostile servers and providers, in a separate process.

`python3 attackers.py PORT SECONDS` attacks the program on that port. At the end it prints one JSON
object with the number of attacks, and the calls to hostile servers that got no answer.
"""

import asyncio
import json
import os
import random
import sys
import time

from clients import TOOLS, encoded
from http11 import Lost, request
from process import HOSTILE
from provider import ATTACKS


async def attacked_by(address, model, count, until):
    """An agent whose provider attacks. It reads until the stream ends or breaks, or until it has read 64 MB."""
    headers = {"content-type": "application/json", "authorization": "Bearer sk-soak"}
    body = encoded({"model": model, "stream": model != "endless-body", "tools": TOOLS,
                  "messages": [{"role": "user", "content": "hello"}]})
    while not until():
        reader, writer = await asyncio.open_connection(*address)
        try:
            lines = ["POST /v1/chat/completions HTTP/1.1", f"host: localhost:{address[1]}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            lines += [f"content-length: {len(body)}", "", ""]
            writer.write("\r\n".join(lines).encode() + body)
            taken = 0
            # The agent disconnects after 64 MB, like a user who presses stop.
            while taken < 64 << 20 and not until():
                part = await asyncio.wait_for(reader.read(1 << 16), 60)
                if not part or part.endswith(b"0\r\n\r\n"):
                    break
                taken += len(part)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()
        count()
        await asyncio.sleep(random.uniform(0.5, 2))


async def caller_of(address, server, count, until, lost):
    """Calls a hostile server. The call must get an answer, whatever the server does."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream",
               "mcp-protocol-version": "2025-11-25"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
             "clientInfo": {"name": "soak", "version": "1"}}
    while not until():
        try:
            begun = await request(address, "POST", "/mcp", headers, encoded(
                {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))
            if "mcp-session-id" in begun.headers:
                mine = {**headers, "mcp-session-id": begun.headers["mcp-session-id"]}
                call = {"name": "tool_call", "arguments": {"name": f"{server}__echo", "arguments": {}}}
                await request(address, "POST", "/mcp", mine, encoded(
                    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}))
                await request(address, "DELETE", "/mcp", mine)
            count()
        except Lost as error:
            lost(f"call of `{server}`: {error}")
        await asyncio.sleep(random.uniform(0.2, 1))


async def half_requests(address, count, until):
    """Opens connections that stay idle, or that never finish sending their headers or their body."""
    starts = [
        b"",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: local",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"TRACE / HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01" + os.urandom(64),
    ]
    open_ones = []
    while not until():
        try:
            _, writer = await asyncio.open_connection(*address)
            writer.write(random.choice(starts))
            open_ones.append(writer)
        except OSError:
            pass
        if len(open_ones) > 400:
            open_ones.pop(random.randrange(len(open_ones))).close()
        count()
        await asyncio.sleep(0.05)
    for writer in open_ones:
        writer.close()


async def large_bodies(address, count, until):
    """Sends many bodies of 40 MB at the same time."""
    async def one():
        body = b'{"model": "refuse", "messages": [{"role": "user", "content": "' + b"x" * (40 << 20) + b'"}]}'
        try:
            await request(address, "POST", "/v1/chat/completions", {"content-type": "application/json"}, body)
        except Lost:
            pass
        count()

    while not until():
        await asyncio.gather(*(one() for _ in range(8)))
        await asyncio.sleep(5)


async def many_sessions(address, count, until):
    """Opens sessions and never ends them."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "greedy", "version": "1"}}
    body = encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    while not until():
        try:
            await request(address, "POST", "/mcp", headers, body)
        except Lost:
            pass
        count()
        await asyncio.sleep(0.02)


async def main(port, seconds):
    end = time.monotonic() + seconds
    until = lambda: time.monotonic() > end
    attacks, lost = 0, []

    def count():
        nonlocal attacks
        attacks += 1

    address = ("127.0.0.1", port)
    work = [caller_of(address, server, count, until, lost.append) for server in HOSTILE]
    work += [attacked_by(address, model, count, until) for model in ATTACKS]
    work += [half_requests(address, count, until), large_bodies(address, count, until),
             many_sessions(address, count, until)]
    await asyncio.gather(*work)
    print(json.dumps({"attacks": attacks, "lost": lost}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
