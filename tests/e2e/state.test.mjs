// State: written by clients and by the agent, sent to every client but the writer.

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

// Connected, and past everything that the handshake sends.
async function settled(t, version, options) {
  const connected = connect(t, version, server, options);
  await connected.client.ready;
  await connected.client.call(options.agent === "Counter" ? "get" : "tags");
  return connected;
}

for (const version of versions) {
  describe(`state with ${version.name}`, () => {
    test("a write reaches the other client once and not its writer", limits, async (t) => {
      const address = { agent: "Counter", name: freshName("both") };
      const writer = await settled(t, version, address);
      const reader = await settled(t, version, address);

      writer.client.setState({ count: 41 });
      await reader.updates.waitFor(([state]) => state.count === 41);
      assert.equal(await reader.client.call("get"), 41);
      assert.equal(await writer.client.call("get"), 41);

      assert.deepEqual(writer.updates.entries, [
        [{ count: 0 }, "server"],
        [{ count: 41 }, "client"],
      ]);
      assert.deepEqual(reader.updates.entries, [
        [{ count: 0 }, "server"],
        [{ count: 41 }, "server"],
      ]);
    });

    test("two sockets with one id are told of each other's writes", limits, async (t) => {
      const address = { agent: "Counter", name: freshName("twins"), id: "same-id" };
      const writer = await settled(t, version, address);
      const twin = await settled(t, version, address);
      writer.client.setState({ count: 5 });
      await twin.updates.waitFor(([state, source]) => state.count === 5 && source === "server");
    });

    test("the agent's own change reaches the caller before the answer", limits, async (t) => {
      const { client, updates } = await settled(t, version, { agent: "Counter", name: freshName("own") });
      assert.equal(await client.call("increment"), 1);
      assert.deepEqual(updates.entries.at(-1), [{ count: 1 }, "server"]);
      assert.equal(await client.call("increment", [4]), 5);
      assert.deepEqual(updates.entries.at(-1), [{ count: 5 }, "server"]);
      assert.equal(updates.length, 3);
    });

    test("state may be any JSON value", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("any") };
      const writer = await settled(t, version, address);
      const reader = await settled(t, version, address);
      for (const state of [null, false, 0, "", [], {}, { deep: [{ "ключ": "\u0000\u2028🔥" }] }]) {
        const seen = reader.updates.length;
        writer.client.setState(state);
        await reader.updates.waitForCount(seen + 1);
        assert.deepEqual(reader.updates.entries.at(-1), [state, "server"]);
      }
    });

    test("a newcomer sees what was written before it came", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("late") };
      const first = await settled(t, version, address);
      await first.client.call("set", [{ topic: "tea" }]);
      const late = await settled(t, version, address);
      assert.deepEqual(late.updates.entries, [[{ topic: "tea" }, "server"]]);
    });

    test("a readonly connection reads, calls, and may not write", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("readonly") };
      const reader = await settled(t, version, { ...address, query: { readonly: "1" } });
      const writer = await settled(t, version, address);

      reader.client.setState({ mine: true });
      assert.equal(await reader.stateErrors.waitFor(), "Connection is readonly");
      assert.equal(await reader.client.call("add", [2, 3]), 5);
      await assert.rejects(reader.client.call("set", [{ mine: true }]), { message: "Connection is readonly" });

      writer.client.setState({ theirs: true });
      await reader.updates.waitFor(([state, source]) => state?.theirs && source === "server");
      await writer.client.call("tags");
      assert.deepEqual(
        writer.updates.entries.filter(([state]) => state?.mine),
        [],
      );
      assert.equal(reader.stateErrors.length, 1);
    });

    test("a refused write is taken back at its writer alone", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("refused") };
      const writer = await settled(t, version, address);
      const reader = await settled(t, version, address);
      writer.client.setState({ topic: "tea" });
      await reader.updates.waitFor(([state]) => state?.topic === "tea");

      const seen = reader.updates.length;
      writer.client.setState({ forbidden: true });
      assert.deepEqual(writer.client.state, { forbidden: true }, "the client expects no refusal");
      assert.equal(await writer.stateErrors.waitFor(), "State update rejected");
      await writer.updates.waitFor(([state, source]) => state?.topic === "tea" && source === "server");
      assert.deepEqual(writer.client.state, { topic: "tea" });
      await reader.client.call("tags");
      assert.equal(reader.updates.length, seen);
    });

    test("a client without a state forgets what it was not allowed to write", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("forgets"), query: { readonly: "1" } };
      const { client, stateErrors, updates } = await settled(t, version, address);
      client.setState({ mine: true });
      assert.equal(await stateErrors.waitFor(), "Connection is readonly");
      await updates.waitFor(([state, source]) => state === undefined && source === "server");
      assert.equal(client.state, undefined);
      client.setState({ forbidden: true }); // readonly is the reason that counts
      await stateErrors.waitForCount(2);
      assert.equal(stateErrors.entries[1], "Connection is readonly");
    });

    test("a connection may become readonly, and is so until the agent says otherwise", limits, async (t) => {
      const address = { agent: "ProbeAgent", name: freshName("later") };
      const { client, stateErrors } = await settled(t, version, address);
      await client.call("set_readonly", [true]);
      await client.call("set_attachment", [{ nick: "ada" }]);
      client.call("evict").catch(() => {});
      assert.deepEqual(await client.call("get_attachment"), { nick: "ada" });
      client.setState({ mine: 1 });
      assert.equal(await stateErrors.waitFor(), "Connection is readonly");

      await client.call("set_readonly", [false]);
      client.setState({ mine: 2 });
      assert.deepEqual(await client.call("get"), { mine: 2 });
      assert.equal(stateErrors.length, 1);
      assert.deepEqual(await client.call("get_attachment"), { nick: "ada" });
    });
  });
}
