// A real browser: a React page with useAgent, in headless Chromium. The page comes from another
// port of this machine, as from a development server.

import assert from "node:assert/strict";
import { copyFile, mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { connect, freshName, versions } from "./clients.mjs";
import { launchBrowser, originOf, servePage } from "./pages.mjs";
import { bundledPlugins, nextResearch, startServer } from "./server.mjs";
import { guardedConfig, tokenFor } from "./tokens.mjs";

const limits = { timeout: 40_000 };
const WAIT_MS = 15_000; // after a restart the client waits 3 s before it tries again
const newest = versions.at(-1);

let server;
let pages; // the server of the page
let browser;

// As `install` does: a new file takes the old one's name.
async function install(file) {
  const plugins = path.join(server.directory, "plugins");
  const temporary = path.join(plugins, ".research.new");
  await copyFile(file, temporary);
  await rename(temporary, path.join(plugins, "research.so"));
}

before(async () => {
  server = await startServer(async (root) => {
    const plugins = path.join(root, "plugins");
    await mkdir(plugins);
    for (const name of ["counter.so", "research.so"]) await copyFile(path.join(bundledPlugins, name), path.join(plugins, name));
    return { plugins: [plugins] };
  });
  pages = await servePage("page.jsx");
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  pages?.close();
  await server?.dispose();
});

// A page with the agent, once it shows which agent it is connected to.
class Page {
  // `sub`: the way from there to an agent below, "class/name/...".
  static async open(t, agent, name, { from = server, sub = "", ...more } = {}) {
    const page = await Page.load(t, { agent, name, host: from.host, sub, ...more });
    await page.shows("identity", sub ? sub.split("/").slice(-2).join("/") : `${agent}/${name}`);
    return page;
  }

  static async load(t, address) {
    const tab = await browser.newPage();
    const failures = [];
    tab.on("pageerror", (error) => failures.push(error.message));
    t.after(async () => {
      await tab.close();
      assert.deepEqual(failures, []);
    });
    await tab.goto(`${originOf(pages)}/?${new URLSearchParams(address)}`);
    return new Page(tab);
  }

  constructor(tab) {
    this.tab = tab;
  }

  text(id) {
    return this.tab.textContent(`#${id}`);
  }

  // Waits until the element has this text.
  async shows(id, text) {
    const isShown = ([element, wanted]) => document.getElementById(element)?.textContent === wanted;
    await this.tab.waitForFunction(isShown, [id, text], { timeout: WAIT_MS }).catch(async (error) => {
      error.message += `\n#${id} shows: ${await this.text(id)}\nwanted: ${text}`;
      throw error;
    });
  }

  async call(method, args, { stream = false } = {}) {
    await this.tab.fill("#call [name=method]", method);
    await this.tab.fill("#call [name=args]", JSON.stringify(args));
    await this.tab.setChecked("#call [name=stream]", stream);
    await this.tab.click("#call button");
  }

  async write(state) {
    await this.tab.fill("#write [name=state]", JSON.stringify(state));
    await this.tab.click("#write button");
  }
}

describe("a page with React and useAgent", () => {
  test("calls, and shows the state both ways", limits, async (t) => {
    const name = freshName("browser");
    const page = await Page.open(t, "counter", name);
    await page.shows("state", '{"count":0} by the server');
    await page.call("increment", [2]);
    await page.shows("answer", "2");
    await page.shows("state", '{"count":2} by the server');

    const other = connect(t, newest, server, { agent: "Counter", name });
    await other.updates.waitFor(([state]) => state.count === 2);
    other.client.setState({ count: 40 });
    await page.shows("state", '{"count":40} by the server');
    await page.write({ count: 41 });
    await other.updates.waitFor(([state, source]) => state.count === 41 && source === "server");
    // The page was sent a state before, so it gets its own back.
    await page.shows("state", '{"count":41} by the server');

    await page.call("increment", [{}]);
    await page.shows("answer", "failed: argument 1: expected integer");
  });

  test("reads a stream", limits, async (t) => {
    const page = await Page.open(t, "counter", freshName("browser"));
    await page.call("count_to", [5, 1], { stream: true });
    await page.shows("answer", "5");
    assert.equal(await page.text("parts"), "1 2 3 4 5");
  });

  test("keeps its connection while the library is replaced", limits, async (t) => {
    const page = await Page.open(t, "research", freshName("browser"));
    const [opens, closes] = [await page.text("opens"), await page.text("closes")];
    await page.call("version", []);
    await page.shows("answer", '"1.0.0"');
    const done = server.nextLine(/reload\.done/, /plugin\.refused/);
    await install(nextResearch);
    await done;
    await page.call("version", []);
    await page.shows("answer", '"2.0.0"');
    assert.deepEqual([await page.text("opens"), await page.text("closes")], [opens, closes]);
  });

  test("shows an agent below another one, with a state of its own", limits, async (t) => {
    const name = freshName("browser");
    const above = await Page.open(t, "counter", name);
    const below = await Page.open(t, "counter", name, { sub: "research/r/counter/deep one" });
    await below.call("increment", [3]);
    await below.shows("answer", "3");
    await below.shows("state", '{"count":3} by the server');
    assert.equal(await above.text("state"), '{"count":0} by the server');

    const other = connect(t, newest, server, { agent: "Counter", name, path: "sub/research/r/sub/counter/deep%20one" });
    await other.client.ready;
    other.client.setState({ count: 30 });
    await below.shows("state", '{"count":30} by the server');
  });

  test("is back by itself after the server was killed, with the state", limits, async (t) => {
    const page = await Page.open(t, "counter", freshName("browser"));
    await page.call("increment", [7]);
    await page.shows("answer", "7");
    const [opens, closes] = [Number(await page.text("opens")), Number(await page.text("closes"))];
    await server.kill();
    await page.shows("closes", String(closes + 1));
    await server.start();
    await page.shows("opens", String(opens + 1));
    await page.shows("state", '{"count":7} by the server');
    await page.call("increment", []);
    await page.shows("answer", "8");
  });
});

describe("a page of another origin, with a token and behind a prefix", () => {
  let guarded;
  before(async () => {
    guarded = await startServer((root) => guardedConfig(root, originOf(pages)));
  });
  after(() => guarded?.dispose());

  // What the page reads of an answer; its browser decides.
  const read = (page, path, init) =>
    page.tab.evaluate(
      async ([url, options]) => {
        try {
          const response = await fetch(url, options);
          return [response.status, (await response.json()).error?.code ?? "ok"];
        } catch (error) {
          return [0, error.name];
        }
      },
      [`http://${guarded.host}${path}`, init],
    );

  test("reaches its agent, and no other", limits, async (t) => {
    const name = freshName("user");
    const address = { from: guarded, basePath: `api/agents/counter/${name}`, token: tokenFor(name) };
    const page = await Page.open(t, "counter", name, address);
    await page.call("increment", [2]);
    await page.shows("answer", "2");
    await page.shows("state", '{"count":2} by the server');

    const own = await Page.load(t, { ...address, agent: "counter", host: guarded.host, basePath: "user", name });
    await own.shows("identity", `counter/${name}`);
    await own.shows("state", '{"count":2} by the server');

    const foreign = await Page.load(t, { agent: "counter", host: guarded.host, name: "another", token: tokenFor(name) });
    await foreign.shows("code", "4403");
    const stranger = await Page.load(t, { agent: "counter", host: guarded.host, name });
    await stranger.shows("code", "4401");
  });

  test("reads answers and errors, with a preflight", limits, async (t) => {
    const name = freshName("user");
    const page = await Page.open(t, "counter", name, { from: guarded, token: tokenFor(name) });
    const bearer = { headers: { Authorization: `Bearer ${tokenFor(name)}` } };
    assert.deepEqual(await read(page, "/readyz"), [200, "ok"]);
    assert.deepEqual(await read(page, `/agents/counter/${name}`), [401, "unauthorized"]);
    assert.deepEqual(await read(page, "/agents/counter/another", bearer), [403, "forbidden"]);
    assert.deepEqual(await read(page, "/nothing"), [410, "not_found"]);
    const [status] = await read(page, `/agents/counter/${name}`, { ...bearer, method: "POST" });
    assert.equal(status, 200, "the page may read the answer");
    assert.deepEqual(await read(page, "/admin/plugins"), [0, "TypeError"], "no page reads these");
  });
});
