"""An MCP server over HTTP+SSE, made with the Python SDK. Its argument is the port."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("events", instructions="Call grow before you call grown.")


class Answer(BaseModel):
    word: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the user for a word."""
    answer = await ctx.elicit("Which word?", Answer)
    return f"{answer.action}: {answer.data.word}"


@server.tool()
async def count(ctx: Context, to: int) -> int:
    """Counts, and reports its progress."""
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return to


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool to the list."""

    def grown() -> str:
        """Was added later."""
        return "grown"

    server.add_tool(grown)
    await ctx.session.send_tool_list_changed()
    return "added"


server.run("sse", host="127.0.0.1", port=int(sys.argv[1]))
