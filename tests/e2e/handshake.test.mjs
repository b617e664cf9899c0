// What a client is told when it connects.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, openSocket, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 15_000 };
let server;
before(async () => {
  server = await startServer();
});
after(async () => {
  await server?.dispose();
});

for (const version of versions) {
  describe(`handshake with ${version.name}`, () => {
    test("the client becomes ready with the name and the class of its agent", limits, async (t) => {
      const name = freshName("ready");
      const { client, identities } = connect(t, version, server, { agent: "Counter", name });
      await client.ready;
      assert.equal(client.name, name);
      assert.equal(client.agent, "counter");
      assert.equal(client.identified, true);
      assert.deepEqual(identities.entries, [[name, "counter"]]);
    });

    test("a newcomer is told the state once, by the server", limits, async (t) => {
      const { client, updates } = connect(t, version, server, { agent: "Counter", name: freshName("state") });
      await client.ready;
      if (version.name === "agents@0.32.0") assert.deepEqual(client.state, { count: 0 });
      await client.call("get"); // whatever the handshake sends is here before this answer
      assert.deepEqual(updates.entries, [[{ count: 0 }, "server"]]);
      assert.deepEqual(client.state, { count: 0 });
    });

    test("an agent without state makes the client ready too", limits, async (t) => {
      const { client } = connect(t, version, server, { agent: "ProbeAgent", name: freshName("stateless") });
      await client.ready;
      assert.equal(client.agent, "probe-agent");
      assert.equal(await client.call("add", [1, 2]), 3);
    });

    test("a name with an escape stays as it is in the URL", limits, async (t) => {
      const name = `${freshName("Room")} é`;
      const { client } = connect(t, version, server, { agent: "Counter", name });
      await client.ready;
      assert.equal(client.name, encodeURIComponent(name));
    });
  });
}

async function handshakeOf(t, target) {
  const { socket, frames } = await openSocket(t, server, target);
  socket.send('{"type":"rpc","id":"fence","method":"no_such_method","args":[]}');
  await frames.waitFor((frame) => frame.includes('"fence"'));
  return frames.entries.map((frame) => JSON.parse(frame)).filter((frame) => frame.id !== "fence");
}

test("identity, state and MCP servers come in this order", limits, async (t) => {
  const name = freshName("order");
  assert.deepEqual(await handshakeOf(t, `/agents/counter/${name}?_pk=order`), [
    { type: "cf_agent_identity", name, agent: "counter", stateFollows: true },
    { type: "cf_agent_state", state: { count: 0 } },
    { type: "cf_agent_mcp_servers", mcp: { prompts: [], resources: [], servers: {}, tools: [] } },
  ]);
});

test("state is announced only when there is one", limits, async (t) => {
  const name = freshName("order");
  const frames = await handshakeOf(t, `/agents/probe-agent/${name}`);
  assert.deepEqual(
    frames.map((frame) => frame.type),
    ["cf_agent_identity", "cf_agent_mcp_servers"],
  );
  assert.equal("stateFollows" in frames[0], false);
});
