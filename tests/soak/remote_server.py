"""MCP servers over HTTP that flood their clients, either on the stream of a call or on the GET stream."""

import asyncio
import json

from hostile_server import answer

# Maximum number of messages in one flood, so that the soak test ends even if the gateway never disconnects.
MOST = 2_000_000


async def main():
    """Listens on a free port and prints the port. `/call` floods the streams of calls, and `/listen` the GET stream."""
    server = await asyncio.start_server(_connected, "127.0.0.1", 0, limit=16 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _connected(reader, writer):
    try:
        while await _request(reader, writer):
            pass
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _request(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, path = head.split()[:2]
    lines = head.lower().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
    body = await reader.readexactly(length)
    if method == "GET":
        if path != "/listen":
            return await _status(writer, "405 Method Not Allowed")
        return await _flood(writer, "notifications/resources/updated", with_id=False)
    if method == "DELETE":
        return await _status(writer, "200 OK")
    message = json.loads(body)
    if "id" not in message or "method" not in message:
        return await _status(writer, "202 Accepted")
    if path == "/call" and message["method"] == "tools/call":
        return await _flood(writer, "sampling/createMessage", with_id=True)
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}).encode()
    session = b"mcp-session-id: soak\r\n" if message["method"] == "initialize" else b""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + session
                 + f"content-length: {len(text)}\r\n\r\n".encode() + text)
    await writer.drain()
    return True


async def _status(writer, status):
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
    await writer.drain()
    return True


async def _flood(writer, method, with_id):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    for number in range(MOST):
        params = {"messages": [], "maxTokens": 1} if with_id else {"uri": f"file:///{number}"}
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if with_id:
            message["id"] = number
        writer.write(f"data: {json.dumps(message)}\n\n".encode())
        await writer.drain()
        # `drain` returns immediately while the buffer has room, so yield here to let other connections run.
        await asyncio.sleep(0)
    return False


if __name__ == "__main__":
    asyncio.run(main())
