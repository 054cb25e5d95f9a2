"""An agent with the `openai` SDK over Responses; prints everything it received as one JSON document.

Each request has the complete history, or with `--previous` the id of the last response and only the new items.
"""

import json

from openai import OpenAI

import office

args = office.arguments()
client = OpenAI(base_url=f"{args.url}/v1", api_key="sk-client", max_retries=0)
tools = [
    {"type": "function", "name": t["name"], "description": t["description"], "parameters": t["schema"], "strict": False}
    for t in office.tools(args.tools)
]
items = []
previous = None
turns = []


def ask():
    request = {"model": "gpt-5.2", "instructions": "You are the office's assistant.", "input": items, "tools": tools}
    if args.previous and previous:
        request["previous_response_id"] = previous
    if not args.stream:
        return client.responses.create(**request)
    with client.responses.stream(**request) as stream:
        for event in stream:
            events.append(event)
        return stream.get_final_response()


for text in office.messages(args):
    items.append({"role": "user", "content": text})
    while True:
        events = []
        response = ask()
        previous = response.id
        calls = [item for item in response.output if item.type == "function_call"]
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        numbers = [event.sequence_number for event in events if hasattr(event, "sequence_number")]
        turns.append({
            "id": response.id,
            "model": response.model,
            "text": response.output_text,
            "streamed": "".join(deltas) if args.stream else response.output_text,
            "stop": response.status,
            "calls": [{"id": call.call_id, "name": call.name, "arguments": json.loads(call.arguments)} for call in calls],
            "usage": {"input": response.usage.input_tokens, "output": response.usage.output_tokens},
            "items": [item.type for item in response.output],
            "tools": [tool.name for tool in response.tools] == [tool["name"] for tool in tools],
            "numbered": numbers == list(range(len(numbers))),
        })
        items = [] if args.previous else items + list(response.output)
        if not calls:
            break
        for call in calls:
            result = office.run(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})

office.report(turns)
