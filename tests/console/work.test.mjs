// An agent's work and its tables in the console: what is shown, and what an operator does.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { bodyText, call, go, launch, looksGoodEverywhere, makeUnknown, openChecked, sees, startPeer, startScene, tell, until, withAxe } from "./scene.mjs";

const limits = { timeout: 60_000 };
const AGENT = "durable-agent/a";

let peer;
let server;
let browser;

before(async () => {
  peer = await startPeer();
  server = await startScene({ model: { host: "127.0.0.1:9" }, peer, libraries: ["durable-agent"] });
  // The server is killed; the hook lets this fiber go.
  await call(server, AGENT, "begin", "left", null, { steps: 1000, ms: 100, failures: 0, max_retries: 0, hook: "nothing" });
  await makeUnknown(server, peer);
  await call(server, AGENT, "begin", "walk", "key-1", { steps: 1000, ms: 100, failures: 0, max_retries: 0, hook: "continue" });
  await call(server, AGENT, "later", "note", 3_600_000, "as planned");
  await call(server, AGENT, "push", "hopeless", 7);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.dispose();
  peer?.closeAllConnections();
  peer?.close();
});

async function open(t, tab) {
  const page = await openChecked(t, browser, server);
  await withAxe(page);
  await go(page, `agent/${tab}`);
  return page;
}
const row = (page, name) => page.getByRole("region", { name: "Work" }).getByRole("row").filter({ hasText: name });
const shows = (page, name, text) => until(`${name}: ${text}`, async () => (await row(page, name).innerText()).includes(text));
const press = (page, name, label) => row(page, name).getByRole("button", { name: label }).click();
const journal = () => call(server, AGENT, "journal");

describe("the work of an agent", () => {
  test("is a schedule, which is paused, goes on, and runs now", limits, async (t) => {
    const page = await open(t, "DurableAgent/a?tab=work");
    await shows(page, "note", "waiting");
    await press(page, "note", "Pause");
    await shows(page, "note", "paused");
    await press(page, "note", "Resume");
    await shows(page, "note", "waiting");
    assert.ok(!(await journal()).includes("as planned"));
    await press(page, "note", "Run now");
    await until("its run", async () => (await journal()).includes("as planned"));
  });

  test("is an item of the queue, which is tried again, and dropped", limits, async (t) => {
    const page = await open(t, "DurableAgent/a?tab=work");
    await page.getByLabel("State").fill("dead");
    await shows(page, "hopeless", "dead");
    await until("only what is dead", async () => !(await bodyText(page)).includes("walk"));
    await page.getByLabel("State").fill("");
    await press(page, "hopeless", "Retry");
    await shows(page, "hopeless", "dead");
    await press(page, "hopeless", "Drop");
    await sees(page, "It is removed.");
    await page.getByRole("group").getByRole("button", { name: /Drop/ }).click();
    await until("no item", async () => !(await bodyText(page)).includes("hopeless"));
    await go(page, "log?tab=audit");
    for (const action of ["revive", "cancel", "pause", "run"]) await sees(page, `"action":"${action}"`);
  });

  test("is a fiber, whose timeline has each checkpoint as it is made, and which is cancelled", limits, async (t) => {
    const page = await open(t, "DurableAgent/a?tab=work");
    await press(page, "walk", "Timeline");
    const timeline = page.getByRole("region", { name: "Timeline" });
    const stashes = async () => (await timeline.innerText()).split("fiber:stash").length - 1;
    await until("checkpoints", async () => (await stashes()) > 2);
    const before = await stashes();
    await until("new ones", async () => (await stashes()) > before);
    for (const what of ["created", "begun", "fiber:run:started"]) await sees(timeline, what);
    assert.match(await page.getByLabel("Last checkpoint").innerText(), /^\d+$/);
    await looksGoodEverywhere(page, "work-timeline");
    await press(page, "walk", "Cancel");
    await page.getByRole("group").getByRole("button", { name: "Cancel" }).first().click();
    await shows(page, "walk", "aborted");
    await sees(timeline, "an administrator has cancelled it");
  });

  test("is a fiber that was let go, which is offered again, and ended with a result", limits, async (t) => {
    const page = await open(t, "DurableAgent/a?tab=work");
    const offers = async () => (await journal()).filter((each) => each.startsWith("offered left")).length;
    await shows(page, "left", "interrupted");
    const before = await offers();
    await press(page, "left", "Revive");
    await until("another offer", async () => (await offers()) > before);
    await shows(page, "left", "interrupted");
    await press(page, "left", "Timeline");
    await page.getByLabel("Its result, as JSON").fill('{"by":9007199254740993}');
    await page.getByRole("button", { name: "End it as completed" }).click();
    await page.getByRole("group").getByRole("button", { name: "End it" }).click();
    await shows(page, "left", "completed");
    await page.getByText("All that is recorded").click();
    await sees(page, '"by": 9007199254740993');
  });

  test("is a fiber with the operations and requests that it has begun", limits, async (t) => {
    await tell(server, "payments/shop", "charge", ["order-18", 100]); // whose request is not answered
    const page = await open(t, "Payments/shop?tab=work");
    await press(page, "charge", "Timeline");
    const timeline = page.getByRole("region", { name: "Timeline" });
    for (const what of ["operation charge.ignored", "request of charge.ignored"]) await sees(timeline, what);
    await sees(timeline, "unsafe");
    await sees(timeline, "running");
    await sees(timeline, "no answer");
  });
});

describe("the tables of an agent", () => {
  test("are listed and read, and not written", limits, async (t) => {
    const page = await open(t, "DurableAgent/a?tab=tables");
    page.expected = /403/;
    const run = page.getByRole("button", { name: "Run" });
    await run.click();
    await sees(page, "journal");
    await looksGoodEverywhere(page, "tables");
    const sql = page.getByRole("textbox");
    await sql.fill("SELECT 'a' || 'b' AS word, NULL AS none, x'00ff' AS bytes, 9007199254740993 AS large");
    await run.click();
    for (const text of ["word", "ab", "NULL", "00ff", "9007199254740993"]) await sees(page.getByRole("region", { name: "Rows" }), text);
    await sql.fill("DELETE FROM journal");
    await run.click();
    await sees(page, "only statements that read");
    assert.ok((await journal()).length > 0);
  });
});
