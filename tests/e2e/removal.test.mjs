// A library is removed and put back while clients are connected: the clients reconnect by
// themselves, to the agents they had.

import assert from "node:assert/strict";
import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { bundledPlugins, startServer } from "./server.mjs";

const limits = { timeout: 60_000 };
// The clients' own first wait of 3 s is tested with the closes; here it would only cost time.
const eager = { minReconnectionDelay: 100, maxReconnectionDelay: 500 };

for (const version of versions) {
  describe(`removing a library with ${version.name}`, () => {
    let server;
    let plugins;
    const install = async () => {
      const temporary = path.join(plugins, ".counter.new");
      await copyFile(path.join(bundledPlugins, "counter.so"), temporary);
      await rename(temporary, path.join(plugins, "counter.so"));
    };
    const remove = () => rm(path.join(plugins, "counter.so"));
    const start = (grace) =>
      startServer(async (directory) => {
        plugins = path.join(directory, "plugins");
        await mkdir(plugins);
        await install();
        return { plugins: [plugins], config: `reload: {quiet_time: 50ms, removal_grace: ${grace}}\n` };
      });
    const putBack = async () => {
      const done = server.nextLine(/reload\.done/, /reload\.taken_back|plugin\.refused/);
      await install();
      await done;
    };
    // The client itself says when it is connected to its agent again, not only to the server.
    const identified = (connection, times) => connection.identities.waitForCount(times);

    describe("for longer than the grace", () => {
      before(async () => {
        server = await start("200ms");
      });
      after(async () => {
        await server?.dispose();
      });

      test("the same client is back when the library is, and the agent has its data", limits, async (t) => {
        const address = { agent: "Counter", name: freshName("removed"), ...eager };
        const connection = connect(t, version, server, address);
        const { client, closes, failures, refusals } = connection;
        assert.equal(await client.call("increment"), 1);

        await remove();
        assert.equal((await closes.waitFor()).code, 1012);
        await failures.waitForCount(2); // it has asked again, twice
        assert.equal(client.shouldReconnect, true);
        const meanwhile = client.call("increment");
        await failures.waitForCount(failures.length + 1);

        await putBack();
        assert.equal(await meanwhile, 2);
        await identified(connection, 2);
        assert.deepEqual(client.state, { count: 2 });
        assert.equal(refusals.length, 0);
      });

      test("so is one that was not there before, and one whose server was started meanwhile", limits, async (t) => {
        const name = freshName("restarted");
        const first = connect(t, version, server, { agent: "Counter", name, ...eager });
        assert.equal(await first.client.call("increment"), 1);

        await server.stop();
        await remove();
        await server.start();
        const second = connect(t, version, server, { agent: "Counter", name, ...eager });
        for (const { failures } of [first, second]) await failures.waitFor();

        await putBack();
        await identified(first, 2);
        await identified(second, 1);
        assert.equal(await first.client.call("increment"), 2);
        assert.equal(await second.client.call("increment"), 3);
        assert.deepEqual([first.refusals.length, second.refusals.length], [0, 0]);
      });
    });

    describe("for less than the grace", () => {
      before(async () => {
        server = await start("5m");
      });
      after(async () => {
        await server?.dispose();
      });

      test("who was connected only waits, and who comes meanwhile is let in afterwards", limits, async (t) => {
        const name = freshName("awaited");
        const first = connect(t, version, server, { agent: "Counter", name, ...eager });
        assert.equal(await first.client.call("increment"), 1);
        const removed = server.nextLine(/reload\.removed/);
        await remove();
        await removed;

        const waiting = first.client.call("increment");
        const second = connect(t, version, server, { agent: "Counter", name, ...eager });
        await second.failures.waitFor();

        await putBack();
        assert.equal(await waiting, 2);
        assert.deepEqual([first.closes.length, first.opens.length], [0, 1]);
        await identified(second, 1);
        assert.equal(await second.client.call("increment"), 3);
        assert.equal(second.refusals.length, 0);
      });
    });
  });
}
