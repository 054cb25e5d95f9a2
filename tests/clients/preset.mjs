// A client with the official TypeScript SDK that finds and runs one tool. Prints everything it receives from the gateway
// as one JSON document.
//
//     preset.mjs SDK QUERY GOAL ARGUMENTS COMMAND...
//
// The server behind the gateway answers once the file READY exists. It is created after the handshake, so that the
// result of the handshake does not depend on timing.
// SDK is the folder of the installed package, GOAL the name of the tool that QUERY finds, ARGUMENTS its arguments as JSON.

import { writeFileSync } from "node:fs";

const [sdk, query, goal, args, command, ...rest] = process.argv.slice(2);
const load = (path) => import(`${sdk}/dist/esm/${path}.js`);
const { Client } = await load("client/index");
const { StdioClientTransport } = await load("client/stdio");
const types = await load("types");

let changed = 0;
const client = new Client({ name: "ours", version: "1" }, { capabilities: {} });
client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => {
    changed += 1;
});
await client.connect(new StdioClientTransport({ command, args: rest, env: process.env }));

// Results as received: this schema of the SDK keeps every field.
const request = (method, params) => client.request({ method, params }, types.ResultSchema);
const list = async () => (await request("tools/list", {})).tools;
const call = (name, args) => request("tools/call", { name, arguments: args });

writeFileSync(process.env.READY, "");

const report = { instructions: client.getInstructions() };
report.list = await list();
report.search = await call("tool_search", { query });
const after = await list();
report.changed = changed;
// Only the new definitions; the others are in `list`.
const before = new Set(report.list.map((tool) => JSON.stringify(tool)));
report.newly_listed = after.filter((tool) => !before.has(JSON.stringify(tool)));
report.order = after.map((tool) => tool.name);
// Listed tools are called by name, others through the bridge.
const run = (args) => (report.order.includes(goal) ? call(goal, args) : call("tool_call", { name: goal, arguments: args }));
report.refused = await run({});
report.result = await run(JSON.parse(args));
await client.close();
console.log(JSON.stringify(report, null, 1));
