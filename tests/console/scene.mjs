// A server with something of everything that the console shows, and pages of the console.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { on, once } from "node:events";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { chromium } from "playwright-core";
import { WebSocket } from "ws";

import { bundledPlugins, startServer, testPlugins } from "./server.mjs";

const KEY = "a-key-of-a-provider";

// ---- others that the server's agents ask ----

// The scripted model of packaging/model_server.
export async function startModel() {
  const program = path.join(process.env.HEARTH_SOURCES, "packaging/model_server");
  const child = spawn("python3", [program, "--words", "5", "--rate", "0", "--key", KEY], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  return { host: line.trim().split("//")[1], stop: () => child.kill() };
}
// The text of a message that tells the model what to answer.
export const script = (...steps) => `Please.\n\`\`\`json\n${JSON.stringify(steps)}\n\`\`\``;

// A provider that takes payments and never answers; other paths are tools.
export async function startPeer() {
  const peer = createServer((request, response) => {
    peer.asked.push(request.url);
    if (request.url !== "/charges") response.setHeader("Content-Type", "application/json").end('{"refunded":true}');
  });
  peer.asked = [];
  peer.listen(0, "127.0.0.1");
  await once(peer, "listening");
  peer.host = `127.0.0.1:${peer.address().port}`;
  return peer;
}

// ---- the server ----

// `libraries`: of those for tests.
export function startScene({ model, peer, libraries = [] }) {
  return startServer(async (root) => {
    const [classes, plugins] = ["classes", "plugins"].map((name) => path.join(root, name));
    for (const directory of [classes, plugins]) await mkdir(directory);
    for (const name of ["counter", "payments", "assistant", "research"]) await copyFile(path.join(bundledPlugins, `${name}.so`), path.join(plugins, `${name}.so`));
    for (const name of libraries) await copyFile(path.join(testPlugins, `${name}.so`), path.join(plugins, `${name}.so`));
    await writeFile(path.join(plugins, "broken.so"), "no library");
    await writeFile(path.join(classes, "model.key"), KEY, { mode: 0o600 });
    const refund = {
      name: "refund",
      description: "Refunds an order.",
      schema: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
      http: { method: "POST", url: `http://${peer.host}/refund/{order}`, effect: "unsafe" },
      approval: true,
    };
    const files = {
      assistant: {
        egress: { allow: [model.host, peer.host], secrets: { model: "model.key" } },
        options: { provider: "chat-completions", base_url: `http://${model.host}/v1`, model: "scripted", credential: "model", tools: [refund] },
      },
      payments: { egress: { allow: [peer.host] }, options: { provider: `http://${peer.host}`, keys: "ignored" } },
    };
    for (const [name, file] of Object.entries(files)) await writeFile(path.join(classes, `${name}.yaml`), JSON.stringify({ class: name, ...file }));
    return { plugins: [plugins], config: "classes: classes\nreload: {quiet_time: 100ms}\n" };
  });
}

// A client's call, and its result.
export async function call(server, agent, method, ...args) {
  const socket = await tell(server, agent, method, args);
  for await (const [data] of on(socket, "message")) {
    const frame = JSON.parse(data);
    if (frame.type !== "rpc") continue;
    socket.close();
    assert.ok(frame.success, frame.error);
    return frame.result;
  }
}

// A client that sends one call and does not wait for its answer.
export async function tell(server, agent, method, args) {
  const socket = new WebSocket(`ws://${server.host}/agents/${agent}`);
  socket.on("error", () => {});
  await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
  socket.send(JSON.stringify({ type: "rpc", id: "1", method, args }));
  return socket;
}

// Agents of Counter that were never used: visitor-00000, ... The server must be down.
export function addVisitors(server, many) {
  const program = `import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
rows = (("Counter", f"visitor-{i:05}", 1700000000000) for i in range(int(sys.argv[2])))
db.executemany("INSERT INTO agents(class, name, created_at) VALUES(?, ?, ?)", rows)
db.commit()`;
  execFileSync("python3", ["-c", program, path.join(server.directory, "data/host.db"), String(many)]);
}

// A charge whose request has left when the server is killed: its operation is unknown afterwards.
export async function makeUnknown(server, peer, whileDown = () => {}) {
  await tell(server, "payments/shop", "charge", ["order-17", 4200]);
  while (!peer.asked.includes("/charges")) await new Promise((resolve) => setTimeout(resolve, 10));
  await server.kill();
  whileDown();
  await server.start();
}

export async function count(server, names) {
  const left = [...names];
  const worker = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      const answer = await fetch(`http://${server.host}/agents/counter/${name}`, { method: "POST" });
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

// ---- the browser ----

export const launch = () => chromium.launch({ executablePath: process.env.HEARTH_CHROMIUM ?? "/usr/bin/chromium" });

export const linkTo = async (server) => (await server.command("console")).trim();

// A tab with a session. `failures`: what went wrong in it; `elsewhere`: requests to other hosts.
export async function openConsole(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  page.failures = [];
  page.elsewhere = [];
  page.on("pageerror", (error) => page.failures.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.failures.push(message.text()));
  page.on("request", (request) => new URL(request.url()).host !== server.host && page.elsewhere.push(request.url()));
  await page.goto(await linkTo(server));
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
}

// When the test ends, nothing may have gone wrong in the tab but what `page.expected` matches.
export async function openChecked(t, browser, server, options) {
  const page = await openConsole(browser, server, options);
  page.setDefaultTimeout(10_000);
  t.after(async () => {
    const { failures, elsewhere } = page;
    await page.context().close();
    assert.deepEqual(elsewhere, [], "requests to other hosts");
    assert.deepEqual(failures.filter((each) => !page.expected?.test(each)), []);
  });
  return page;
}

// No violation of axe-core, and nothing wider than the screen; the screenshot stays.
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const withAxe = (page) => page.context().addInitScript(axe).then(() => page.reload());
export async function looksGood(page, name) {
  const { violations } = await page.evaluate(() => axe.run(document));
  assert.deepEqual(violations.map(({ id, nodes }) => [name, id, nodes[0].html]), []);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${name} is ${wide} pixels too wide`);
  await mkdir("screenshots", { recursive: true });
  await page.screenshot({ path: `screenshots/${name.replace(/\W+/g, "-")}.png` });
}
// The same in light, dark and on a phone.
export async function looksGoodEverywhere(page, name) {
  for (const [look, colorScheme, width] of [["light", "light", 1200], ["dark", "dark", 1200], ["phone", "light", 390]]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    await looksGood(page, `${name}-${look}`);
  }
}

export const sees = (page, text) => page.getByText(text).first().waitFor();
export const bodyText = (page) => page.locator("main").innerText();
export async function until(what, holds) {
  for (const end = Date.now() + 10_000; !(await holds()); ) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function go(page, place) {
  await page.evaluate((hash) => { location.hash = hash; }, `#/${place}`);
}
