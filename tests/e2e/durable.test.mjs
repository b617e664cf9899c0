// Schedules and managed fibers, as a client sees them: reminders come in time, and requested work
// is done once.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { startServer } from "./server.mjs";

const limits = { timeout: 45_000 };
const eager = { minReconnectionDelay: 100, maxReconnectionDelay: 500 };

// Matches the frame of a reminder with this text.
function isReminder(text) {
  return (frame) => {
    if (typeof frame !== "string") return false;
    const parsed = JSON.parse(frame);
    return parsed.type === "reminder" && parsed.text === text;
  };
}

for (const version of versions) {
  describe(`durable work with ${version.name}`, () => {
    let server;
    before(async () => {
      server = await startServer();
    });
    after(async () => {
      await server?.dispose();
    });

    test("a reminder comes when its delay is over, not before", limits, async (t) => {
      const { client, frames } = connect(t, version, server, { agent: "Reminders", name: freshName("delay") });
      const id = await client.call("remind_in", ["tea", 0.4]);
      const [listed] = await client.call("list");
      assert.equal(listed.id, id);
      assert.equal(listed.type, "delay");
      const frame = JSON.parse(await frames.waitFor(isReminder("tea")));
      assert.equal(frame.id, id);
      assert.equal(frame.due, listed.next);
      assert.ok(frame.at >= frame.due, `${frame.at} before ${frame.due}`);
      assert.deepEqual(await client.call("list"), []);
      assert.deepEqual(await client.call("fired"), [{ text: "tea", due: frame.due, at: frame.at }]);
    });

    test("cron comes again, pauses, and ends with a cancel", limits, async (t) => {
      const { client, frames } = connect(t, version, server, { agent: "Reminders", name: freshName("cron") });
      const ask = ["tick", "* * * * * *", "Europe/Berlin"];
      const id = await client.call("remind_when", ask);
      assert.equal(await client.call("remind_when", ask), id); // the same wish again is the same reminder
      await frames.waitFor(isReminder("tick"));
      await frames.waitFor(isReminder("tick"), frames.entries.findIndex(isReminder("tick")) + 1);
      assert.equal(await client.call("pause", [id]), true);
      assert.equal((await client.call("list"))[0].paused, true);
      assert.equal(await client.call("cancel", [id]), true);
      assert.equal(await client.call("cancel", [id]), false);
      assert.deepEqual(await client.call("list"), []);
    });

    test("clients can neither call a callback nor ask for times that are none", limits, async (t) => {
      const { client } = connect(t, version, server, { agent: "Reminders", name: freshName("refused") });
      await assert.rejects(client.call("remind", ["now"]), /Method remind is not callable/);
      await assert.rejects(client.call("remind_in", ["never", -1]));
      await assert.rejects(client.call("remind_when", ["never", "61 * * * *"]));
      await assert.rejects(client.call("remind_when", ["never", "0 9 * * *", "Europe/Atlantis"]));
      assert.deepEqual(await client.call("list"), []);
    });

    test("a reminder outlives kill -9 and comes by itself", limits, async (t) => {
      const address = { agent: "Reminders", name: freshName("killed"), ...eager };
      const { client, frames } = connect(t, version, server, address);
      const id = await client.call("remind_in", ["late", 0.2]);
      await server.kill();
      await server.start();
      const reminder = isReminder("late");
      // The agent may have been woken, and have told its clients, before this client was back.
      await Promise.any([
        frames.waitFor(reminder),
        (async () => {
          while ((await client.call("fired")).length === 0);
        })(),
      ]);
      const fired = await client.call("fired");
      assert.deepEqual(fired.map(({ text }) => text), ["late"], `of ${id}`);
    });

    test("an agent in C is called by its queue and its schedules", limits, async (t) => {
      const { client } = connect(t, version, server, { agent: "WorkerC", name: freshName("ticks") });
      await client.call("tick_in", [100]);
      await client.call("tick_next");
      let ticks = [];
      while (ticks.length < 2) ({ ticks } = await client.call("status"));
      assert.deepEqual(ticks, ["queue", "schedule"]);
    });

    test("work that is asked for twice under one key is done once, over kill -9", limits, async (t) => {
      const address = { agent: "Research", name: freshName("once"), ...eager };
      const { client, updates } = connect(t, version, server, address);
      const ask = ["order-7", "hearths", 10, 60];
      const run = await client.call("start_once", ask);
      assert.equal(await client.call("start_once", ask), run);
      await assert.rejects(client.call("start_once", ["order-7", "stoves", 10, 60]));
      await updates.waitFor(([state]) => state?.runs?.[run]?.completed >= 3);
      await server.kill();
      await server.start();
      assert.equal(await client.call("start_once", ask), run);
      const end = await client.call("result", ["order-7"]);
      assert.equal(end.status, "completed");
      assert.equal(end.recoveries, 1);
      assert.deepEqual(await client.call("steps", [run]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      assert.equal(await client.call("start_once", ask), run);
    });
  });
}
