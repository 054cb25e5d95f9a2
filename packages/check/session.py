"""One MCP session over stdio with an installed command: handshake, list, search, call, end.

The server behind the gateway is `mcp-server-time`, which the tests install with `scripts/install-peers`.
"""

import json
import subprocess

from release.common import Failed

# Only a hanging program reaches this deadline, in seconds.
DEADLINE = 120


def write_config(path, server):
    """Writes a config with one server, whose tools are deferred although there are only two."""
    path.write_text(f"""[activation]
mode = "on"
[servers.time]
command = {json.dumps(str(server))}
args = ["--local-timezone", "UTC"]
""", encoding="utf-8")


class Session:
    """A running `toolcrib mcp` and the client's side of the protocol."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.next_id = 0

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        """Sends a request and returns its result. Skips notifications."""
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.next_id and "method" not in answer:
                if "result" not in answer:
                    raise Failed(f"`{method}` was answered with {answer}", "this is a bug of the gateway")
                return answer["result"]
        raise Failed(f"the command ended before it answered `{method}`:\n{self.process.stderr.read().decode()}",
                     "start the command by hand")

    def start(self):
        client = {"name": "check-packages", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        result = self.request("initialize", params)
        self.send({"method": "notifications/initialized"})
        return result["serverInfo"]["name"]

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def end(self):
        """Closes the connection, and returns the exit code."""
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(DEADLINE)


def search_and_call(command, env):
    """Runs a session up to the result of a call. Returns what it saw, so that sessions can be compared."""
    session = Session([*command, "mcp"], env)
    try:
        server = session.start()
        listed = [tool["name"] for tool in session.request("tools/list", {})["tools"]]
        found = json.loads(session.call("tool_search", {"query": "convert a time between timezones"})["content"][0]["text"])
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        called = session.call("tool_call", {"name": found["hits"][0]["name"], "arguments": arguments})
        difference = json.loads(called["content"][0]["text"])["time_difference"]
        return {"server": server, "tools": listed, "hit": found["hits"][0]["name"], "result": difference,
                "exit code": session.end()}
    finally:
        session.process.kill()


EXPECTED = {"server": "toolcrib", "tools": ["tool_search", "tool_describe", "tool_call"], "hit": "time__convert_time",
            "result": "+9.0h", "exit code": 0}
