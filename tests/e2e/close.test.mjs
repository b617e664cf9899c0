// Closes: which stop a client, which bring it back, and what each refusal looks like.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, openSocket, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 20_000 };
let server;
before(async () => {
  server = await startServer();
});
after(async () => {
  await server?.dispose();
});

for (const version of versions) {
  describe(`closes with ${version.name}`, () => {
    for (const code of [1008, 4000, 4401]) {
      test(`${code} from the agent stops the client`, limits, async (t) => {
        const { client, refusals, closes } = connect(t, version, server, {
          agent: "ProbeAgent",
          name: freshName("refused"),
          query: { close: String(code) },
        });
        const error = await refusals.waitFor();
        assert.equal(error.code, code);
        assert.equal(error.reason, "asked");
        assert.equal(client.shouldReconnect, false);
        assert.equal(closes.length, 1);
        await assert.rejects(client.call("add", [1, 2]), { message: "Connection closed" });
      });
    }

    test("after 1012 the client is back at its first attempt, about three seconds later, with the same id", limits, async (t) => {
      const { client, opens, closes, failures, refusals } = connect(t, version, server, {
        agent: "ProbeAgent",
        name: freshName("restart"),
      });
      const tags = await client.call("tags");
      assert.ok(tags.includes(client.id), `${client.id} is among ${tags}`);

      client.call("close_me", [1012, "be right back"]).catch(() => {}); // its answer may be lost
      const closed = await closes.waitFor();
      assert.deepEqual([closed.code, closed.reason], [1012, "be right back"]);

      await client.ready;
      const away = opens.entries[1].at - closed.at;
      assert.ok(away > 2_500, `away for ${away} ms`);
      assert.deepEqual([opens.length, closes.length, failures.length], [2, 1, 0]);
      assert.deepEqual(await client.call("tags"), tags);
      assert.equal(refusals.length, 0);
    });

    test("an unknown class stops the client with 4404", limits, async (t) => {
      const { client, refusals } = connect(t, version, server, { agent: "NoSuchAgent", name: "a" });
      const error = await refusals.waitFor();
      assert.equal(error.code, 4404);
      assert.notEqual(error.reason, "");
      assert.equal(client.shouldReconnect, false);
    });

    for (const [what, name] of [
      ["10 kB long", "n".repeat(10_000)],
      ["with a NUL", "a%00b"],
      ["that is not UTF-8", "%FF%FE"],
    ]) {
      test(`a name ${what} stops the client with 4400`, limits, async (t) => {
        const { client, refusals } = connect(t, version, server, { agent: "Counter", name });
        const error = await refusals.waitFor();
        assert.equal(error.code, 4400);
        assert.equal(client.shouldReconnect, false);
      });
    }

    test("a destroyed agent answers, then stops its clients with 4410, and its name is free again", limits, async (t) => {
      const name = freshName("destroyed");
      const { client, refusals, closes, opens } = connect(t, version, server, { agent: "ProbeAgent", name });
      const other = connect(t, version, server, { agent: "ProbeAgent", name });
      await client.call("set", [{ kept: true }]);
      await other.client.ready;
      assert.equal(await client.call("destroy"), "destroyed");
      for (const errors of [refusals, other.refusals]) {
        const error = await errors.waitFor();
        assert.deepEqual([error.code, error.reason], [4410, "the agent was destroyed"]);
      }
      assert.equal(client.shouldReconnect, false);
      assert.deepEqual([opens.length, closes.length], [1, 1]);

      const next = connect(t, version, server, { agent: "ProbeAgent", name });
      assert.equal(await next.client.call("get"), null);
    });

    test("the client closes and nothing is left waiting", limits, async (t) => {
      const { client, closes } = connect(t, version, server, { agent: "ProbeAgent", name: freshName("leave") });
      await client.ready;
      const lost = client.call("slow", [5_000]);
      client.close(1000, "done");
      await assert.rejects(lost, { message: "Connection closed" });
      assert.equal((await closes.waitFor()).code, 1000);
    });
  });
}

test("a close of the peer is echoed", limits, async (t) => {
  const { socket, closed } = await openSocket(t, server, `/agents/counter/${freshName("echo")}`);
  socket.close(4123, "bye");
  assert.equal((await closed).code, 4123);
});

test("another transport is refused so that the client stops", limits, async (t) => {
  const { closed } = await openSocket(t, server, `/agents/counter/${freshName("cw")}?__agents_transport=capnweb`);
  assert.equal((await closed).code, 1008);
});

test("a text frame that is not UTF-8 closes with 1007", limits, async (t) => {
  const { socket, closed } = await openSocket(t, server, `/agents/counter/${freshName("utf8")}`);
  socket.send(Buffer.from([0x61, 0xff, 0x62]), { binary: false });
  assert.equal((await closed).code, 1007);
});
