// Agents below agents, as the real clients reach them: by a path behind the path of the agent
// above.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 20_000 };
// The clients' own first wait of 3 s is tested with the closes; here it would only cost time.
const eager = { minReconnectionDelay: 100, maxReconnectionDelay: 500 };
let server;
before(async () => {
  server = await startServer();
});
after(async () => {
  await server?.dispose();
});

for (const version of versions) {
  describe(`sub-agents with ${version.name}`, () => {
    test("one has a class, a name and a state of its own", limits, async (t) => {
      const name = freshName("inbox");
      const above = connect(t, version, server, { agent: "ProbeAgent", name });
      await above.client.ready;
      const below = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/counter/mon%2Fday" });
      await below.client.ready;
      assert.deepEqual(below.identities.entries, [["mon/day", "counter"]]);
      assert.equal(await below.client.call("increment", [5]), 5);
      assert.deepEqual(below.client.state, { count: 5 });
      assert.deepEqual(await above.client.call("below"), ["Counter mon/day"]);
      assert.equal(above.client.state, undefined, "the state of one is no affair of the other");

      const root = connect(t, version, server, { agent: "Counter", name: "mon%2Fday" });
      await root.client.ready;
      assert.equal(await root.client.call("get"), 0, "one of the same name that is below nobody is another");
    });

    test("two clients of one share its state, and it survives a kill", limits, async (t) => {
      const name = freshName("shared");
      const options = { agent: "ProbeAgent", name, path: "sub/probe-agent/a/sub/counter/deep", ...eager };
      const one = connect(t, version, server, options);
      const two = connect(t, version, server, options);
      await Promise.all([one.client.ready, two.client.ready]);
      one.client.setState({ count: 41 });
      await two.updates.waitFor(([state]) => state?.count === 41);
      await server.kill();
      await server.start();
      await two.identities.waitForCount(2);
      assert.equal(await two.client.call("increment", [1]), 42);
    });

    test("an agent calls those below it, and the one above it", limits, async (t) => {
      const name = freshName("family");
      const above = connect(t, version, server, { agent: "ProbeAgent", name });
      const below = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/probe-agent/child" });
      await Promise.all([above.client.ready, below.client.ready]);
      assert.equal(await above.client.call("ask_below", ["Counter", "new/one", 3]), 3);
      assert.deepEqual(await above.client.call("below"), ["ProbeAgent child", "Counter new/one"]);
      assert.equal(await below.client.call("ask_above", [1, 2]), 3);
      await assert.rejects(above.client.call("ask_above", [1, 2]), /the method failed/);
    });

    test("who is refused by the agent above stops", limits, async (t) => {
      const name = freshName("gate");
      const refused = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/counter/forbidden" });
      await refused.closes.waitForCount(1);
      const [{ code, reason }] = refused.closes.entries;
      assert.equal(code, 4403);
      assert.equal(reason, "Sub-agent connection rejected (403)");
      const allowed = connect(t, version, server, {
        agent: "ProbeAgent",
        name,
        path: "sub/counter/forbidden",
        query: { key: "open" },
      });
      await allowed.client.ready;
      assert.equal(await allowed.client.call("increment", [1]), 1);
      assert.equal(refused.closes.length, 1, "it has not come back");
    });

    test("the agent above answers with a response of its own", limits, async (t) => {
      const name = freshName("door");
      const response = await fetch(`http://${server.host}/agents/probe-agent/${name}/sub/counter/locked`);
      assert.equal(response.status, 401);
      assert.equal(response.headers.get("WWW-Authenticate"), 'Bearer realm="inbox"');
      assert.equal(await response.text(), "sign in first");
      const refused = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/counter/locked" });
      await refused.closes.waitForCount(1);
      const [{ code, reason }] = refused.closes.entries;
      assert.equal(code, 4401);
      assert.equal(reason, "Sub-agent connection rejected (401)");
    });

    test("the clients of one that is destroyed stop", limits, async (t) => {
      const name = freshName("end");
      const above = connect(t, version, server, { agent: "ProbeAgent", name });
      const below = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/counter/c" });
      const deeper = connect(t, version, server, { agent: "ProbeAgent", name, path: "sub/counter/c/sub/probe-agent/p" });
      await Promise.all([above.client.ready, below.client.ready, deeper.client.ready]);
      assert.equal(await deeper.client.call("path"), `/ProbeAgent ${name}/Counter c/ProbeAgent p`);
      assert.equal(await above.client.call("destroy_below", ["Counter", "c"]), true);
      await below.closes.waitForCount(1);
      await deeper.closes.waitForCount(1);
      assert.equal(below.closes.entries[0].code, 4410);
      assert.equal(deeper.closes.entries[0].code, 4410);
      assert.deepEqual(await above.client.call("below"), []);
    });
  });
}
