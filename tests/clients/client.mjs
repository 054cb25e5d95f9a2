// A client with the official TypeScript SDK. Prints everything it receives from the gateway as one JSON document.
//
//     client.mjs SDK URL          over HTTP
//     client.mjs SDK COMMAND...   over stdio
//
// SERVER_LOG is the file in which the server behind the gateway logs its calls. SDK is the folder of the installed
// package. This SDK supports only the older protocol version.

import { readFileSync } from "node:fs";

const [sdk, ...target] = process.argv.slice(2);
const load = (path) => import(`${sdk}/dist/esm/${path}.js`);
const { Client } = await load("client/index");
const { StdioClientTransport } = await load("client/stdio");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const types = await load("types");

const report = {};
const questions = [];
let changed = false;

const capabilities = { elicitation: {}, sampling: {} };
const client = new Client({ name: "ours", version: "1" }, { capabilities });
client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    questions.push(["elicitation", params.message]);
    return { action: "accept", content: { word: "kiwi" } };
});
client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
    questions.push(["sampling", params.messages[0].content.text]);
    return { role: "assistant", content: { type: "text", text: "kiwi" }, model: "none", stopReason: "endTurn" };
});
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => {
    changed = true;
});

const call = (name, args, options) =>
    client.callTool({ name: "tool_call", arguments: { name, arguments: args } }, undefined, options);

// Polls until there is a result; the test that runs this has a deadline.
const until = async (poll) => {
    while (!(await poll())) await new Promise((resolve) => setTimeout(resolve, 20));
};

// Whether the server has logged an event.
const logged = (event) => readFileSync(process.env.SERVER_LOG, "utf8").includes(event);

const isReady = async () => {
    const { structuredContent } = await client.callTool({ name: "tool_search", arguments: { query: "" } });
    return !("connecting" in structuredContent) && !("down" in structuredContent);
};

const transport = target[0].startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(target[0]))
    : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
await client.connect(transport);
await until(isReady);

report.version = types.LATEST_PROTOCOL_VERSION;
report.server = client.getServerVersion().name;
// Also makes the SDK check each structured result against the schema that its tool declares.
report.tools = (await client.listTools()).tools.map((tool) => tool.name);
const found = await client.callTool({ name: "tool_search", arguments: { query: "select:faulty__echo" } });
report.search = found.structuredContent.hits.map((hit) => hit.name);
const described = await client.callTool({ name: "tool_describe", arguments: { name: "faulty__echo" } });
report.describe = described.structuredContent.hits[0].input_schema;
report.call = await call("faulty__echo", { word: "kiwi" });

// This SDK drops progress notifications that arrive together with the response, so it may take several calls to receive
// all of them. The test compares their order.
await until(async () => {
    const progress = [];
    const onprogress = ({ progress: done, total }) => progress.push([done, total]);
    report["with progress"] = await call("fixture__test_tool_with_progress", {}, { onprogress });
    report.progress = progress;
    return progress.length >= 3;
});

// The call hangs in its server until this client cancels it.
const cancellation = new AbortController();
const stuck = call("faulty__stuck", {}, { signal: cancellation.signal }).then(
    () => false,
    () => true,
);
await until(() => logged("call stuck"));
cancellation.abort();
await until(() => logged("cancelled "));
report.cancelled = await stuck;

report.elicitation = (await call("faulty__elicit", {})).structuredContent;
report.sampling = (await call("faulty__sample", {})).structuredContent;
report.questions = questions;

report.resources = (await client.listResources()).resources.map((resource) => resource.uri).sort();
report.resource = await client.readResource({ uri: "fixture+test://static-text" });
report.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name).sort();
const args = { arg1: "one", arg2: "two" };
report.prompt = await client.getPrompt({ name: "fixture__test_prompt_with_arguments", arguments: args });

await call("fixture__test_trigger_tool_change", {});
await until(() => changed);
report.change = "notified";

console.log(JSON.stringify(report));
await client.close();
process.exit(0);
