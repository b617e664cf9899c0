// Calls: values, errors, many at once, and streams.

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

// Calls a streaming method and returns the values of its callbacks and its promise.
async function stream(client, method, args) {
  const got = { chunks: [], done: [], errors: [] };
  const options = {
    onChunk: (chunk) => got.chunks.push(chunk),
    onDone: (value) => got.done.push(value),
    onError: (error) => got.errors.push(error),
  };
  [got.outcome] = await Promise.allSettled([client.call(method, args, options)]);
  return got;
}

for (const version of versions) {
  describe(`calls with ${version.name}`, () => {
    const probe = (t) => connect(t, version, server, { agent: "ProbeAgent", name: freshName("calls") }).client;
    const counter = (t) => connect(t, version, server, { agent: "Counter", name: freshName("calls") }).client;

    test("a call answers with its value", limits, async (t) => {
      assert.equal(await probe(t).call("add", [1, 2]), 3);
    });

    test("the stub calls by name", limits, async (t) => {
      assert.equal(await probe(t).stub.add(20, 22), 42);
    });

    test("nothing and null are two answers", limits, async (t) => {
      const client = probe(t);
      assert.equal(await client.call("nothing"), undefined);
      assert.equal(await client.call("null_value"), null);
      assert.equal(await client.call("value_or_nothing", [7]), 7);
      assert.equal(await client.call("value_or_nothing"), undefined);
    });

    test("any value comes back as it was sent", limits, async (t) => {
      const client = counter(t);
      const values = [0, -1.5, 1e300, true, "", "\u0000\"\\\n🔥", [], {}, [[[]]], { a: { b: [null] } }, "x".repeat(200_000)];
      for (const value of values) assert.deepEqual(await client.call("echo", [value]), value);
    });

    test("an error for clients rejects with its message and nothing else", limits, async (t) => {
      const message = 'boom: "quoted"\nand é';
      const error = await probe(t).call("refuse", [message]).catch((reason) => reason);
      assert.equal(error.message, message);
    });

    test("anything else that is thrown rejects with the trace that the log has", limits, async (t) => {
      for (const method of ["fail", "fail_oddly"]) {
        const line = server.nextLine(/agent\.call_failed/);
        const error = await probe(t).call(method, ["a secret"]).catch((reason) => reason);
        const [, trace] = /^the method failed \(trace ([0-9a-f]{32})\)$/.exec(error.message);
        assert.ok((await line).includes(trace), error.message);
      }
    });

    test("a value that JSON cannot hold is answered all the same", limits, async (t) => {
      const client = probe(t);
      await assert.rejects(client.call("bad_text"), /^Error: the method failed/);
      assert.equal(await client.call("not_a_number"), null);
    });

    test("an answer that comes too late harms nobody", limits, async (t) => {
      const { client, frames } = connect(t, version, server, { agent: "ProbeAgent", name: freshName("late") });
      await client.ready;
      const late = client.call("slow", [300], { timeout: 50 });
      await assert.rejects(late, { message: "RPC call to slow timed out after 50ms" });
      await frames.waitFor((frame) => frame.includes('"result":300'));
      assert.equal(await client.call("add", [1, 2]), 3);
    });

    test("arguments beyond those of the method are ignored", limits, async (t) => {
      assert.equal(await probe(t).call("add", [1, 2, 3, { four: 4 }]), 3);
    });

    test("a stream may be empty, and fail before its first part", limits, async (t) => {
      const got = await stream(probe(t), "stream_fail", [0]);
      assert.deepEqual(got.chunks, []);
      assert.equal(got.outcome.status, "rejected");
      assert.deepEqual(got.errors, [got.outcome.reason.message]);
      assert.equal((await stream(counter(t), "count_to", [0, 0])).outcome.status, "fulfilled");
    });

    test("a plain method may be called as a stream, and a stream may fail without listeners", limits, async (t) => {
      const got = await stream(probe(t), "add", [1, 2]);
      assert.deepEqual(got, { chunks: [], done: [3], errors: [], outcome: { status: "fulfilled", value: 3 } });
      await assert.rejects(probe(t).call("stream_fail", [2]));
    });

    test("unknown and unexported methods cannot be told apart", limits, async (t) => {
      const client = probe(t);
      for (const method of ["nope", "hidden", "on_connect", "toString", "__proto__", ""]) {
        await assert.rejects(client.call(method), { message: `Method ${method} does not exist` });
      }
    });

    test("wrong arguments reject and the next call works", limits, async (t) => {
      const client = probe(t);
      await assert.rejects(client.call("add", ["one", {}]));
      await assert.rejects(client.call("add", []));
      assert.equal(await client.call("add", [1, 1]), 2);
    });

    test("25 calls at once are each answered with their own value", limits, async (t) => {
      const client = probe(t);
      const numbers = Array.from({ length: 25 }, (_, i) => i);
      assert.deepEqual(
        await Promise.all(numbers.map((n) => client.call("add", [n, 1000]))),
        numbers.map((n) => n + 1000),
      );
    });

    test("a slow call does not hold up a quick one", limits, async (t) => {
      const client = probe(t);
      const order = [];
      await Promise.all([
        client.call("slow", [400]).then(() => order.push("slow")),
        client.call("add", [1, 1]).then(() => order.push("quick")),
      ]);
      assert.deepEqual(order, ["quick", "slow"]);
    });

    test("a stream gives its chunks in order and then its value", limits, async (t) => {
      const got = await stream(counter(t), "count_to", [5, 1]);
      assert.deepEqual(got, {
        chunks: [1, 2, 3, 4, 5],
        done: [5],
        errors: [],
        outcome: { status: "fulfilled", value: 5 },
      });
    });

    test("a stream without listeners resolves to its value", limits, async (t) => {
      assert.equal(await counter(t).call("count_to", [3, 0]), 3);
    });

    test("two streams run side by side", limits, async (t) => {
      const client = counter(t);
      const [long, short] = await Promise.all([
        stream(client, "count_to", [8, 2]),
        stream(client, "count_to", [3, 2]),
      ]);
      assert.deepEqual(long.chunks, [1, 2, 3, 4, 5, 6, 7, 8]);
      assert.deepEqual(short.chunks, [1, 2, 3]);
    });

    test("a stream that fails keeps its chunks and rejects", limits, async (t) => {
      const client = probe(t);
      const got = await stream(client, "stream_fail", [3]);
      assert.equal(got.chunks.length, 3);
      assert.equal(got.outcome.status, "rejected");
      assert.deepEqual(got.errors, [got.outcome.reason.message]);
      assert.notEqual(got.errors[0], "");
      assert.deepEqual(got.done, []);
      assert.equal(await client.call("add", [1, 1]), 2);
    });

    test("a client that leaves during a stream harms nobody", limits, async (t) => {
      const name = freshName("leaver");
      const leaver = connect(t, version, server, { agent: "Counter", name });
      const chunks = leaver.frames;
      const lost = leaver.client.call("count_to", [100_000, 1], { onChunk: () => {} });
      await chunks.waitFor((frame) => frame.includes('"done":false'));
      leaver.client.close();
      await assert.rejects(lost, { message: "Connection closed" });

      const other = connect(t, version, server, { agent: "Counter", name });
      assert.equal(await other.client.call("increment"), 1);
    });
  });
}

test("an answer echoes any id, and carries no more than it should", limits, async (t) => {
  const { socket, frames } = await openSocket(t, server, `/agents/probe-agent/${freshName("raw")}`);
  const call = (id, method, args) => {
    socket.send(JSON.stringify({ type: "rpc", id, method, args, extra: { ignored: [1] } }));
    return frames.waitFor(isRpcAnswer(id)).then(JSON.parse);
  };
  const id = '"\\\u0000\n é 🔥';
  assert.deepEqual(await call(id, "add", [1, 2]), { type: "rpc", id, success: true, done: true, result: 3 });
  assert.deepEqual(await call("", "nothing", []), { type: "rpc", id: "", success: true, done: true });
  assert.deepEqual(await call("e", "refuse", ["why"]), { type: "rpc", id: "e", success: false, error: "why" });
});
