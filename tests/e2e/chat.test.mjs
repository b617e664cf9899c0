// useAgentChat of npm, unchanged, in a React page in headless Chromium, against the plugin
// `assistant`, once for each dialect of a provider of models. The model is packaging/model_server:
// what it answers, and where it waits for the test, is a script in the message.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { copyFile, readFile, readdir, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { Recording, freshName, openSocket } from "./clients.mjs";
import { KEY, Model, picture, providers, script, startAssistant } from "./model.mjs";
import { launchBrowser, originOf, previousAi, servePage } from "./pages.mjs";

const limits = { timeout: 40_000 };
const WAIT_MS = 10_000;
// What the model answers: words, in whose middle it waits for the test.
const half = (hold) => [{ words: 4 }, { hold }, { words: 4 }];
const words = (count) => Array.from({ length: count }, (_, i) => `word${i + 1}`).join(" ");
const GO_ON = /The answer above was cut off/;

let model;
let tools; // the server of the tool `refund`, with what it was asked
let browser;
let tabs; // the context of all tabs
let pages; // by the version of `ai`

before(async () => {
  model = await Model.start();
  const asked = [];
  tools = createServer((request, response) => {
    asked.push(request.url);
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ refunded: request.url.split("/").at(-1) }));
  });
  tools.asked = asked;
  await new Promise((resolve) => tools.listen(0, "127.0.0.1", resolve));
  pages = {
    7: await servePage("chat.jsx"),
    6: await servePage("chat.jsx", previousAi),
  };
  browser = await launchBrowser();
  tabs = await browser.newContext();
});
after(async () => {
  await browser?.close();
  for (const listening of [tools, ...Object.values(pages ?? {})]) listening?.close();
  model?.stop();
});

const start = (provider, version = 7) =>
  startAssistant(provider, model, { tools: `127.0.0.1:${tools.address().port}`, origin: originOf(pages[version]) });

// A tab with a chat. `frames`: {sent, ...frame} of its WebSockets, over reloads.
class Tab {
  static async open(t, server, name, { version = 7, agent = "assistant" } = {}) {
    const page = await tabs.newPage();
    const tab = new Tab(page, server, `${originOf(pages[version])}/?${new URLSearchParams({ agent, name, host: server.host })}`);
    const failures = [];
    page.on("pageerror", (error) => failures.push(error.message));
    t.after(async () => {
      await page.close();
      assert.deepEqual(failures, []);
    });
    await page.goto(tab.url);
    await tab.is(() => window.sockets.opens === 1 && window.chat !== undefined);
    await tab.greeted(0);
    return tab;
  }

  // Waits for the server's first frame: the transcript, or a note of the turn that runs. The page
  // shows the transcript alone, without messages that it has sent before.
  async greeted(from) {
    const greetings = ["cf_agent_chat_messages", "cf_agent_stream_resuming", "cf_agent_stream_pending"];
    await this.frames.waitFor(({ sent, type }) => !sent && greetings.includes(type), from);
  }

  constructor(page, server, url) {
    this.page = page;
    this.server = server;
    this.url = url;
    this.frames = new Recording("frames");
    page.on("websocket", (socket) => {
      socket.on("framesent", ({ payload }) => this.#add(true, payload));
      socket.on("framereceived", ({ payload }) => this.#add(false, payload));
    });
  }

  #add(sent, payload) {
    const frame = JSON.parse(payload);
    if (frame.type === "cf_agent_use_chat_response" && !frame.error && frame.body) frame.chunk = JSON.parse(frame.body);
    this.frames.add({ sent, ...frame });
  }

  // Waits until `holds(argument)` does in the page.
  async is(holds, argument) {
    await this.page.waitForFunction(holds, argument, { timeout: WAIT_MS, polling: 20 }).catch(async () => {
      const state = await this.page.evaluate(() => [document.body.innerText, window.noted, window.sockets]);
      const frames = this.frames.entries.slice(-20).map((frame) => JSON.stringify(frame).slice(0, 300));
      const said = [`wanted: ${holds} ${argument}`, `the page: ${JSON.stringify(state)}`, "the last frames:", ...frames];
      throw new Error([...said, "the log of the server:", this.server.log.slice(-4_000)].join("\n"));
    });
  }

  // Waits until exactly these messages are shown: "role: text", or regular expressions.
  async shows(...lines) {
    const escaped = (line) => line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const pattern = `^${lines.map((line) => line.source ?? escaped(line)).join("\n")}$`;
    await this.is((wanted) => new RegExp(wanted).test(document.getElementById("transcript")?.textContent), pattern);
  }

  async rests() {
    const rested = () =>
      ["status", "streaming", "recovering"].map((id) => document.getElementById(id).textContent).join() === "ready,false,false";
    await this.is(rested);
  }

  send(text, options, files) {
    return this.page.evaluate((given) => {
      const [text, options, files] = given;
      window.chat.sendMessage({ text, files }, options);
    }, [text, options, files]);
  }

  act(method, ...values) {
    return this.page.evaluate(([name, given]) => void window.chat[name](...given), [method, values]);
  }

  // {requestId, outcome, ...} of each onTurnEnd.
  turns() {
    return this.page.evaluate(() => window.noted.flatMap(({ turn }) => turn ?? []));
  }

  calls() {
    return this.page.evaluate(() => window.noted.flatMap(({ call }) => call ?? []));
  }

  // What was shown as the last answer, each time that it changed.
  answers() {
    return this.page.evaluate(() => window.noted.flatMap(({ answer }) => answer ?? []));
  }

  sockets() {
    return this.page.evaluate(() => window.sockets);
  }

  responses(from = 0) {
    return this.frames.entries.slice(from).filter(({ type }) => type === "cf_agent_use_chat_response");
  }

  answerApproval(approved) {
    return this.page.evaluate((yes) => {
      const parts = window.chat.messages.flatMap(({ parts }) => parts);
      const { approval } = parts.find(({ state }) => state === "approval-requested");
      window.chat.addToolApprovalResponse({ id: approval.id, approved: yes });
    }, approved);
  }
}

async function stored(server, name, agent = "assistant") {
  return (await fetch(`http://${server.host}/agents/${agent}/${name}/get-messages`)).json();
}

// The frames of one request: one id, seq without a gap, one end.
function assertOneStream(responses) {
  assert.equal(new Set(responses.map(({ id }) => id)).size, 1);
  const seqs = responses.flatMap(({ seq }) => seq ?? []);
  assert.deepEqual(seqs, seqs.map((_, i) => i));
  assert.deepEqual(
    responses.map(({ done }) => done),
    responses.map((_, i) => i === responses.length - 1),
  );
}

// As `install` does: a new file takes the old one's name. Bytes behind its end make it another one.
let copies = 0;
async function installAgain(server) {
  const file = path.join(server.directory, "plugins/assistant.so");
  const temporary = path.join(server.directory, "plugins/.assistant.new");
  await copyFile(file, temporary);
  copies += 1;
  await writeFile(temporary, Buffer.concat([await readFile(file), Buffer.from(`\n${copies}`)]));
  await rename(temporary, file);
}

// A tab that shows the first half of an answer; the model waits for release().
async function inTheMiddle(t, server, hint, { pieces = half, files } = {}) {
  const name = freshName(hint);
  const tab = await Tab.open(t, server, name);
  const from = (await model.journal()).length;
  await tab.send(script(name, pieces(name)), undefined, files);
  await tab.shows(`user: ${name}`, `assistant: ${words(4)}`);
  return { name, tab, from, release: () => model.release(name) };
}

// What an interruption in the middle must have come to: the answer is whole, and paid once if
// the provider can do this, else twice.
async function assertRecovered(provider, server, { name, tab, from }) {
  await tab.shows(`user: ${name}`, `assistant: ${words(8)}`);
  await tab.rests();
  const messages = await stored(server, name);
  assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
  const text = messages[1].parts.map((part) => part.text ?? "").join("");
  assert.equal(text, words(8));
  for (const answer of await tab.answers()) assert.ok(`assistant: ${text}`.startsWith(answer), answer);
  const [first, ...later] = (await model.requests(from)).filter(({ method, query }) => method === "POST" || query);
  assert.equal(first.method, "POST");
  assert.equal(later.length, 1, JSON.stringify(later));
  if (provider.resumable) {
    assert.match(`${later[0].method} ${later[0].path}?${later[0].query}`, /^GET \/v1\/responses\/\w+\?stream=true&starting_after=\d+$/);
  } else {
    assert.match(JSON.stringify(later[0].body), new RegExp(words(4)));
    assert.match(JSON.stringify(later[0].body), GO_ON);
  }
}

for (const provider of providers) {
  describe(`useAgentChat with ${provider.name}`, () => {
    let server;
    before(async () => {
      server = await start(provider);
    });
    after(() => server?.dispose());

    test("streams an answer; another tab sees it all", limits, async (t) => {
      const name = freshName("stream");
      const [tab, other] = [await Tab.open(t, server, name), await Tab.open(t, server, name)];
      assert.deepEqual(await stored(server, name), []);
      await other.frames.waitFor(({ type }) => type === "cf_agent_stream_resume_none");
      const before = other.frames.length;
      await tab.send(script(name, half(name)));
      for (const each of [tab, other]) await each.shows(`user: ${name}`, `assistant: ${words(4)}`);
      await model.release(name);
      for (const each of [tab, other]) {
        await each.shows(`user: ${name}`, `assistant: ${words(8)}`);
        await each.rests();
        assertOneStream(each.responses());
        const [first] = each.responses();
        assert.equal(first.chunk.type, "start");
        assert.equal((await stored(server, name))[1].id, first.chunk.messageId);
      }
      const [request] = tab.frames.entries.filter(({ type }) => type === "cf_agent_use_chat_request");
      const end = tab.responses().at(-1);
      assert.deepEqual([end.id, end.outcome], [request.id, "completed"]);
      assert.deepEqual(end.messageIds, [JSON.parse(request.init.body).messages.at(-1).id]);
      const turns = await tab.turns();
      assert.deepEqual(turns.map(({ requestId, outcome }) => [requestId, outcome]), [[request.id, "completed"]]);
      const transcripts = (each) => each.frames.entries.filter(({ type, connect }) => type === "cf_agent_chat_messages" && !connect);
      assert.deepEqual(transcripts(tab), []);
      const order = other.frames.entries.slice(before).map((frame) => (frame.done ? "done" : frame.type.replace("cf_agent_", "")));
      assert.ok(order.indexOf("chat_messages") < order.indexOf("use_chat_response"), order.join());
      assert.ok(order.lastIndexOf("chat_messages") > order.lastIndexOf("use_chat_response"), order.join());
      assert.ok(order.lastIndexOf("chat_messages") < order.indexOf("done"), order.join());
      assert.deepEqual((await stored(server, name)).map(({ role }) => role), ["user", "assistant"]);
    });

    test("stops an answer, also one that has not begun", limits, async (t) => {
      const { name, tab, from, release } = await inTheMiddle(t, server, "stop");
      await tab.act("stop");
      const stopped = ({ event, path: asked }) => (provider.resumable ? asked?.endsWith("/cancel") : event === "disconnect");
      await model.until(stopped, from);
      await tab.is(() => window.noted.some(({ turn }) => turn));
      assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["aborted"]);
      await release();
      const before = tab.frames.length;
      await tab.page.reload();
      await tab.shows(`user: ${name}`, `assistant: ${words(4)}`);
      await tab.greeted(before);

      const again = (await model.journal()).length;
      await tab.send(script("Next", [{ hold: `${name}-2` }, { words: 1 }]));
      await model.until(({ event }) => event === "request", again);
      await tab.act("stop");
      await tab.is(() => window.noted.some(({ turn }) => turn));
      await model.until(({ event }) => event === "disconnect", again);
      assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["aborted"]);
      await tab.send("Last");
      await tab.shows(`user: ${name}`, `assistant: ${words(4)}`, /user: Next(\nassistant: )?/, "user: Last", `assistant: ${words(5)}`);
    });

    test("tells the model that a call was denied", limits, async (t) => {
      const name = freshName("denied");
      const tab = await Tab.open(t, server, name);
      const [before, from] = [tools.asked.length, (await model.journal()).length];
      await tab.send(script(name, [{ call: "refund", input: { order: 8 } }], [{ text: "As you wish." }]));
      await tab.shows(`user: ${name}`, 'assistant: [refund approval-requested {"order":8}]');
      await tab.answerApproval(false);
      await tab.shows(`user: ${name}`, /assistant: \[refund output-denied .*\] As you wish\./);
      assert.equal(tools.asked.length, before);
      assert.equal((await model.requests(from)).length, 2, "the model refuses a call without a result");
    });

    test("a killed server goes on with the answer, to a message with a picture", limits, async (t) => {
      const interrupted = await inTheMiddle(t, server, "killed", { files: [picture] });
      const { name, from: asked, tab, release } = interrupted;
      const from = tab.frames.length;
      await server.kill();
      await server.start();
      await tab.frames.waitFor(({ type, recovering }) => type === "cf_agent_chat_recovering" && recovering, from);
      await tab.frames.waitFor(({ replayComplete }) => replayComplete, from);
      await release();
      await assertRecovered(provider, server, interrupted);
      const [request] = tab.frames.entries.filter(({ type }) => type === "cf_agent_use_chat_request");
      const ends = tab.responses().filter(({ done }) => done);
      assert.deepEqual(ends.map(({ id, outcome }) => [id, outcome]), [[request.id, "completed"]]);
      assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["completed"]);
      for (const { method, body } of await model.requests(asked)) {
        if (method !== "POST") continue;
        const sent = (body.input ?? body.messages).flatMap(({ content }) => (Array.isArray(content) ? content : []));
        assert.deepEqual(sent.filter(({ type }) => type === provider.picture.type), [provider.picture]);
      }
      const [{ parts }] = await stored(server, name);
      assert.deepEqual(parts.filter(({ type }) => type === "file"), [picture]);
    });

    test("a tab that is back after a kill and the end shows the whole answer", limits, async (t) => {
      const interrupted = await inTheMiddle(t, server, "late");
      const { name, tab, release } = interrupted;
      await tabs.setOffline(true); // ends no connection, but lets none begin
      t.after(() => tabs.setOffline(false));
      await server.kill();
      await server.start();
      await release();
      for (const end = performance.now() + WAIT_MS; !JSON.stringify(await stored(server, name)).includes("word8"); )
        assert.ok(performance.now() < end, server.log.slice(-4_000));
      await tabs.setOffline(false);
      await assertRecovered(provider, server, interrupted);
    });

    test("a new library goes on with the answer, on the same socket", limits, async (t) => {
      const interrupted = await inTheMiddle(t, server, "replaced");
      const done = server.nextLine(/reload\.done/, /reload\.taken_back|plugin\.refused/);
      await installAgain(server);
      await done;
      await interrupted.release();
      await assertRecovered(provider, server, interrupted);
      assert.deepEqual(await interrupted.tab.sockets(), { opens: 1, closes: 0 });
      assertOneStream(interrupted.tab.responses());
    });

    test("an agent that an administrator evicts goes on, on the same socket", limits, async (t) => {
      const interrupted = await inTheMiddle(t, server, "evicted");
      await server.command("evict", "assistant", interrupted.name);
      await interrupted.tab.frames.waitFor(({ type, recovering }) => type === "cf_agent_chat_recovering" && recovering);
      await interrupted.release();
      await assertRecovered(provider, server, interrupted);
      assert.deepEqual(await interrupted.tab.sockets(), { opens: 1, closes: 0 });
      assertOneStream(interrupted.tab.responses());
    });

    test("a cut answer goes on", limits, async (t) => {
      const interrupted = await inTheMiddle(t, server, "cut", {
        pieces: (hold) => [{ words: 4 }, { hold }, { cut: true }, { words: 4 }],
      });
      await interrupted.release();
      await assertRecovered(provider, server, interrupted);
      assertOneStream(interrupted.tab.responses());
    });

    test("no key is in the log or in a file of the data", limits, async () => {
      await assertNoKey(server);
    });
  });
}

// Neither in the log of a server nor in a file of its data.
async function assertNoKey(server) {
  assert.ok(!server.log.includes(KEY));
  const data = path.join(server.directory, "data");
  const all = (await readdir(data, { recursive: true })).map((name) => path.join(data, name));
  const files = all.filter((name) => statSync(name).isFile());
  const holding = files.filter((name) => readFileSync(name).includes(KEY));
  assert.deepEqual(holding, []);
  assert.ok(files.length > 5);
}

describe("useAgentChat", () => {
  let server;
  before(async () => {
    server = await start(providers[1]);
  });
  after(() => server?.dispose());

  test("shows reasoning, and answers the next message with all that was said", limits, async (t) => {
    const name = freshName("reasoning");
    const tab = await Tab.open(t, server, name);
    await tab.send(script(name, [{ reasoning: "Let me see." }, { text: "All is well." }]));
    await tab.shows(`user: ${name}`, "assistant: (Let me see.)All is well.");
    await tab.rests();
    await tab.send("And now?");
    await tab.shows(`user: ${name}`, "assistant: (Let me see.)All is well.", "user: And now?", `assistant: ${words(5)}`);
    const requests = (await model.requests()).filter(({ body }) => JSON.stringify(body)?.includes(name));
    assert.equal(requests.length, 2);
    assert.match(JSON.stringify(requests[1].body), /All is well\..*And now\?/);
  });

  test("is reloaded in the middle of an answer", limits, async (t) => {
    const { name, tab, release } = await inTheMiddle(t, server, "reload");
    for (let round = 0; round < 3; ++round) {
      const from = tab.frames.length;
      await tab.page.reload();
      await tab.shows(`user: ${name}`, `assistant: ${words(4)}`);
      await tab.frames.waitFor(({ replayComplete }) => replayComplete, from);
      assert.ok(tab.responses(from).every(({ replay, done }) => replay && !done));
    }
    const from = tab.frames.length;
    await tab.page.reload();
    await tab.frames.waitFor(({ replayComplete }) => replayComplete, from);
    await release();
    await tab.shows(`user: ${name}`, `assistant: ${words(8)}`);
    await tab.rests();
    const seqs = tab.responses(from).flatMap(({ seq }) => seq ?? []);
    assert.deepEqual(seqs, seqs.map((_, i) => i));
    assert.ok((await tab.answers()).every((answer) => `assistant: ${words(8)}`.startsWith(answer)));
  });

  test("carries out a tool in the page", limits, async (t) => {
    const name = freshName("locate");
    const tab = await Tab.open(t, server, name);
    const from = (await model.journal()).length;
    await tab.send(script(name, [{ call: "locate", input: {} }], [{ text: "You are there." }]));
    await tab.shows(`user: ${name}`, 'assistant: [locate output-available {"place":"Lisbon"}] You are there.');
    await tab.rests();
    assert.deepEqual((await tab.calls()).map(({ toolName }) => toolName), ["locate"]);
    const order = tab.frames.entries.map(({ sent, type, done }) => (sent ? type : done ? "done" : ""));
    assert.ok(order.indexOf("done") < order.indexOf("cf_agent_tool_result"), "the call is made when the turn has ended");
    const messages = await stored(server, name);
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant"]);
    const [first, second, ...more] = await model.requests(from);
    assert.deepEqual(more, []);
    assert.match(JSON.stringify(first.body.tools), /locate.*later/);
    assert.match(JSON.stringify(second.body), /Lisbon/);
    await tab.page.reload();
    await tab.shows(`user: ${name}`, 'assistant: [locate output-available {"place":"Lisbon"}] You are there.');
  });

  test("fields of the sender reach a turn and its continuation, and data parts reach all tabs", limits, async (t) => {
    const name = freshName("fields");
    const tab = await Tab.open(t, server, name, { agent: "guide" });
    const other = await Tab.open(t, server, name, { agent: "guide" });
    const body = { tone: "kind", depth: [1, null] };
    const isData = (chunk) => chunk?.type.startsWith("data-");
    const datas = (each) => each.responses().map(({ chunk }) => chunk).filter(isData).map(({ data }) => data);
    await tab.send(script(name, [{ call: "locate", input: {} }], [{ hold: name }, { text: "There." }]), { body });
    for (const each of [tab, other]) await each.frames.waitFor(() => datas(each).length === 7);
    await model.release(name);
    const stayed = [["data-body", body], ["data-progress", 2], ["data-body", body]];
    const shown = (messages) => messages[1].parts.filter(isData).map(({ type, data }) => [type, data]);
    for (const each of [tab, other]) {
      await each.shows(`user: ${name}`, /assistant: \[locate output-available .*\] +There\./);
      await each.rests();
      assert.deepEqual(shown(await each.page.evaluate(() => window.chat.messages)), stayed);
      assert.deepEqual(datas(each), [body, "begun", 1, 2, body, "begun", 1, 2]);
    }
    assert.deepEqual(shown(await stored(server, name, "guide")), stayed);
    await tab.send("Plain");
    await other.shows(`user: ${name}`, /assistant: .*/, "user: Plain", `assistant: ${words(5)}`);
    assert.deepEqual((await stored(server, name, "guide"))[3].parts.find(isData).data, null);
  });

  test("goes on once, when the last of three results is there", limits, async (t) => {
    const name = freshName("batch");
    const tab = await Tab.open(t, server, name);
    const from = (await model.journal()).length;
    const calls = ["a", "b", "c"].map((id) => ({ call: "later", input: {}, id: `${name}-${id}` }));
    await tab.send(script(name, calls, [{ text: "All three." }]));
    await tab.is(() => window.noted.filter(({ call }) => call).length === 3);
    for (const [number, { id }] of calls.entries()) {
      assert.equal((await model.requests(from)).length, 1, `with ${number} results`);
      await tab.act("addToolOutput", { toolCallId: id, toolName: "later", output: id });
      await tab.act("addToolOutput", { toolCallId: id, toolName: "later", output: "a second one" });
    }
    await tab.shows(`user: ${name}`, new RegExp(`assistant: .*${name}-a.*${name}-b.*${name}-c.*All three\\.`));
    await tab.rests();
    assert.equal((await model.requests(from)).length, 2);
    assert.equal((await stored(server, name)).length, 2);
  });

  test("asks before a tool of the server runs, also after a kill", limits, async (t) => {
    const name = freshName("approved");
    const tab = await Tab.open(t, server, name);
    const before = tools.asked.length;
    await tab.send(script(name, [{ call: "refund", input: { order: 7 } }], [{ text: "Done." }]));
    await tab.shows(`user: ${name}`, 'assistant: [refund approval-requested {"order":7}]');
    await tab.rests();
    await server.kill();
    await server.start();
    const from = tab.frames.length;
    await tab.page.reload();
    await tab.greeted(from);
    await tab.shows(`user: ${name}`, 'assistant: [refund approval-requested {"order":7}]');
    await tab.rests();
    assert.equal(tools.asked.length, before);
    await tab.answerApproval(true);
    await tab.shows(`user: ${name}`, /assistant: \[refund output-available .*7.*\] Done\./);
    await tab.rests();
    assert.deepEqual(tools.asked.slice(before), ["/refund/7"]);
  });

  test("clears the chat in the middle of an answer, for all tabs", limits, async (t) => {
    const { name, tab, release } = await inTheMiddle(t, server, "clear");
    const other = await Tab.open(t, server, name);
    await other.shows(`user: ${name}`, `assistant: ${words(4)}`);
    await tab.act("clearHistory");
    for (const each of [tab, other]) await each.shows("");
    await release();
    await tab.send("Anew");
    for (const each of [tab, other]) await each.shows("user: Anew", `assistant: ${words(5)}`);
    assert.equal((await stored(server, name)).length, 2);
  });

  test("answers two messages that come at once, one after the other", limits, async (t) => {
    const { name, tab, release } = await inTheMiddle(t, server, "queue");
    const other = await Tab.open(t, server, name);
    await other.shows(`user: ${name}`, `assistant: ${words(4)}`);
    await other.send("Second");
    await other.frames.waitFor(({ sent, type }) => sent && type === "cf_agent_use_chat_request");
    await release();
    const lines = [`assistant: ${words(5)}`, `assistant: ${words(8)}`, "user: Second", `user: ${name}`].sort();
    for (const each of [tab, other]) {
      await each.is((wanted) => document.getElementById("transcript").textContent.split("\n").sort().join() === wanted, lines.join());
      await each.rests();
      assert.ok((await each.turns()).every(({ outcome }) => outcome === "completed"));
      const ids = each.responses().map(({ id }) => id).filter((id, i, all) => id !== all[i - 1]);
      assert.equal(ids.length, 2, "frames of two turns are mixed");
    }
    assert.equal((await stored(server, name)).length, 4);
  });

  test("drops a message that comes while a turn runs, and says so", limits, async (t) => {
    const name = freshName("drop");
    const at = { agent: "guide" };
    const [tab, other] = [await Tab.open(t, server, name, at), await Tab.open(t, server, name, at)];
    await tab.send(script(name, half(name)));
    for (const each of [tab, other]) await each.shows(`user: ${name}`, new RegExp(`assistant: ${words(4)}`));
    await other.send("Second");
    await other.is(() => window.noted.some(({ turn }) => turn?.outcome === "skipped"));
    const skipped = other.frames.entries.findIndex(({ outcome }) => outcome === "skipped");
    assert.equal(other.frames.entries[skipped - 1].type, "cf_agent_chat_messages");
    await model.release(name);
    await tab.is(() => window.noted.some(({ turn }) => turn));
    for (const each of [tab, other]) {
      await each.shows(`user: ${name}`, new RegExp(`assistant: ${words(8)}`));
      await each.rests();
    }
    assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["completed"]);
    assert.equal((await other.turns()).filter(({ outcome }) => outcome === "skipped").length, 1);
    assert.equal((await stored(server, name, "guide")).length, 2);
  });

  test("answers anew", limits, async (t) => {
    const name = freshName("anew");
    const tab = await Tab.open(t, server, name);
    await tab.send(name);
    await tab.shows(`user: ${name}`, `assistant: ${words(5)}`);
    await tab.rests();
    const [, { id: old }] = await stored(server, name);
    await tab.act("regenerate");
    await tab.is(() => window.noted.filter(({ turn }) => turn).length === 2);
    await tab.shows(`user: ${name}`, `assistant: ${words(5)}`);
    const messages = await stored(server, name);
    assert.equal(messages.length, 2);
    assert.notEqual(messages[1].id, old);
  });

  test("tells an error of the provider in one sentence, also to a later tab", limits, async (t) => {
    const name = freshName("error");
    const tab = await Tab.open(t, server, name);
    const error = { type: "authentication_error", message: `the key ${KEY} is wrong` };
    // The user's message, which is stored, has another spelling of what the provider says.
    await tab.send(script(name, [{ status: 401, error }, { text: "Now." }]).replace("a-key", "\\u0061-key"));
    await tab.is(() => document.getElementById("status").textContent === "error");
    assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["error"]);
    const later = await Tab.open(t, server, name);
    await later.is(() => document.getElementById("error").textContent !== "");
    for (const each of [tab, later]) {
      const text = await each.page.textContent("#error");
      assert.doesNotMatch(text, new RegExp(`${KEY}|127\\.0\\.0\\.1|/v1|401`));
      assert.match(text, /^[A-Z].*\.$/);
    }
    await tab.send("Once more");
    await tab.shows(new RegExp(`user: ${name}(\nassistant: )?`), "user: Once more", `assistant: ${words(5)}`);
    await tab.rests();
    await assertNoKey(server);
  });

  test("waits as long as the provider says, and tries again", limits, async (t) => {
    const name = freshName("again");
    const tab = await Tab.open(t, server, name);
    const from = (await model.journal()).length;
    await tab.send(script(name, [{ status: 429, headers: { "Retry-After": "1" } }, { words: 3 }]));
    await tab.shows(`user: ${name}`, `assistant: ${words(3)}`);
    assert.deepEqual((await tab.turns()).map(({ outcome }) => outcome), ["completed"]);
    const [first, second, ...more] = await model.requests(from);
    assert.deepEqual(more, []);
    assert.ok(second.time - first.time >= 1, `${second.time - first.time} s`);
  });

  test("text that is no frame leaves the connection usable", limits, async (t) => {
    const name = freshName("noise");
    const { socket, frames } = await openSocket(t, server, `/agents/assistant/${name}`);
    const request = (body) => JSON.stringify({ type: "cf_agent_use_chat_request", id: "r1", init: { method: "POST", body } });
    for (const text of ["no JSON", '{"type":"cf_agent_unknown"}', "{}", request(undefined), request("["), request('{"messages":[]}')])
      socket.send(text);
    socket.send(Buffer.from([1, 2, 3]));
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: "Hello" }] };
    socket.send(request(JSON.stringify({ messages: [message] })).replace("r1", "r2"));
    const isEnd = (id) => (frame) => typeof frame === "string" && frame.includes(`"${id}"`) && frame.includes('"done":true');
    await frames.waitFor(isEnd("r2"));
    const refusals = frames.entries.filter(isEnd("r1")).map((frame) => JSON.parse(frame));
    assert.equal(refusals.length, 3);
    for (const { error, body } of refusals) assert.deepEqual([error, /^[A-Z].*\.$/.test(body)], [true, true], body);
    assert.equal((await stored(server, name)).length, 2);
  });
});

describe("useAgentChat with ai 6", () => {
  let server;
  before(async () => {
    server = await start(providers[0], 6);
  });
  after(() => server?.dispose());

  test("streams, resumes and carries out a tool", limits, async (t) => {
    const name = freshName("six");
    const tab = await Tab.open(t, server, name, { version: 6 });
    await tab.send(script(name, [{ call: "locate", input: {} }], half(name)));
    // Until the end the client shows what goes on as a message of its own.
    const located = 'assistant: \\[locate output-available {"place":"Lisbon"}\\]';
    const middle = new RegExp(`${located}(\nassistant:)? ${words(4)}`);
    await tab.shows(`user: ${name}`, middle);
    await tab.page.reload();
    await tab.shows(`user: ${name}`, middle);
    await model.release(name);
    await tab.shows(`user: ${name}`, new RegExp(`${located} ${words(8)}`));
    await tab.rests();
    assert.equal((await stored(server, name)).length, 2);
  });
});
