// Which npm clients may connect, and by which paths, without a proxy before the server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";
import { guardedConfig, tokenFor } from "./tokens.mjs";

const limits = { timeout: 20_000 };

let server;
before(async () => {
  server = await startServer((root) => guardedConfig(root, "https://app.example"));
});
after(() => server?.dispose());

for (const version of versions) {
  describe(version.name, () => {
    const reach = (t, options) => connect(t, version, server, { agent: "Counter", ...options });

    test("a token in the query lets it in", limits, async (t) => {
      const name = freshName("edge");
      const { client, identities } = reach(t, { name, query: { token: tokenFor(name) } });
      await identities.waitFor();
      assert.equal(await client.call("increment", [3]), 3);
    });

    test("a prefix and a path that the server chooses the agent for lead to it", limits, async (t) => {
      const name = freshName("edge");
      for (const basePath of [`api/agents/counter/${name}`, `custom-state/${name}`, "user"]) {
        const { identities } = reach(t, { basePath, query: async () => ({ token: tokenFor(name) }) });
        assert.deepEqual(await identities.waitFor(), [name, "counter"], basePath);
      }
    });

    test("stops without a token, and with that of another", limits, async (t) => {
      const name = freshName("edge");
      for (const [query, code] of [
        [{}, 4401],
        [{ token: tokenFor(name, -1) }, 4401],
        [{ token: tokenFor("another") }, 4403],
      ]) {
        const { closes, opens } = reach(t, { name, query });
        assert.equal((await closes.waitFor()).code, code);
        assert.equal(opens.length, 1, "it did not come back");
      }
    });

    test("is closed when the token expires", limits, async (t) => {
      const name = freshName("edge");
      const { identities, closes } = reach(t, { name, query: { token: tokenFor(name, 2) } });
      await identities.waitFor();
      assert.equal((await closes.waitFor()).code, 4401);
    });

    test("requests carry it in a header or in the query", limits, async () => {
      const name = freshName("edge");
      const ask = async (options, headers) =>
        (await version.agentFetch({ agent: "Counter", name, host: server.host, ...options }, { headers })).status;
      assert.equal(await ask({}, {}), 401);
      assert.equal(await ask({}, { Authorization: `Bearer ${tokenFor(name)}` }), 200);
      assert.equal(await ask({ query: { token: tokenFor(name) } }, {}), 200);
      assert.equal(await ask({}, { Authorization: `Bearer ${tokenFor("another")}` }), 403);
    });
  });
}
