// permessage-deflate, with a client that has its own: `ws`.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";

import WebSocket from "ws";

import { Recording, connect, freshName, versions } from "./clients.mjs";
import { bundledPlugins, startServer } from "./server.mjs";

const limits = { timeout: 20_000 };
const text = '{"type":"say","text":"' + "and so on, ".repeat(80) + '"}';

// The extensions that ws offers, and those that ws takes as agreed.
const offers = [
  ["with its defaults", {}, {}],
  ["with a small window", { serverMaxWindowBits: 12, clientMaxWindowBits: 9 }, {}],
  ["with a window of its own choice", { clientMaxWindowBits: undefined }, {}],
  ["without contexts", { serverNoContextTakeover: true, clientNoContextTakeover: true }, {}],
  ["with a window that is too small", { serverMaxWindowBits: 9 }, { declined: true }],
];

for (const setting of ["none", "no_context_takeover", "context_takeover"]) {
  describe(`compression: ${setting}`, () => {
    let server;
    const started = startServer(async () => ({ plugins: [bundledPlugins], config: `compression: ${setting}\n` }));
    after(async () => (await started).dispose());

    for (const [name, options, expected] of offers) {
      test(`ws ${name}`, limits, async (t) => {
        server = await started;
        const socket = new WebSocket(`ws://${server.host}/agents/chat-room/${freshName("deflate")}`, {
          perMessageDeflate: { threshold: 0, ...options },
        });
        t.after(() => socket.terminate());
        const frames = new Recording("frames");
        socket.on("message", (data) => frames.add(data.toString()));
        socket.on("error", (error) => frames.add(`error: ${error.message}`));
        await new Promise((resolve) => socket.once("open", resolve));
        const isOn = setting !== "none" && !expected.declined;
        assert.equal(socket.extensions, isOn ? "permessage-deflate" : "");
        await frames.waitFor((frame) => frame.includes("cf_agent_mcp_servers"));

        const before = socket._socket.bytesRead;
        for (let turn = 1; turn <= 5; ++turn) {
          socket.send(text);
          const echo = await frames.waitFor((frame) => frame.includes("and so on"), frames.length);
          assert.ok(echo.includes("and so on, ".repeat(80)), echo);
        }
        const read = socket._socket.bytesRead - before;
        if (isOn) assert.ok(read < 5 * 300, `${read} bytes came for five messages of ${text.length}`);
        else assert.ok(read > 5 * text.length);
      });
    }

    for (const version of versions) {
      test(`the client of ${version.name}`, limits, async (t) => {
        const { client, identities } = connect(t, version, await started, {
          agent: "Counter",
          name: freshName("deflate"),
        });
        await identities.waitFor();
        assert.equal(await client.call("increment", [3]), 3);
        await assert.rejects(client.call("no_such_method".repeat(100), []));
      });
    }
  });
}
