"""A small HTTP/1.1 client with one request per connection. It detects every incomplete response.

The client of the standard library is not used, because it blocks, and the soak test runs a hundred clients in one thread.
"""

import asyncio
import json

# Maximum time that a good client waits for one answer, in seconds. This is far longer than every timeout of Toolcrib
# that can delay an answer, so if it is reached, the answer was lost.
LOST_AFTER = 120.0


class Lost(Exception):
    """A request that got no complete response."""


class Response:
    """A response that was read to its end."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        """The body as JSON."""
        return json.loads(self.body)

    def events(self):
        """The JSON of every server-sent event; a plain JSON body counts as one event."""
        if "text/event-stream" not in self.headers.get("content-type", ""):
            return [self.json()] if self.body else []
        data = (line[5:].strip() for line in self.body.decode().splitlines() if line.startswith("data:"))
        return [json.loads(text) for text in data if text.startswith("{")]


async def request(address, method, path, headers=None, body=b""):
    """Sends one request and reads the complete response."""
    try:
        return await asyncio.wait_for(_request(address, method, path, headers or {}, body), LOST_AFTER)
    except asyncio.TimeoutError as error:
        raise Lost(f"{method} {path}: no complete response in {LOST_AFTER:.0f} s") from error
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise Lost(f"{method} {path}: {type(error).__name__}: {error}") from error


async def _request(address, method, path, headers, body):
    reader, writer = await asyncio.open_connection(*address)
    try:
        lines = [f"{method} {path} HTTP/1.1", f"host: localhost:{address[1]}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"content-length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        return await _response(reader)
    finally:
        writer.close()


async def _response(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split()[1])
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = await reader.read()
    return Response(status, headers, body)


async def _chunks(reader):
    parts = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        part = await reader.readexactly(size + 2)
        if size == 0:
            return b"".join(parts)
        parts.append(part[:-2])
