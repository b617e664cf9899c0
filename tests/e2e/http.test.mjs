// Plain HTTP: the same agents, and errors that people can read.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
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
  describe(`HTTP with ${version.name}`, () => {
    test("requests and sockets reach one agent", limits, async (t) => {
      const name = freshName("http");
      const request = (init) => version.agentFetch({ agent: "Counter", name, host: server.host }, init);
      assert.deepEqual(await (await request()).json(), { count: 0 });

      const { client, updates } = connect(t, version, server, { agent: "Counter", name });
      await client.ready;
      assert.equal((await request({ method: "POST" })).status, 200);
      await updates.waitFor(([state, source]) => state.count === 1 && source === "server");
      assert.equal(await client.call("increment"), 2);
      assert.deepEqual(await (await request()).json(), { count: 2 });
    });
  });
}

// A refusal has a status of its own kind and one shape of body.
async function refusal(target, init) {
  const response = await fetch(`http://${server.host}${target}`, init);
  const body = await response.json();
  assert.deepEqual(Object.keys(body), ["error"], target);
  assert.equal(typeof body.error.code, "string");
  assert.ok(body.error.message.length > 0 && body.error.message.length < 300, body.error.message);
  return response.status;
}

test("what is not there is 404", limits, async () => {
  for (const target of ["/agents", "/agents/counter", "/nothing/here"]) {
    assert.equal(await refusal(target), 404, target);
  }
});

test("a class that is not there is 400", limits, async () => {
  assert.equal(await refusal("/agents/no-such-agent/a"), 400);
});

test("a name that is not acceptable is 400", limits, async () => {
  for (const name of ["n".repeat(2_000), "a%00b", "%FF", "%0a"]) {
    assert.equal(await refusal(`/agents/counter/${name}`), 400, name);
  }
});

test("the server says that it is alive and ready", limits, async () => {
  for (const target of ["/healthz", "/readyz"]) {
    const response = await fetch(`http://${server.host}${target}`);
    assert.equal(response.status, 200, target);
    await response.arrayBuffer();
  }
});
