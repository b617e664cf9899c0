// What waits for a person in the console, a log in a hidden tab, and one whose session has ended.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { bodyText, call, go, launch, looksGoodEverywhere, openChecked, sees, startPeer, startScene, until, withAxe } from "./scene.mjs";

const limits = { timeout: 60_000 };

let peer;
let server;
let browser;

before(async () => {
  peer = await startPeer();
  server = await startScene({ model: { host: "127.0.0.1:9" }, peer, libraries: ["durable-agent", "crashes"] });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.dispose();
  peer?.closeAllConnections();
  peer?.close();
});
const open = (t) => openChecked(t, browser, server);
const section = (page, name) => page.getByRole("region", { name, exact: true });

describe("what waits for a person", () => {
  test("is a class whose library crashes the server, until it is served again", limits, async (t) => {
    const serves = async () => (await fetch(`http://${server.host}/agents/crashes/a`)).ok;
    assert.ok(await serves());
    for (let crashes = 0; crashes < 4; crashes += 1) {
      await fetch(`http://${server.host}/agents/crashes/a?how=abort`).catch(() => {});
      await server.kill();
      await server.start();
    }
    assert.ok(!(await serves()));
    const page = await open(t);
    await withAxe(page);
    await go(page, "waits");
    const row = section(page, "Quarantine").getByRole("row").filter({ hasText: "Crashes" });
    await row.waitFor();
    await looksGoodEverywhere(page, "quarantine");
    await row.getByRole("button", { name: "Serve Crashes again" }).click();
    await sees(page, "It may crash the server again.");
    await page.getByRole("group").getByRole("button", { name: /Serve/ }).click();
    await sees(page, "No class is in quarantine");
    assert.ok(await serves());
  });

  test("is dead work of any class, seen with what to do, and gone once it is revived or dropped", limits, async (t) => {
    await call(server, "durable-agent/dead", "push", "hopeless", 7);
    const page = await open(t);
    await go(page, "waits");
    await page.getByLabel("Look at").selectOption({ label: "each agent" });
    await sees(page, "DurableAgent/dead");
    await sees(page, "has used up its tries");
    await sees(page, "hearth queue retry DurableAgent/dead ");
    await page.getByRole("link", { name: "DurableAgent/dead" }).click();
    await go(page, "agent/DurableAgent/dead?tab=work");
    const row = page.getByRole("region", { name: "Work" }).getByRole("row").filter({ hasText: "hopeless" });
    await row.getByRole("button", { name: "Retry" }).click();
    await until("dead again", async () => (await row.innerText()).includes("dead"));
    await row.getByRole("button", { name: "Drop" }).click();
    await page.getByRole("group").getByRole("button", { name: /Drop/ }).click();
    await until("no item", async () => !(await bodyText(page)).includes("hopeless"));
    await go(page, "waits");
    await page.getByLabel("Look at").selectOption({ label: "each agent" });
    await sees(page, "No agent is stuck");
  });
});

describe("the live log", () => {
  const isLog = (request) => request.url().includes("/admin/events");
  const hide = (page, isHidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

  test("holds no connection while its tab is hidden, and goes on where it was", limits, async (t) => {
    const page = await open(t);
    page.expected = /ERR_ABORTED/;
    await page.clock.install();
    await go(page, "log");
    await sees(page, "live");
    const ended = page.waitForEvent("requestfailed", isLog);
    await hide(page, true);
    await ended;
    const asked = [];
    page.on("request", (request) => isLog(request) && asked.push(request.url()));
    await call(server, "durable-agent/unseen", "push", "hopeless", 7);
    await until("its end", () => server.log.includes("unseen"));
    await page.clock.runFor(60_000); // longer than it waits to connect again
    await page.evaluate(() => fetch("/readyz").then((answer) => answer.text())); // after all that it asked before
    assert.deepEqual(asked, []);
    await hide(page, false);
    await sees(page, "DurableAgent/unseen");
    assert.equal(asked.length, 1);
  });

  test("does not outlive its session", limits, async (t) => {
    const page = await open(t);
    page.expected = /401|ERR_/;
    await go(page, "log");
    await sees(page, "live");
    // The page's own button Leave would show the end of the session without the server.
    const status = await page.evaluate(() => fetch("/console/leave", { method: "POST", headers: { "X-Hearth-Console": sessionStorage.getItem("key") } }).then((answer) => answer.status));
    assert.ok(status < 300, status);
    await sees(page, "The session has ended");
  });
});
