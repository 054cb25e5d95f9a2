// What a client with the official TypeScript SDK is sent by the gateway while it finds and runs one tool, as one JSON
// document.
//
//     preset.mjs SDK QUERY GOAL ARGUMENTS COMMAND...
//
// The server behind the gateway answers once the file READY exists, which is made after the handshake: what the
// handshake says then does not depend on who is faster.
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

// Results as they came: the SDK's schema for all of them leaves every field in place.
const ask = (method, params) => client.request({ method, params }, types.ResultSchema);
const list = async () => (await ask("tools/list", {})).tools;
const call = (name, args) => ask("tools/call", { name, arguments: args });

writeFileSync(process.env.READY, "");

const seen = { instructions: client.getInstructions() };
seen.list = await list();
seen.search = await call("tool_search", { query });
const after = await list();
seen.changed = changed;
// Only what is new: the rest stands above.
const before = new Set(seen.list.map((tool) => JSON.stringify(tool)));
seen.listed_anew = after.filter((tool) => !before.has(JSON.stringify(tool)));
seen.order = after.map((tool) => tool.name);
// A tool that is listed is called by its name, any other through the bridge.
const run = (args) => (seen.order.includes(goal) ? call(goal, args) : call("tool_call", { name: goal, arguments: args }));
seen.refused = await run({});
seen.result = await run(JSON.parse(args));
await client.close();
console.log(JSON.stringify(seen, null, 1));
