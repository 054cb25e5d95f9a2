"""An LLM provider with the Chat Completions API. The name of the model selects its behaviour.

The model `good` finds the requested tool through the search, calls it and reports its result. Every other
model attacks the program that reads the response.
"""

import asyncio
import json

# Maximum number of bytes that one attack sends, so that the soak test ends even if the proxy never disconnects.
MOST = 2 << 30
PIECE = "x" * 4096


async def main():
    """Listens on a free port, prints the port, and serves until the process is killed."""
    server = await asyncio.start_server(_connected, "127.0.0.1", 0, limit=64 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _connected(reader, writer):
    try:
        await _answer(reader, writer)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _answer(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
    body = await reader.readexactly(length)
    if not body:
        # Without a content length, the request is a GET or has a chunked body. The proxy forwards both without reading
        # the body.
        return await refuse(writer, None)
    message = json.loads(body)
    model = message.get("model", "good")
    await ATTACKS.get(model, good)(writer, message)


async def _whole(writer, value, status="200 OK"):
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _stream(writer):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    await writer.drain()


async def _delta(writer, delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    await _send(writer, f"data: {json.dumps(event)}\n\n".encode())


async def _send(writer, data):
    writer.write(data)
    await writer.drain()
    # `drain` returns immediately while the buffer has room, so yield here to let other connections run.
    await asyncio.sleep(0)


async def good(writer, message):
    """Calls the tool that the first message names, in the way that the proxy offers it. Then repeats the result."""
    messages = message["messages"]
    goal = next(m["content"] for m in messages if m["role"] == "user").split("goal: ")[1]
    offered = {tool["function"]["name"] for tool in message.get("tools", [])}
    last = messages[-1]
    if last["role"] == "tool" and last.get("content", "").startswith("result "):
        reply = {"role": "assistant", "content": f"done: {last['content']}"}
        return await _whole(writer, {"id": "c", "object": "chat.completion", "model": "good", "choices": [
            {"index": 0, "message": reply, "finish_reason": "stop"}]})
    if goal in offered:
        name, arguments = goal, {"query": "a"}
    elif last["role"] == "tool":
        name, arguments = "tool_call", {"name": goal, "arguments": {"query": "a"}}
    else:
        name, arguments = "tool_search", {"query": f"select:{goal}"}
    call = {"id": f"call_{len(messages)}", "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)}}
    reply = {"role": "assistant", "content": None, "tool_calls": [call]}
    await _whole(writer, {"id": "c", "object": "chat.completion", "model": "good", "choices": [
        {"index": 0, "message": reply, "finish_reason": "tool_calls"}]})


async def endless_text(writer, _message):
    """Sends text without end. Clients of this model disconnect after a while."""
    await _stream(writer)
    for _ in range(MOST // len(PIECE)):
        await _delta(writer, {"content": PIECE})


async def endless_arguments(writer, _message):
    """Sends one call whose arguments never end."""
    await _stream(writer)
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "tool_search", "arguments": ""}}
    await _delta(writer, {"tool_calls": [call]})
    for _ in range(MOST // len(PIECE)):
        await _delta(writer, {"tool_calls": [{"index": 0, "function": {"arguments": PIECE}}]})


async def endless_calls(writer, _message):
    """Sends calls without end."""
    await _stream(writer)
    for index in range(MOST // 4096):
        call = {"index": index, "id": f"call_{index}", "type": "function",
                "function": {"name": "tool_search", "arguments": "{"}}
        await _delta(writer, {"tool_calls": [call]})


async def endless_line(writer, _message):
    """Sends one event that never ends."""
    await _stream(writer)
    writer.write(b"data: ")
    for _ in range(MOST // len(PIECE)):
        await _send(writer, PIECE.encode())


async def endless_body(writer, _message):
    """Sends one JSON body that never ends."""
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{"id": "')
    for _ in range(MOST // len(PIECE)):
        await _send(writer, PIECE.encode())


async def cut(writer, _message):
    """Ends the stream in the middle of a call."""
    await _stream(writer)
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "tool_search", "arguments": '{"qu'}}
    await _delta(writer, {"tool_calls": [call]})


async def garbage(writer, _message):
    """Sends bytes that are not valid events."""
    await _stream(writer)
    writer.write(b"data: {\n\n\xff\xfe\x00data\n\n: \ndata: [1,2\n\n" * 100)
    await writer.drain()


async def refuse(writer, _message):
    """Answers with an error of the provider."""
    await _whole(writer, {"error": {"message": "overloaded", "type": "server_error"}}, "503 Service Unavailable")


ATTACKS = {
    "endless-text": endless_text,
    "endless-arguments": endless_arguments,
    "endless-calls": endless_calls,
    "endless-line": endless_line,
    "endless-body": endless_body,
    "cut": cut,
    "garbage": garbage,
    "refuse": refuse,
}

if __name__ == "__main__":
    asyncio.run(main())
