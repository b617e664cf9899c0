// The server stops or is killed, and starts again: nothing acknowledged is missing.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 45_000 };
// The clients' own first wait of 3 s is tested with the closes; here it would only cost time.
const eager = { minReconnectionDelay: 100, maxReconnectionDelay: 500 };

for (const version of versions) {
  describe(`restart with ${version.name}`, () => {
    let server;
    before(async () => {
      server = await startServer();
    });
    after(async () => {
      await server?.dispose();
    });

    test("calls made before the socket is open are answered", limits, async (t) => {
      const { client, opens } = connect(t, version, server, { agent: "Counter", name: freshName("early") });
      const calls = [client.call("increment"), client.call("increment", [10]), client.call("get")];
      assert.equal(opens.length, 0);
      assert.deepEqual(await Promise.all(calls), [1, 11, 11]);
    });

    test("after kill -9 the state is intact and the client comes back by itself", limits, async (t) => {
      const address = { agent: "Counter", name: freshName("killed"), ...eager };
      const { client, opens, closes } = connect(t, version, server, address);
      let acknowledged = 0;
      for (let i = 0; i < 50; ++i) acknowledged = await client.call("increment");
      assert.equal(acknowledged, 50);

      await server.kill();
      await closes.waitFor();
      const early = client.call("increment"); // made while there is no server
      await server.start();

      assert.equal(await early, 51);
      assert.equal(opens.length, 2);
      assert.equal(await client.call("get"), 51);
      assert.deepEqual(client.state, { count: 51 });
    });

    test("a kill among increments loses none that was acknowledged", limits, async (t) => {
      const address = { agent: "Counter", name: freshName("stream"), ...eager };
      const { client, closes } = connect(t, version, server, address);
      await client.ready;
      let acknowledged = 0;
      let killed;
      const calls = [];
      for (let i = 0; i < 2_000; ++i) {
        const call = client.call("increment").then((count) => {
          acknowledged = Math.max(acknowledged, count);
          if (acknowledged === 300) killed = server.kill();
        });
        calls.push(call.catch(() => {}));
      }
      await closes.waitFor();
      await Promise.all(calls);
      assert.ok(acknowledged >= 300);
      await killed; // its sockets close a moment before it lets go of its data
      await server.start();
      const count = await client.call("get");
      assert.ok(count >= acknowledged && count <= 2_000, `${count}, of ${acknowledged} acknowledged`);
    });

    test("a run goes on from its checkpoint after kill -9, and the client sees it end", limits, async (t) => {
      const address = { agent: "Research", name: freshName("run"), ...eager };
      const { client, updates } = connect(t, version, server, address);
      const run = await client.call("start", ["hearths", 12, 60]);
      const progress = (state) => state?.runs?.[run];
      await updates.waitFor(([state]) => progress(state)?.completed >= 3);
      await server.kill();
      await server.start();
      await updates.waitFor(([state]) => progress(state)?.status === "completed");
      const end = await client.call("status", [run]);
      assert.equal(end.completed, 12);
      assert.equal(end.recoveries, 1);
      assert.deepEqual(await client.call("steps", [run]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    });

    test("the id of the connection outlives a kill of the server", limits, async (t) => {
      const { client, closes } = connect(t, version, server, {
        agent: "ProbeAgent",
        name: freshName("id"),
        ...eager,
      });
      const tags = await client.call("tags");
      assert.ok(tags.includes(client.id));
      await server.kill();
      await closes.waitFor();
      await server.start();
      assert.deepEqual(await client.call("tags"), tags);
    });

    test("SIGTERM says 1001 to clients, ends with success, and loses nothing", limits, async (t) => {
      const address = { agent: "Counter", name: freshName("stopped"), ...eager };
      const { client, closes } = connect(t, version, server, address);
      assert.equal(await client.call("increment", [7]), 7);
      const [end, closed] = await Promise.all([server.stop(), closes.waitFor()]);
      assert.deepEqual(end, { code: 0, signal: null });
      assert.equal(closed.code, 1001);
      await server.start();
      assert.equal(await client.call("get"), 7);
    });
  });
}
