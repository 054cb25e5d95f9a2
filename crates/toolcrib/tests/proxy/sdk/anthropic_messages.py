"""An agent with the `anthropic` SDK; prints everything it received as one JSON document."""

from anthropic import Anthropic

import office

args = office.arguments()
client = Anthropic(base_url=args.url, api_key="sk-client", max_retries=0)
tools = [{"name": t["name"], "description": t["description"], "input_schema": t["schema"]} for t in office.tools(args.tools)]
# Marks the complete list of tools for caching, as Anthropic's documentation advises.
tools[-1]["cache_control"] = {"type": "ephemeral"}
messages = []
turns = []


def ask():
    request = {
        "model": "claude-opus-5",
        "max_tokens": 1000,
        "system": "You are the office's assistant.",
        "messages": messages,
        "tools": tools,
    }
    if not args.stream:
        return client.messages.create(**request)
    with client.messages.stream(**request) as stream:
        for text in stream.text_stream:
            deltas.append(text)
        return stream.get_final_message()


for text in office.messages(args):
    messages.append({"role": "user", "content": text})
    while True:
        deltas = []
        message = ask()
        calls = [block for block in message.content if block.type == "tool_use"]
        answer_text = "".join(block.text for block in message.content if block.type == "text")
        turns.append({
            "id": message.id,
            "model": message.model,
            "text": answer_text,
            "streamed": "".join(deltas) if args.stream else answer_text,
            "stop": message.stop_reason,
            "calls": [{"id": call.id, "name": call.name, "arguments": call.input} for call in calls],
            "usage": {"input": message.usage.input_tokens, "output": message.usage.output_tokens},
            "items": [block.type for block in message.content],
        })
        messages.append({"role": "assistant", "content": message.content})
        if not calls:
            break
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": office.run(call.name, call.input)} for call in calls
        ]
        messages.append({"role": "user", "content": results})

counted = client.messages.count_tokens(model="claude-opus-5", messages=messages[:1], tools=tools)
turns[0]["counted"] = counted.input_tokens > 0
office.report(turns)
