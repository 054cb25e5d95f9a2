"""Good clients of the gateway and the proxy. Every answer that they get is checked.

Each request has one of three outcomes: right (the expected answer), refused (a clear error, for example
because a server was killed or a limit was reached) or lost (no answer, or a wrong one). Only a lost request
is a failure.
"""

import asyncio
import json
import random

from http11 import Lost, request

TOOLS = [
    {"type": "function", "function": {
        "name": f"desk_{number}", "description": f"Files report number {number} of the month with the board.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
    for number in range(40)
]


class Tally:
    """Counts the outcomes of the requests of good clients."""

    def __init__(self):
        self.right = self.refused = 0
        self.lost = []

    def wrong(self, what):
        self.lost.append(what)


def encoded(value):
    return json.dumps(value).encode()


async def gateway_client(address, tally, until, server):
    """Runs sessions of a well-behaved MCP client: handshake, list, search, calls, end."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    while not until():
        try:
            await _session(address, dict(headers), tally, until, server)
        except Lost as error:
            tally.wrong(str(error))
        await asyncio.sleep(random.uniform(0, 0.2))


async def _session(address, headers, tally, until, server):
    async def ask(number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return await request(address, "POST", "/mcp", headers, encoded(message))

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
    begun = await ask(0, "initialize", hello)
    if begun.status == 503:
        tally.refused += 1
        return
    if begun.status != 200:
        tally.wrong(f"handshake: {begun.status} {begun.body[:200]}")
        return
    headers["mcp-session-id"] = begun.headers["mcp-session-id"]
    headers["mcp-protocol-version"] = "2025-11-25"
    await request(address, "POST", "/mcp", headers, encoded({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    for number in range(1, 8):
        if until():
            break
        text = f"{random.random()}"
        call = {"name": "tool_call", "arguments": {"name": f"{server}__echo", "arguments": {"text": text}}}
        response = await ask(number, "tools/call", call)
        # 404 means that the session was evicted to make room for another client's session. 503 means that a limit was
        # reached.
        if response.status in (404, 503):
            tally.refused += 1
            return
        if response.status != 200:
            tally.wrong(f"call of `{server}`: {response.status} {response.body[:200]}")
            return
        answers = [event for event in response.events() if event.get("id") == number]
        if len(answers) != 1:
            tally.wrong(f"{len(answers)} answers to one call of `{server}`: {response.status} {response.body[:200]}")
        elif "result" not in answers[0] or answers[0]["result"].get("isError"):
            tally.refused += 1
        elif text in json.dumps(answers[0]["result"]):
            tally.right += 1
        else:
            tally.wrong(f"the wrong answer from `{server}`: {json.dumps(answers[0])[:200]}")
    await request(address, "DELETE", "/mcp", headers)


async def proxy_client(address, tally, until):
    """Runs conversations of a well-behaved agent with forty deferred tools."""
    headers = {"content-type": "application/json", "authorization": "Bearer sk-soak"}
    while not until():
        goal = f"desk_{random.randrange(40)}"
        messages = [{"role": "user", "content": f"goal: {goal}"}]
        try:
            for _ in range(4):
                body = encoded({"model": "good", "messages": messages, "tools": TOOLS})
                response = await request(address, "POST", "/v1/chat/completions", headers, body)
                if response.status == 503:
                    tally.refused += 1
                    break
                reply = response.json()["choices"][0]["message"]
                calls = reply.get("tool_calls")
                if not calls:
                    if reply["content"] == f"done: result of {goal}":
                        tally.right += 1
                    else:
                        tally.wrong(f"the agent got: {reply['content'][:200]}")
                    break
                if calls[0]["function"]["name"] != goal:
                    tally.wrong(f"the agent was asked to call {calls[0]['function']['name']}")
                    break
                messages += [reply, {"role": "tool", "tool_call_id": calls[0]["id"], "content": f"result of {goal}"}]
            else:
                tally.wrong("a conversation without an end")
        except (Lost, KeyError, ValueError, TypeError) as error:
            tally.wrong(f"proxy: {type(error).__name__}: {error}")
        await asyncio.sleep(random.uniform(0, 0.2))
