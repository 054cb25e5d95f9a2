"""An agent with the `openai` SDK over Chat Completions; prints everything it received as one JSON document."""

import json

from openai import OpenAI

import office

args = office.arguments()
client = OpenAI(base_url=f"{args.url}/v1", api_key="sk-client", max_retries=0)
tools = [
    {"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": t["schema"]}}
    for t in office.tools(args.tools)
]
messages = [{"role": "system", "content": "You are the office's assistant."}]
turns = []


def ask():
    request = {"model": "gpt-5.2", "messages": messages, "tools": tools}
    if not args.stream:
        return client.chat.completions.create(**request)
    with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
        for event in stream:
            if event.type == "chunk":
                deltas.append(event.chunk.choices[0].delta.content if event.chunk.choices else None)
        return stream.get_final_completion()


for text in office.messages(args):
    messages.append({"role": "user", "content": text})
    while True:
        deltas = []
        completion = ask()
        choice = completion.choices[0]
        message = choice.message
        calls = message.tool_calls or []
        turns.append({
            "id": completion.id,
            "model": completion.model,
            "text": message.content or "",
            "streamed": "".join(delta or "" for delta in deltas) if args.stream else message.content or "",
            "stop": choice.finish_reason,
            "calls": [
                {"id": call.id, "name": call.function.name, "arguments": json.loads(call.function.arguments)} for call in calls
            ],
            "usage": {"input": completion.usage.prompt_tokens, "output": completion.usage.completion_tokens},
        })
        messages.append(message)
        if not calls:
            break
        for call in calls:
            result = office.run(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

office.report(turns)
