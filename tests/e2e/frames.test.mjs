// Frames that are no part of the protocol, connections without the protocol, and agents that are
// evicted.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, isRpcAnswer, openSocket, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 15_000 };
let server;
before(async () => {
  server = await startServer();
});
after(async () => {
  await server?.dispose();
});

const garbage = [
  "not json",
  "{",
  "{}",
  "[]",
  "0",
  '"rpc"',
  '{"type":"rpc"}',
  '{"type":"rpc","id":1,"method":"get","args":[]}',
  '{"type":"rpc","id":"x","method":"get","args":{}}',
  '{"type":"rpc","id":"x","method":"get","args":[]} trailing',
  '{"type":"cf_agent_state"}',
  '{"type":"cf_agent_unheard_of","state":1}',
  "[".repeat(100_000),
  " ",
  "",
];

for (const version of versions) {
  describe(`frames with ${version.name}`, () => {
    test("a call after garbage is answered", limits, async (t) => {
      const { client } = connect(t, version, server, { agent: "ProbeAgent", name: freshName("garbage") });
      await client.ready;
      // Not "null": the agent sends frames back, and that one as a whole frame breaks the clients.
      for (const text of garbage) client.send(text);
      client.send(new Uint8Array([0, 255, 1]));
      assert.equal(await client.call("add", [1, 2]), 3);
    });

    test("a connection without the protocol hears nothing but what is meant for it", limits, async (t) => {
      const name = freshName("quiet");
      const quiet = connect(t, version, server, {
        agent: "ProbeAgent",
        name,
        query: { protocol: "0", hello: "1" },
      });
      assert.equal(await quiet.frames.waitFor(), "hello");

      const other = connect(t, version, server, { agent: "ProbeAgent", name });
      await other.client.call("set", [{ topic: "tea" }]); // goes to all who speak the protocol
      assert.equal(await quiet.client.call("add", [2, 2]), 4); // calls work all the same

      await other.client.call("tell_all", ["to all"]); // the agent's own frames are for everybody
      assert.equal(await quiet.frames.waitFor((frame) => frame === "to all"), "to all");
      quiet.client.setState({ forbidden: true });
      assert.equal(await quiet.stateErrors.waitFor(), "State update rejected");
      assert.equal(await quiet.client.call("add", [3, 3]), 6);

      const [hello, answer, toAll, refusal, ...more] = quiet.frames.entries;
      assert.equal(hello, "hello");
      assert.equal(JSON.parse(answer).type, "rpc");
      assert.equal(toAll, "to all");
      assert.equal(JSON.parse(refusal).type, "cf_agent_state_error");
      assert.equal(more.length, 1); // the last call's answer
      assert.equal(quiet.identities.length, 0);
      assert.deepEqual(quiet.updates.entries, [[{ forbidden: true }, "client"]]);
    });

    test("a socket stays open while its agent is evicted", limits, async (t) => {
      const { client, frames, closes } = connect(t, version, server, {
        agent: "ProbeAgent",
        name: freshName("evicted"),
        query: { hello: "1" },
      });
      await client.call("set", [{ kept: true }]);
      await client.call("set_attachment", [{ nick: "ada" }]);
      client.call("evict").catch(() => {});
      assert.deepEqual(await client.call("get_attachment"), { nick: "ada" });
      assert.equal(closes.length, 0);
      assert.equal(frames.entries.filter((frame) => frame === "hello").length, 1); // connected once

      const late = connect(t, version, server, { agent: "ProbeAgent", name: client.name });
      await late.updates.waitFor(([state]) => state?.kept === true);
    });
  });
}

test("text that is not the protocol's comes back from the counter unchanged", limits, async (t) => {
  const { socket, frames } = await openSocket(t, server, `/agents/counter/${freshName("text")}`);
  const texts = [...garbage, "null", "caf\u00e9 \u{1f525}"];
  for (const text of texts) socket.send(text);
  socket.send('{"type":"rpc","id":"fence","method":"get","args":[]}');
  await frames.waitFor(isRpcAnswer("fence"));
  const answers = frames.entries.slice(3, -1); // behind identity, state and MCP servers
  assert.deepEqual(answers, texts);
});

test("binary frames come back from the counter unchanged", limits, async (t) => {
  const { socket, frames } = await openSocket(t, server, `/agents/counter/${freshName("binary")}`);
  const blocks = [Buffer.alloc(0), Buffer.from([0, 1, 254, 255]), Buffer.alloc(300_000, 0x5a)];
  // Bytes that would be a call, were they text.
  blocks.push(Buffer.from('{"type":"rpc","id":"1","method":"increment","args":[]}'));
  for (const block of blocks) socket.send(block);
  await frames.waitForCount(3 + blocks.length);
  const echoed = frames.entries.slice(3);
  for (const [i, block] of blocks.entries()) assert.ok(block.equals(echoed[i]), `block ${i}`);
});

test("messages are taken in the order in which they came", limits, async (t) => {
  const { socket, frames } = await openSocket(t, server, `/agents/counter/${freshName("sequence")}`);
  const texts = Array.from({ length: 1_000 }, (_, i) => `message ${i}`);
  for (const text of texts) socket.send(text);
  await frames.waitForCount(3 + texts.length);
  assert.deepEqual(frames.entries.slice(3), texts);
});
