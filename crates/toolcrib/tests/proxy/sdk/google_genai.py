"""An agent with the `google-genai` SDK; prints everything it received as one JSON document."""

from google import genai
from google.genai import types

import office

args = office.arguments()
client = genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=args.url))


def declaration(tool):
    if args.schema:
        schema = types.Schema.from_json_schema(json_schema=types.JSONSchema(**tool["schema"]))
        return types.FunctionDeclaration(name=tool["name"], description=tool["description"], parameters=schema)
    return types.FunctionDeclaration(name=tool["name"], description=tool["description"], parameters_json_schema=tool["schema"])


declarations = [declaration(tool) for tool in office.tools(args.tools)]
config = types.GenerateContentConfig(
    system_instruction="You are the office's assistant.",
    tools=[types.Tool(function_declarations=declarations)],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
contents = []
turns = []


def ask():
    """Returns the parts of the answer, and the response object. If the answer is streamed, this is the last object of the stream."""
    request = {"model": "gemini-3-pro-preview", "contents": contents, "config": config}
    if not args.stream:
        response = client.models.generate_content(**request)
        return response.candidates[0].content.parts, response
    parts = []
    for response in client.models.generate_content_stream(**request):
        parts.extend(response.candidates[0].content.parts or [])
    return parts, response


for text in office.messages(args):
    contents.append(types.Content(role="user", parts=[types.Part.from_text(text=text)]))
    while True:
        parts, last = ask()
        calls = [part.function_call for part in parts if part.function_call]
        answer_text = "".join(part.text for part in parts if part.text and not part.thought)
        turns.append({
            "id": last.response_id,
            "model": last.model_version,
            "text": answer_text,
            "streamed": answer_text,
            "stop": last.candidates[0].finish_reason.value,
            "calls": [{"id": call.id, "name": call.name, "arguments": call.args} for call in calls],
            "usage": {"input": last.usage_metadata.prompt_token_count, "output": last.usage_metadata.candidates_token_count},
            "signed": [bool(part.thought_signature) for part in parts if part.function_call],
        })
        # A stream ends with a part without content, which must not be sent back.
        contents.append(types.Content(role="model", parts=[part for part in parts if part.function_call or part.text]))
        if not calls:
            break
        answers = []
        for call in calls:
            answer = types.Part.from_function_response(name=call.name, response={"result": office.run(call.name, call.args)})
            answer.function_response.id = call.id
            answers.append(answer)
        contents.append(types.Content(role="user", parts=answers))

office.report(turns)
