// The console's places in headless Chromium, against a running server with its data.

import assert from "node:assert/strict";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { addVisitors, bodyText, count, go, launch, linkTo, looksGood, makeUnknown, openChecked, script, sees, startModel, startPeer, startScene, tell, until, withAxe } from "./scene.mjs";

const limits = { timeout: 60_000 };
const MANY = 10_000;
const SCREENSHOTS = "screenshots";

let model;
let peer;
let server;
let browser;

before(async () => {
  await mkdir(SCREENSHOTS, { recursive: true });
  [model, peer] = await Promise.all([startModel(), startPeer()]);
  server = await startScene({ model, peer });
  await makeUnknown(server, peer, () => addVisitors(server, MANY));
  await count(server, ["first"]);
  await tell(server, "research/bees", "start", ["bees", 600, 1000]);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.dispose();
  model?.stop();
  peer?.closeAllConnections();
  peer?.close();
});

const open = (t, options) => openChecked(t, browser, server, options);

// Each place, and a text that it has once its data are there.
const PLACES = [
  ["overview", "Unknown operations"],
  ["agent/Counter", "first"],
  ["agent/Research/bees", "runs."],
  ["agent/Payments/shop?tab=operations", "charge.ignored"],
  ["waits", "its run was cut off"],
  ["libraries", "it is not an ELF file"],
  ["log", "server.ready"],
  ["log?tab=audit", "ServerReady"],
  ["talk", "a name, known or new"],
];

describe("each place", () => {
  test("shows its data, has accessible names, and is readable in light, dark and on a phone", limits, async (t) => {
    for (const [look, options] of [
      ["light", {}],
      ["dark", { colorScheme: "dark" }],
      ["phone", { viewport: { width: 390, height: 844 } }],
    ]) {
      const page = await open(t, options);
      await withAxe(page);
      for (const [place, text] of PLACES) {
        await go(page, place);
        if (place === "talk") await page.getByPlaceholder(text).waitFor();
        else await sees(page, text);
        await looksGood(page, `${place}-${look}`);
      }
    }
  });

  test("is reached by its number, and search by a slash", limits, async (t) => {
    const page = await open(t);
    for (const [key, heading] of [["2", "Agents"], ["3", "Waits for you"], ["4", "Libraries"], ["6", "Talk"], ["1", "Overview"]]) {
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    }
    // The list, as it is at first, shows none of the two: visitors come before them.
    await count(server, ["z", "zebra"]);
    page.expected = /404/;
    for (const [typed, name] of [["zeb", "zebra"], ["z", "z"]]) {
      await page.keyboard.press("2");
      await page.getByLabel("Name begins with").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type(typed);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: new RegExp(`^${name}\\b`) }).waitFor();
    }
  });
});

describe("an agent", () => {
  test("changes while one looks, and its methods are called from their schemas", limits, async (t) => {
    const page = await open(t);
    await go(page, "agent/Counter/seen?tab=client");
    await sees(page, "There is no such agent");
    page.expected = /404/;
    await count(server, ["seen"]);
    await page.getByRole("button", { name: "Connect as a client" }).click();
    const state = page.getByLabel("State", { exact: true });
    await until("the first state", async () => (await state.innerText()).includes('"count": 1'));
    await count(server, ["seen"]);
    await until("the state of another client", async () => (await state.innerText()).includes('"count": 2'));
    const increment = page.getByRole("form", { name: "Call increment" });
    await increment.getByRole("textbox").fill("40");
    await increment.getByRole("button").click();
    await until("the state of a call", async () => (await state.innerText()).includes('"count": 42'));
    assert.equal(await page.getByLabel("Result of increment").innerText(), "42");
    await increment.getByRole("textbox").fill("many");
    await increment.getByRole("button").click();
    await sees(page, "is not JSON");
    const stream = page.getByRole("form", { name: "Call count_to" });
    await stream.getByRole("textbox").nth(0).fill("3");
    await stream.getByRole("textbox").nth(1).fill("1");
    await stream.getByRole("button").click();
    await until("the stream", async () => (await page.getByLabel("Parts of count_to").innerText()) === "1\n2\n3");
  });

  test("is evicted and destroyed, and the audit log names the console", limits, async (t) => {
    await count(server, ["doomed|1[a]"]);
    const page = await open(t);
    page.expected = /404/;
    await go(page, "agent/Counter/doomed|1[a]");
    await page.getByRole("button", { name: "Evict" }).click();
    await sees(page, "cold");
    await page.getByRole("button", { name: "Destroy" }).click();
    await sees(page, "Delete it with all its data");
    await page.getByRole("button", { name: "Destroy" }).click();
    await sees(page, "There is no such agent");
    await go(page, "log?tab=audit");
    await page.getByLabel("Actor").selectOption("console");
    for (const event of ["AdminEvicted", "AdminDestroyed", "ConsoleEntered"]) await sees(page, event);
  });

  test("is found among 10,000", limits, async (t) => {
    const page = await open(t);
    page.expected = /404/;
    await go(page, "agent/Counter");
    await sees(page, "visitor-00001");
    const rows = page.locator("tbody tr");
    assert.ok((await rows.count()) <= 51);
    await page.getByRole("button", { name: "Next" }).click();
    await sees(page, "visitor-00060");
    await page.getByLabel("Name begins with").fill("visitor-0777");
    await until("ten agents", async () => (await rows.count()) === 10 && (await rows.first().innerText()).startsWith("visitor-07770"));
    await page.getByLabel("Name begins with").fill("visitor-07777");
    await until("one agent", async () => (await rows.count()) === 1);
    await go(page, "overview");
    await until("the number of agents", async () => /Counter\s+current\s+[\d,]+\s+10,0\d\d/.test(await bodyText(page)));
  });
});

describe("what waits for a person", () => {
  test("is an unknown operation, which is settled in the page", limits, async (t) => {
    const page = await open(t);
    await go(page, "waits");
    await sees(page, "needs you");
    await page.getByLabel("Its result, as JSON").fill('{"receipt":9007199254740993}');
    await page.getByLabel("How you know").fill("in their books");
    await page.getByRole("button", { name: /Record the outcome/ }).click();
    await page.getByRole("group").getByRole("button", { name: "Record it" }).click();
    await sees(page, "No operation is unknown");
    await go(page, "agent/Payments/shop?tab=operations");
    await sees(page, "in their books");
    await page.getByRole("button", { name: /^Details of charge/ }).first().click();
    await sees(page.getByLabel("The operation"), "9007199254740993");
    await go(page, "log?tab=audit");
    await sees(page, "AdminOperationResolved");
  });
});

describe("libraries", () => {
  test("are looked for again, and the answer says what is refused", limits, async (t) => {
    const page = await open(t);
    await go(page, "libraries");
    await page.getByRole("button", { name: "Look for new files" }).click();
    await sees(page, /broken.so is refused/);
    await sees(page, /counter.so has not changed/);
  });

  test("come in on trial, and are taken back", limits, async (t) => {
    const page = await open(t);
    await go(page, "libraries");
    const file = path.join(server.directory, "plugins/counter.so");
    const temporary = path.join(server.directory, "plugins/.counter.new");
    await writeFile(temporary, Buffer.concat([await readFile(file), Buffer.from("\nanother")]));
    await rename(temporary, file);
    await page.getByRole("button", { name: "Take back" }).click();
    await page.getByRole("group", { name: "Serve the version before again?" }).getByRole("button", { name: "Take back" }).click();
    await sees(page, /counter.so is refused: an administrator has taken it back/);
    await page.getByRole("button", { name: "Take back" }).waitFor({ state: "detached" });
    await count(server, ["first"]);
  });
});

describe("a talk", () => {
  test("streams an answer, asks for approval of a tool, and is there after a reload", limits, async (t) => {
    const page = await open(t);
    await go(page, "talk");
    await page.getByLabel("Agent").fill("demo");
    await page.keyboard.press("Enter");
    const box = page.getByLabel("Your message");
    await until("the connection", async () => (await bodyText(page)).includes("connected"));
    await box.fill("Hello");
    await box.press("Enter");
    await sees(page, "word1 word2 word3 word4 word5");
    await box.fill(script({ call: "refund", input: { order: 17 } }));
    await box.press("Enter");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    assert.ok(!peer.asked.includes("/refund/17"));
    await page.screenshot({ path: `${SCREENSHOTS}/talk-approval.png` });
    await page.getByRole("button", { name: "Approve" }).click();
    await sees(page, '"refunded": true');
    assert.equal(peer.asked.filter((each) => each === "/refund/17").length, 1);
    await page.reload();
    await sees(page, "word1 word2 word3 word4 word5");
    await sees(page, '"refunded": true');
  });
});

describe("the chat protocol", () => {
  test("takes frames that are not as they should be, and forgets a turn that is over", async () => {
    const text = await readFile(path.join(process.env.HEARTH_SOURCES, "host/console/page/chat.js"), "utf8");
    const { takeFrame } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
    const chat = { messages: [], live: { id: "1", role: "assistant", parts: [] }, turn: "1", error: null, greeted: true };
    const answer = (body) => ({ type: "cf_agent_use_chat_response", id: "1", body });
    for (const [frame, wanted] of [
      [{ type: "cf_agent_stream_resume_none" }, { turn: null, live: null }],
      [{ type: "cf_agent_stream_resume_none", reason: "idle" }, { turn: null, live: null }],
      [{ type: "cf_agent_stream_resume_none", reason: "continuation-owned" }, { turn: "1", live: chat.live }],
      [answer("{cut"), { turn: "1", live: chat.live }],
      [answer("null"), { turn: "1", live: chat.live }],
      [{ type: "cf_agent_chat_messages", messages: [{ id: "m" }, { id: "n", parts: [null, {}] }] }, { messages: [{ id: "m", parts: [] }, { id: "n", parts: [{ type: "" }] }] }],
      [{ type: "cf_agent_message_updated" }, { messages: [] }],
    ])
      assert.deepEqual(takeFrame(chat, frame, () => {}), { ...chat, ...wanted }, JSON.stringify(frame));
  });
});

describe("the page", () => {
  test("keeps what it shows while the server or a proxy fails", limits, async (t) => {
    const page = await open(t);
    page.expected = /50\d/;
    await go(page, "libraries");
    await sees(page, "counter");
    for (const [status, contentType, text] of [
      [500, "application/json", "it broke"],
      [502, "text/html", "The server does not answer"],
    ]) {
      await page.route("**/admin/**", (route) => route.fulfill({ status, contentType, body: '{"error":{"message":"it broke"}}' }));
      await sees(page, text);
      await sees(page, "counter");
      await page.unroute("**/admin/**");
      await until("the answer", async () => !(await page.locator("body").innerText()).includes(text));
    }
    await page.route("**/console/leave", (route) => route.fulfill({ status: 500, body: "" }));
    await page.getByRole("button", { name: "Leave" }).click();
    await sees(page, "The session may go on");
  });

  test("says what is no token, that an agent may ask for one, and lets one try again", limits, async (t) => {
    const page = await open(t);
    await go(page, "agent/Counter/first?tab=client");
    await page.getByLabel("A client's token").fill("no token (");
    await page.getByRole("button", { name: "Connect as a client" }).click();
    await sees(page, "A browser cannot send this token");
    await page.getByRole("button", { name: "Try again" }).click();
    // A server that refuses to open the connection.
    page.expected = /WebSocket/;
    await page.evaluate(() => {
      window.WebSocket = class extends WebSocket {
        constructor(url) {
          super(new URL("/healthz", url));
        }
      };
    });
    await page.getByRole("button", { name: "Connect as a client" }).click();
    await sees(page, "may ask its clients for a token");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Connect as a client" }).waitFor();
  });
});

describe("the session", () => {
  test("is of no use to a foreign page", limits, async (t) => {
    const page = await open(t);
    const requests = [];
    const evil = createServer((request, response) => response.setHeader("Content-Type", "text/html").end("<title>evil</title>"));
    await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
    t.after(() => evil.close());
    // Another port of the same host, which for browsers is the same site.
    const foreign = await page.context().newPage();
    foreign.on("response", (response) => requests.push([response.url(), response.status()]));
    await foreign.goto(`http://127.0.0.1:${evil.address().port}/`);
    const seen = await foreign.evaluate(async (host) => {
      const tried = async (path, options) => {
        try {
          const answer = await fetch(`http://${host}${path}`, { credentials: "include", ...options });
          return answer.type === "opaque" ? "opaque" : await answer.text();
        } catch {
          return "refused";
        }
      };
      const evict = "/admin/agents/Counter/first/evict";
      return [
        await tried("/admin/plugins", {}),
        await tried("/admin/plugins", { headers: { "X-Hearth-Console": "1" } }),
        await tried(evict, { method: "POST", mode: "no-cors" }),
        await tried(evict, { method: "POST", headers: { "X-Hearth-Console": "1" } }),
        await tried("/console", { mode: "no-cors" }),
      ];
    }, server.host);
    assert.deepEqual(seen, ["refused", "refused", "opaque", "refused", "refused"]);
    const isEvict = ([url]) => url.endsWith("/evict");
    await until("the answer", () => requests.some(isEvict));
    const sent = requests.find(isEvict);
    assert.equal(sent[1], 403);
    // In a frame it shows nothing either.
    await foreign.setContent(`<iframe src="http://${server.host}/console"></iframe>`);
    const framed = await (await foreign.waitForSelector("iframe")).contentFrame();
    await foreign.waitForTimeout(300);
    assert.equal(await framed.locator("#root").count().catch(() => 0), 0);
    // A link to the console opens it in a tab that does not have the key.
    await foreign.setContent(`<a href="http://${server.host}/console">free</a>`);
    await foreign.getByRole("link").click();
    await sees(foreign, "There is no session in this");
  });

  test("is of one tab: a page of an agent, or another tab, does not have its key", limits, async (t) => {
    const page = await open(t);
    await sees(page, "Unknown operations");
    const other = await page.context().newPage();
    await other.goto(`http://${server.host}/agents/counter/first`);
    assert.equal(await other.evaluate(() => sessionStorage.getItem("key") ?? localStorage.getItem("key")), null);
    await other.goto(`http://${server.host}/console`);
    await sees(other, "There is no session in this tab");
    await sees(other, "hearth console");
  });

  test("needs a link that was not used, and its code is in no log", limits, async (t) => {
    const link = await linkTo(server);
    const code = new URL(link).searchParams.get("code");
    const first = await fetch(link, { redirect: "manual" });
    assert.equal(first.status, 200);
    const again = await fetch(link, { redirect: "manual" });
    assert.equal(again.status, 401);
    assert.match(await again.text(), /hearth console/);
    assert.ok(!server.log.includes(code));
    const page = await (await browser.newContext()).newPage();
    t.after(() => page.context().close());
    await page.goto(`http://${server.host}/console`);
    await sees(page, "There is no session in this browser");
  });

  test("ends with the server, whose page goes on until then", limits, async (t) => {
    const page = await open(t);
    page.expected = /401|ERR_CONNECTION|404/;
    await go(page, "libraries");
    await sees(page, "counter");
    await server.kill();
    await sees(page, "The server does not answer");
    await sees(page, "counter"); // what was seen stays
    await server.start();
    await sees(page, "The session has ended");
    await sees(page, "hearth console");
    await page.screenshot({ path: `${SCREENSHOTS}/ended.png` });
    await page.goto(await linkTo(server));
    await sees(page, "Unknown operations");
    await page.getByRole("button", { name: "Leave" }).click();
    await sees(page, "The session has ended");
    await page.goto(`http://${server.host}/console`);
    await sees(page, "There is no session in this browser");
  });
});

describe("a large number", () => {
  test("is shown in a talk as the tool gets it, also once it is approved", limits, async (t) => {
    const page = await open(t);
    await go(page, "talk");
    await page.getByLabel("Agent").fill("large");
    await page.keyboard.press("Enter");
    await until("the connection", async () => (await bodyText(page)).includes("connected"));
    const box = page.getByLabel("Your message");
    await box.fill(script({ call: "refund", input: { order: 17 } }).replace(":17", ":1234567890123456789"));
    await box.press("Enter");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await sees(page.getByLabel("Input of the tool"), '"order": 1234567890123456789');
    await page.getByRole("button", { name: "Approve" }).click();
    await sees(page, '"refunded": true');
    await sees(page.getByLabel("Input of the tool"), '"order": 1234567890123456789');
    assert.ok(peer.asked.includes("/refund/1234567890123456789"));
  });
});

describe("the operations of an agent", () => {
  test("are all reached, page by page or by their state", limits, async (t) => {
    const page = await open(t);
    const asked = [];
    await page.route("**/admin/operations?*", (route) => {
      const query = new URL(route.request().url()).searchParams;
      asked.push(query.get("state"));
      const kind = query.get("after") === "behind" ? "newest" : "oldest";
      const operation = { id: kind, kind, state: "completed", effect: "unsafe", attempts: 1, started_at: Date.now(), request: null, note: null };
      return route.fulfill({ json: { operations: [operation], skipped: [], next: kind === "oldest" ? "behind" : null } });
    });
    await go(page, "agent/Payments/shop?tab=operations");
    await sees(page, "oldest");
    await page.getByRole("button", { name: "Next" }).click();
    await sees(page, "newest");
    assert.deepEqual(new Set(asked.at(-1).split(",")), new Set(["running", "interrupted", "unknown", "completed", "not_executed"]));
    await page.getByLabel("State").selectOption("unknown");
    await sees(page, "oldest");
    assert.equal(asked.at(-1), "unknown");
  });
});
