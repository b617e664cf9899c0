// What a client is told when it connects.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { connect, freshName, openSocket, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 15_000 };
let server;
before(async () => {
  server = await startServer(async (directory) => {
    await mkdir(path.join(directory, "classes"));
    await writeFile(path.join(directory, "classes/counter.yaml"), "class: counter\naliases: [assistant]\n");
    await writeFile(path.join(directory, "classes/chat-room.yaml"), "class: chat-room\nsend_identity: false\n");
    return { config: "classes: classes\n" };
  });
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
      await client.call("get"); // all frames of the handshake are here before this answer
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

    test("an alias leads to the agent of the class, also after a reconnection", limits, async (t) => {
      const name = freshName("alias");
      const changes = [];
      const { client, identities, opens } = connect(t, version, server, {
        agent: "assistant",
        name,
        onIdentityChange: (...change) => changes.push(change),
      });
      await client.ready;
      assert.equal(client.agent, "counter");
      assert.equal(await client.call("increment"), 1);
      client.reconnect();
      await opens.waitForCount(2);
      await identities.waitForCount(2);
      assert.deepEqual(identities.entries, [[name, "counter"], [name, "counter"]]);
      assert.deepEqual(changes, []);

      const own = connect(t, version, server, { agent: "Counter", name });
      await own.client.ready;
      assert.equal(await own.client.call("increment"), 2);
      assert.equal(await client.call("get"), 2);

      const answer = await version.agentFetch({ agent: "assistant", name, host: server.host, protocol: "http" });
      assert.deepEqual(await answer.json(), { count: 2 });
    });

    test("a class that keeps its identity to itself sends its state all the same", limits, async (t) => {
      const { client, identities, frames, updates } = connect(t, version, server, {
        agent: "ChatRoom",
        name: freshName("shy"),
      });
      await frames.waitFor((frame) => frame.includes("cf_agent_mcp_servers"));
      assert.equal(client.identified, false);
      assert.deepEqual(identities.entries, []);
      assert.deepEqual(
        frames.entries.slice(0, 2).map((frame) => JSON.parse(frame).type),
        ["cf_agent_state", "cf_agent_mcp_servers"],
      );
      await updates.waitForCount(1);
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
