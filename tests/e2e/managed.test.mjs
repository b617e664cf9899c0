// Managed fibers, the queue and schedules of an agent in C++, on the real server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 45_000 };
const version = versions.at(-1); // this test does not depend on the client
const eager = { minReconnectionDelay: 50, maxReconnectionDelay: 200 };

// Asks `agent` until `holds` likes the answer.
async function until(client, method, args, holds) {
  for (;;) {
    const answer = await client.call(method, args);
    if (holds(answer)) return answer;
  }
}

// Fibers are told apart by the millisecond in which they began.
async function anotherMillisecond() {
  for (const begun = Date.now(); Date.now() <= begun + 1; ) await new Promise(setImmediate);
}

describe("durable work in C++", () => {
  let server;
  before(async () => {
    server = await startServer();
  });
  after(async () => {
    await server?.dispose();
  });
  const agent = (t, hint) => connect(t, version, server, { agent: "DurableAgent", name: freshName(hint), ...eager });

  test("a managed fiber is accepted once, waited for, and told", limits, async (t) => {
    const { client } = agent(t, "once");
    const { accepted, record } = await client.call("begin", ["work", "key", { steps: 3 }]);
    assert.equal(accepted, true);
    assert.equal(record.status, "pending");
    const [first, second] = await Promise.all([client.call("wait", [record.id]), client.call("wait", [record.id])]);
    assert.deepEqual(first, second);
    assert.equal(first.status, "completed");
    assert.equal(first.result, `done by ${record.id}`);
    assert.equal(first.snapshot, 3);
    assert.equal((await client.call("begin", ["work", "key", { steps: 3 }])).accepted, false);
    await assert.rejects(client.call("begin", ["work", "key", { steps: 4 }]));
    const journal = await until(client, "journal", [], (lines) => lines.length === 4);
    assert.deepEqual(journal, ["work 1", "work 2", "work 3", "told work completed"]);
  });

  test("a cancel releases who waits, and the work's late end changes nothing", limits, async (t) => {
    const { client } = agent(t, "cancel");
    const { record } = await client.call("begin", ["work", null, { steps: 2, ms: 50 }]);
    const waiting = client.call("wait", [record.id]);
    assert.equal(await client.call("cancel", [record.id, "enough"]), true);
    assert.equal((await waiting).error, "enough");
    assert.equal(await client.call("cancel", [record.id, "again"]), false);
    const { record: other } = await client.call("begin", ["other", null, { ms: 100 }]);
    await client.call("wait", [other.id]); // later than the end of the cancelled one
    assert.equal((await client.call("inspect", [record.id])).status, "aborted");
  });

  test("failed work begins again with its function, from its checkpoint", limits, async (t) => {
    const { client } = agent(t, "retry");
    const work = { steps: 3, failures: 2, max_retries: 2 };
    const { record } = await client.call("begin", ["work", null, work]);
    const end = await client.call("wait", [record.id]);
    assert.equal(end.status, "completed");
    assert.equal(end.failures, 2);
    const journal = await client.call("journal");
    assert.deepEqual(journal.slice(0, 3), ["work 1", "work 2", "work 3"]); // and the hook was not asked

    const hopeless = await client.call("begin", ["hopeless", null, { steps: 9, failures: 9, max_retries: 1 }]);
    const failed = await client.call("wait", [hopeless.record.id]);
    assert.equal(failed.status, "error");
    assert.equal(failed.error, "the work failed as asked");
    assert.equal(failed.failures, 2);
  });

  test("after kill -9 each fiber meets its hook, in the order of the class", limits, async (t) => {
    const { client } = agent(t, "kill");
    const begin = async (name, hook) => (await client.call("begin", [name, name, { steps: 3, ms: 300, hook }])).record.id;
    const settled = await begin("settled", "settle");
    await anotherMillisecond();
    const left = await begin("left", "nothing");
    await anotherMillisecond();
    const continued = await begin("continued", "continue");
    await until(client, "inspect", [continued], (record) => record.snapshot === 1);
    await server.kill();
    await server.start();

    const end = await client.call("wait", [continued]);
    assert.equal(end.status, "completed");
    assert.equal((await client.call("wait", [settled])).result, "by the hook");
    assert.equal((await client.call("wait", [left])).status, "interrupted");
    const journal = (await client.call("journal")).filter((line) => /^(planned|offered)/.test(line));
    assert.deepEqual(journal, [
      "planned 3",
      "offered continued interrupted 1",
      "offered left interrupted 1",
      "offered settled interrupted 1",
    ]);
    assert.equal(await client.call("resolve", [left, "by hand"]), true);
    assert.equal((await client.call("inspect", [left])).result, "by hand");
    assert.equal(await client.call("forget"), 3);
    assert.deepEqual(await client.call("list"), []);
  });

  test("a retry that a kill came before is offered to the hook", limits, async (t) => {
    const { client } = agent(t, "later");
    const work = { steps: 2, failures: 1, max_retries: 3 };
    const { record } = await client.call("begin", ["work", null, work]);
    await until(client, "inspect", [record.id], ({ failures }) => failures === 1);
    await server.kill();
    await server.start();
    assert.equal((await client.call("wait", [record.id])).status, "completed");
    const journal = await client.call("journal");
    assert.ok(journal.some((line) => /^offered work (retry|interrupted)/.test(line)) || !journal.includes("work 3"));
  });

  test("the queue keeps its order over failures, and a dead letter is out of the way", limits, async (t) => {
    const { client } = agent(t, "queue");
    await client.call("push", ["flaky", "a"]);
    const dead = await client.call("push", ["hopeless", null]);
    await assert.rejects(client.call("push", ["no such callback", null]), /Callback no such callback does not exist/);
    await client.call("push", ["note", "b"]);
    const journal = await until(client, "journal", [], (lines) => lines.includes("b"));
    assert.deepEqual(journal, ["attempt 1 of a", "attempt 2 of a", "attempt 3 of a", "b"]);
    const items = await until(client, "items", [], (all) => all.length === 1);
    assert.deepEqual(items.map(({ id, state }) => [id, state]), [[dead, "dead"]]);
    assert.equal(items[0].attempts, 3);
    assert.equal(items[0].last_error, "hopeless");
    assert.equal(await client.call("again", [dead]), true);
  });

  test("schedules come in order, also over kill -9, and a missing callback is refused", limits, async (t) => {
    const { client } = agent(t, "schedule");
    await client.call("later", ["note", 300, "second"]);
    await client.call("later", ["note", 200, "first"]);
    await assert.rejects(client.call("later", ["not yet", 0, null]), /Callback not yet does not exist/);
    await server.kill();
    await server.start();
    const journal = await until(client, "journal", [], (lines) => lines.length === 2);
    assert.deepEqual(journal, ["first", "second"]);
    await until(client, "schedules", [], (all) => all.length === 0);
  });
});
