// The live log of the console while 1,000 events a second come.

import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { bodyText, go, launch, openChecked, sees, tell, until } from "./scene.mjs";
import { startServer, testPlugins } from "./server.mjs";

// The server lets a class log 100 lines at once, and then 20 a second.
const CLASSES = 50;
const TALES = 100;
const EVERY_MS = 35;
const MOST_ROWS = 200;
const names = Array.from({ length: CLASSES }, (_, at) => `Teller${String.fromCharCode(65 + (at % 26), 97 + Math.floor(at / 26))}`);
const pathOf = (name) => `${name.replace(/(?<=.)([A-Z])/g, "-$1").toLowerCase()}/a`;

let server;
let proxy;
let browser;

// Connections to the server that can be cut.
async function startProxy(host) {
  const sockets = new Set();
  const [address, port] = host.split(":");
  const made = createServer((socket) => {
    const to = connect(Number(port), address);
    for (const [one, other] of [[socket, to], [to, socket]]) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await once(made.listen(0, "127.0.0.1"), "listening");
  const cut = () => {
    for (const each of sockets) each.destroy();
  };
  const itself = `127.0.0.1:${made.address().port}`;
  const command = async (word) => (await server.command(word)).replace(host, itself);
  return { host: itself, command, cut, close: () => (cut(), made.close()) };
}

before(async () => {
  server = await startServer(async (root) => {
    const [classes, plugins] = ["classes", "plugins"].map((name) => path.join(root, name));
    for (const directory of [classes, plugins]) await mkdir(directory);
    await copyFile(path.join(testPlugins, "talker-agent.so"), path.join(plugins, "talker-agent.so"));
    for (const name of names) await writeFile(path.join(classes, `${name}.yaml`), `class: ${name}\ncode: Talker\n`);
    return { plugins: [plugins], config: "classes: classes\n" };
  });
  proxy = await startProxy(server.host);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  proxy?.close();
  await server?.dispose();
});

// The rows of the page, the newest first: [class/agent, number of its tale].
const talesOf = (page) => page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[3].innerText, Number(/tale (\d+)/.exec(row.cells[5].innerText)?.[1])]));
const total = async (page) => Number(/([\d,]+) events/.exec(await bodyText(page))?.[1].replace(",", ""));

describe("the live log", () => {
  test("loses none of 1,000 events a second though its connection breaks, and has few rows", { timeout: 60_000 }, async (t) => {
    const page = await openChecked(t, browser, proxy);
    page.expected = /ERR_/;
    await go(page, "log");
    await sees(page, "live");
    await page.evaluate(() => {
      window.most = 0;
      const look = () => {
        window.most = Math.max(window.most, document.querySelectorAll("tbody tr").length);
        window.wasCut ||= document.getElementById("main").textContent.includes("connecting");
      };
      new MutationObserver(look).observe(document.getElementById("main"), { childList: true, characterData: true, subtree: true });
    });
    const before = await total(page);
    const begun = Date.now();
    const clients = await Promise.all(names.map((name) => tell(server, pathOf(name), "tell", [TALES, EVERY_MS])));
    const ends = clients.map((client) => once(client, "message"));
    await new Promise((resolve) => setTimeout(resolve, (TALES * EVERY_MS) / 2));
    proxy.cut();
    await Promise.all(ends);
    const took = Date.now() - begun;
    t.diagnostic(`${CLASSES * TALES} events in ${took} ms`);
    assert.ok(took <= 4 * CLASSES * TALES, `${CLASSES * TALES} events took ${took} ms`); // as a busy machine makes them
    for (const client of clients) client.close();
    await until("all events", async () => (await total(page)) >= before + CLASSES * TALES);
    assert.ok((await page.evaluate(() => window.most)) <= MOST_ROWS);
    assert.ok(await page.evaluate(() => window.wasCut));

    await page.getByRole("button", { name: "Pause" }).click();
    const seen = [];
    for (let isEnd = false; !isEnd; ) {
      const rows = await talesOf(page);
      assert.ok(rows.length <= MOST_ROWS);
      seen.unshift(...rows.reverse());
      isEnd = await page.getByRole("button", { name: "Older" }).isDisabled();
      if (!isEnd) await page.getByRole("button", { name: "Older" }).click();
    }
    const wanted = Array.from({ length: TALES }, (_, at) => at + 1);
    for (const name of names) assert.deepEqual(seen.filter(([whose, tale]) => whose === `${name}/a` && tale).map(([, tale]) => tale), wanted, name);
  });

  test("shows one agent, and one trace", { timeout: 60_000 }, async (t) => {
    const page = await openChecked(t, browser, server);
    await go(page, "log");
    await sees(page, "live");
    const last = await tell(server, pathOf(names[7]), "tell", [3, 0]);
    await once(last, "message");
    await page.getByLabel("Class").fill(names[7]);
    await page.getByLabel("Agent").fill("a");
    const all = async () => (await talesOf(page)).map(([whose, tale]) => `${whose} ${tale}`);
    await until("those of the agent", async () => {
      const rows = await all();
      return rows.length >= 3 && rows.every((each) => each.startsWith(`${names[7]}/a `));
    });
    await page.getByRole("button", { name: /Only the trace/ }).first().click();
    await until("the trace", async () => (await all()).join() === [3, 2, 1].map((each) => `${names[7]}/a ${each}`).join());
    await go(page, `agent/${names[7]}/a?tab=log`);
    await sees(page, "tale 3");
    await last.close();
  });
});
