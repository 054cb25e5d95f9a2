"""A client with the official Python SDK. Prints everything it receives from the gateway as one JSON document.

    client.py ERA URL          over HTTP
    client.py ERA COMMAND...   over stdio

ERA is `legacy` (the protocol version with a handshake) or `auto` (the stateless version, if the server supports it). The
environment variable SERVER_LOG names the file in which the server behind the gateway logs its calls.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

# Half of these checks use the protocol version with sessions, and the SDK warns about that version.
warnings.simplefilter("ignore")

report = {}
questions = []
notifications = []


def plain(model):
    """Returns a result as it was sent, but without the fields that only the stateless protocol has."""
    value = model.model_dump(by_alias=True, mode="json", exclude_unset=True)
    for key in ("resultType", "ttlMs", "cacheScope", "_meta"):
        value.pop(key, None)
    return value


async def elicit(_context, params):
    questions.append(["elicitation", params.message])
    return types.ElicitResult(action="accept", content={"word": "kiwi"})


async def sample(_context, params):
    questions.append(["sampling", params.messages[0].content.text])
    content = types.TextContent(type="text", text="kiwi")
    return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")


async def on_message(message):
    if isinstance(message, types.ToolListChangedNotification):
        notifications.append("tools changed")


async def until(poll):
    """Polls until there is a result. There is no timeout here, because the test that runs this script has one."""
    while not (found := await poll()):
        await anyio.sleep(0.02)
    return found


async def logged(event):
    """Whether the server has logged an event."""
    return event in Path(os.environ["SERVER_LOG"]).read_text()


async def call(client, name, arguments, **more):
    return plain(await client.call_tool("tool_call", {"name": name, "arguments": arguments}, **more))


async def ready(client):
    reply = (await client.call_tool("tool_search", {"query": ""})).structured_content
    return "connecting" not in reply and "down" not in reply


async def is_changed():
    return "tools changed" in notifications


async def change(client):
    """Makes a server change its tools, and waits for the notification."""
    if not client.protocol_version.startswith("2026"):
        await call(client, "fixture__test_trigger_tool_change", {})
        await until(is_changed)
        return "notified"
    async with client.listen(tools_list_changed=True) as events:
        await call(client, "fixture__test_trigger_tool_change", {})
        async for event in events:
            return "notified" if type(event).__name__ == "ToolsListChanged" else repr(event)


async def main(client):
    await until(lambda: ready(client))
    report["version"] = client.protocol_version
    report["server"] = client.server_info.name
    report["tools"] = [tool.name for tool in (await client.list_tools()).tools]
    found = await client.call_tool("tool_search", {"query": "select:faulty__echo"})
    report["search"] = [hit["name"] for hit in found.structured_content["hits"]]
    described = await client.call_tool("tool_describe", {"name": "faulty__echo"})
    report["describe"] = described.structured_content["hits"][0]["input_schema"]
    report["call"] = await call(client, "faulty__echo", {"word": "kiwi"})

    progress = []

    async def on_progress(done, total, _message):
        progress.append([int(done), int(total)])

    report["with progress"] = await call(client, "fixture__test_tool_with_progress", {}, progress_callback=on_progress)
    report["progress"] = progress

    # The server never answers this call, so it hangs until this client cancels it.
    async with anyio.create_task_group() as calls:
        calls.start_soon(call, client, "faulty__stuck", {})
        await until(lambda: logged("call stuck"))
        calls.cancel_scope.cancel()
    await until(lambda: logged("cancelled "))
    report["cancelled"] = calls.cancel_scope.cancelled_caught

    for kind, tool in (("elicitation", "faulty__elicit"), ("sampling", "faulty__sample")):
        report[kind] = (await call(client, tool, {}))["structuredContent"]
    report["questions"] = questions

    report["resources"] = sorted(str(item.uri) for item in (await client.list_resources()).resources)
    report["resource"] = plain(await client.read_resource("fixture+test://static-text"))
    report["prompts"] = sorted(item.name for item in (await client.list_prompts()).prompts)
    arguments = {"arg1": "one", "arg2": "two"}
    report["prompt"] = plain(await client.get_prompt("fixture__test_prompt_with_arguments", arguments))
    report["change"] = await change(client)


async def run(era, target):
    server = target[0] if target[0].startswith("http") else StdioServerParameters(command=target[0], args=target[1:])
    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "message_handler": on_message}
    async with Client(server, mode=era, **callbacks) as client:
        await main(client)
    print(json.dumps(report))


anyio.run(run, sys.argv[1], sys.argv[2:])
