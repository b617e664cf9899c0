// Chats as a bare WebSocket sees them: what the npm client does not send, or does not show. The
// model is packaging/model_server, or one that answers with recordings.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { Worker } from "node:worker_threads";

import WebSocket from "ws";

import { Recording, freshName } from "./clients.mjs";
import { KEY, Model, providers, script, sources, startAssistant } from "./model.mjs";

const limits = { timeout: 60_000 };
const WAIT_MS = 30_000; // ten megabytes are parsed many times
const ROUND_MS = 600;
const FLOOR_MS = 3; // a slice of the scheduler
const CYCLE_MS = 200; // attacks come as often to either server
const words = (count) => Array.from({ length: count }, (_, i) => `word${i + 1}`).join(" ");
const says = (text, id = "m1") => ({ id, role: "user", parts: [{ type: "text", text }] });

class Chat {
  // `frames`: parsed, with the `chunk` of a response.
  static async join(t, server, name, agent = "assistant") {
    const socket = new WebSocket(`ws://${server.host}/agents/${agent}/${name}`);
    t.after(() => socket.terminate());
    const chat = new Chat(socket);
    await new Promise((resolve, reject) => {
      socket.once("open", resolve);
      socket.once("error", reject);
    });
    socket.on("error", () => {});
    return chat;
  }

  constructor(socket) {
    this.socket = socket;
    this.frames = new Recording("frames");
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("message", (data) => {
      const frame = JSON.parse(data);
      if (frame.type === "cf_agent_use_chat_response" && !frame.error && frame.body) frame.chunk = JSON.parse(frame.body);
      this.frames.add(frame);
    });
  }

  send(frame) {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  ask(id, body) {
    this.send(requestFrame(id, JSON.stringify(body)));
  }

  say(id, text, more) {
    this.ask(id, { messages: [says(text, `of ${id}`)], ...more });
  }

  responses(id) {
    return this.frames.entries.filter((frame) => frame.type === "cf_agent_use_chat_response" && frame.id === id);
  }

  text(id) {
    return this.responses(id).map(({ chunk }) => chunk?.delta ?? "").join("");
  }

  shows(id, text) {
    return this.frames.waitFor(() => this.text(id) === text);
  }

  end(id) {
    const isEnd = (frame) => frame.type === "cf_agent_use_chat_response" && frame.id === id && frame.done;
    return this.frames.waitFor(isEnd, 0, WAIT_MS);
  }

  // All frames that come before the answer to a call that is sent behind `send()`.
  #calls = 0;
  async before(send) {
    const from = this.frames.length;
    const id = `call ${(this.#calls += 1)}`;
    send();
    this.send({ type: "rpc", id, method: "none", args: [] });
    await this.frames.waitFor((frame) => frame.type === "rpc" && frame.id === id, from);
    return this.frames.entries.slice(from).filter(({ type }) => type !== "rpc");
  }

  // The one answer to a probe, without its probeId.
  #probes = 0;
  async probe() {
    const probeId = `probe ${(this.#probes += 1)}`;
    const frames = await this.before(() => this.send({ type: "cf_agent_stream_resume_request", probeId }));
    const answers = frames.filter((frame) => "probeId" in frame);
    assert.equal(answers.length, 1, JSON.stringify(frames));
    const { probeId: given, ...answer } = answers[0];
    assert.equal(given, probeId);
    return answer;
  }

  acknowledge(id) {
    this.send({ type: "cf_agent_stream_resume_ack", id });
  }
}

function requestFrame(id, body) {
  return JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
}

async function stored(server, name) {
  return (await fetch(`http://${server.host}/agents/assistant/${name}/get-messages`)).json();
}

const resuming = (id) => ({ type: "cf_agent_stream_resuming", id });
const pending = (id) => ({ type: "cf_agent_stream_pending", id });
const none = (reason) => ({ type: "cf_agent_stream_resume_none", reason });

describe("frames of chats", () => {
  let model;
  let server;
  let elsewhere; // where no request may go
  const visits = [];
  before(async () => {
    model = await Model.start();
    elsewhere = createServer((request, response) => response.end("{}"));
    elsewhere.on("connection", () => visits.push("a connection"));
    await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    server = await startAssistant(providers[1], model, { elsewhere: `127.0.0.1:${elsewhere.address().port}` });
  });
  after(async () => {
    await server?.dispose();
    elsewhere?.close();
    model?.stop();
  });

  test("a message of ten megabytes is stored and shown as it is, also after a kill", limits, async (t) => {
    const name = freshName("large");
    const [sender, other] = [await Chat.join(t, server, name), await Chat.join(t, server, name)];
    const piece = 'a "quoted" \\ text, \u0000 \u001f \u2028 é 漢 😀\r\n</script> ';
    const text = piece.repeat(Math.ceil((10 << 20) / Buffer.byteLength(piece)));
    const data = [0.1, 1e21, -1.5e-300, 2 ** 53, -(2 ** 63), null, true, "12345678901234567890", { "": [[]] }];
    const message = { ...says(text), metadata: { of: "a test" } };
    message.parts.push({ type: "data-all", id: "d", data });
    sender.ask("r1", { messages: [message] });
    for (const each of [sender, other]) assert.equal((await each.end("r1")).outcome, "completed");
    const shown = other.frames.entries.filter(({ type, connect }) => type === "cf_agent_chat_messages" && !connect);
    assert.ok(shown.length > 0);
    for (const { messages } of shown) assert.deepEqual(messages[0], message);
    await server.kill();
    await server.start();
    const [first, answer] = await stored(server, name);
    assert.deepEqual(first, message);
    assert.equal(answer.parts.at(-1).text, words(5));
  });

  test("a probe is answered once and at once, whatever the chat does", limits, async (t) => {
    const name = freshName("probe");
    const [sender, tab] = [await Chat.join(t, server, name), await Chat.join(t, server, name)];
    let probes = 0;
    // Nine of ten: a busy machine delays one now and then. That an answer leaves with nothing
    // before it, and without time, is shown on the mock host (ProbeTest).
    const answers = async (expected) => {
      const times = [];
      for (let i = 0; i < 10; ++i) {
        const begun = performance.now();
        assert.deepEqual(await tab.probe(), expected);
        times.push(performance.now() - begun);
      }
      probes += times.length;
      const late = times.filter((time) => time >= 50);
      assert.ok(late.length <= 1, `${times}`);
    };
    await answers(none("idle"));
    sender.say("r1", script(name, [{ hold: `${name}-1` }, { words: 4 }, { hold: `${name}-2` }, { words: 4 }]));
    await model.until(({ event, body }) => event === "request" && JSON.stringify(body).includes(name));
    await answers(pending("r1"));
    await model.release(`${name}-1`);
    await sender.shows("r1", words(4));
    assert.ok(tab.frames.entries.some((frame) => frame.type === "cf_agent_stream_resuming" && !("probeId" in frame)));
    await answers(resuming("r1"));
    assert.deepEqual(tab.responses("r1"), [], "nothing before its ACK");
    tab.acknowledge("r1");
    await tab.frames.waitFor(({ replayComplete }) => replayComplete);
    await model.release(`${name}-2`);
    await tab.shows("r1", words(8));
    await tab.end("r1");
    await answers(none("idle"));
    sender.say("r2", script(`${name} fails`, [{ status: 401 }]));
    assert.equal((await tab.end("r2")).outcome, "error");
    await answers(resuming("r2"));
    const answered = tab.frames.entries.filter((frame) => "probeId" in frame).map(({ probeId }) => probeId);
    assert.deepEqual([answered.length, new Set(answered).size], [probes, probes], "none comes twice or late");
  });

  test("a continuation streams to its owner, and to another tab once the owner has gone", limits, async (t) => {
    const name = freshName("owner");
    const [owner, other] = [await Chat.join(t, server, name), await Chat.join(t, server, name)];
    const call = `${name}-call`;
    owner.say("r1", script(name, [{ call: "locate", input: {}, id: call }], [{ words: 4 }, { hold: name }, { words: 4 }]), {
      clientTools: [{ name: "locate" }],
    });
    await owner.end("r1");
    owner.send({ type: "cf_agent_tool_result", toolCallId: call, toolName: "locate", output: {}, autoContinue: true });
    const { id } = await owner.probe();
    owner.acknowledge((await owner.frames.waitFor(({ type }) => type === "cf_agent_stream_resuming")).id);
    for (const each of [owner, other]) await each.shows(id, words(4));
    assert.deepEqual(await other.probe(), none("continuation-owned"));
    owner.socket.terminate();
    const from = other.frames.length;
    for (let answer = none(); answer.type !== resuming().type; ) answer = await other.probe();
    other.acknowledge(id);
    await other.frames.waitFor(({ replayComplete }) => replayComplete, from);
    await model.release(name);
    await other.end(id);
    const again = other.frames.entries.slice(from).filter((frame) => frame.id === id && frame.chunk);
    assert.deepEqual(again.map(({ seq }) => seq), again.map((_, i) => i));
    assert.equal(again.map(({ chunk }) => chunk.delta ?? "").join(""), words(8));
    const [, message, ...more] = await stored(server, name);
    assert.deepEqual(more, []);
    assert.equal(message.parts.at(-1).text, words(8));
  });

  test("a message that another tab was shown is there after a kill", limits, async (t) => {
    for (let round = 0; round < 3; ++round) {
      const name = freshName("shown");
      const [sender, other] = [await Chat.join(t, server, name), await Chat.join(t, server, name)];
      const isShown = other.frames.waitFor(({ type, messages }) => type === "cf_agent_chat_messages" && messages.length > 0);
      sender.say("r1", script(name, [{ words: 2 }]));
      await isShown;
      await server.kill();
      await server.start();
      const users = (await stored(server, name)).filter(({ role }) => role === "user");
      assert.deepEqual(users.map(({ id }) => id), ["of r1"]);
    }
  });

  // Half of the stops come before the first byte. The model's clock is the test's.
  test("a stop ends the provider's request within 100 ms", limits, async (t) => {
    const taken = [[], []];
    for (let i = 0; i < 10; ++i) {
      const name = freshName("stopped");
      const from = (await model.journal()).length;
      const client = await Chat.join(t, server, name);
      client.say("r1", script(name, [...(i % 2 ? [{ words: 2 }] : []), { hold: name }, { words: 1 }]));
      const { request } = await model.until(({ event, body }) => event === "request" && JSON.stringify(body).includes(name), from);
      if (i % 2) await model.until((line) => line.event === "first" && line.request === request, from);
      const stoppedAt = Date.now();
      client.send({ type: "cf_agent_chat_request_cancel", id: "r1" });
      const { time } = await model.until((line) => line.event === "disconnect" && line.request === request, from);
      taken[i % 2].push(time * 1000 - stoppedAt);
      assert.equal((await client.end("r1")).outcome, "aborted");
    }
    for (const each of taken) {
      const median = each.sort((a, b) => a - b)[2];
      t.diagnostic(`ms until the end of the request: ${each.map((ms) => ms.toFixed(1)).join(" ")}`);
      assert.ok(median <= 100, `${each}`);
    }
  });

  test("a tool reaches only what its class allows, and no text says what that is", limits, async (t) => {
    const name = freshName("elsewhere");
    const client = await Chat.join(t, server, name);
    client.say("r1", script(name, [{ call: "peek", input: {} }], [{ text: "A pity." }]));
    assert.equal((await client.end("r1")).outcome, "completed");
    const [, { parts }] = await stored(server, name);
    const { state, errorText } = parts.find(({ toolCallId }) => toolCallId);
    assert.equal(state, "output-error");
    assert.doesNotMatch(errorText, /127\.|:\d|\/\//);
    assert.equal(parts.at(-1).text, "A pity.");
    assert.deepEqual(visits, []);
  });

  test("a plugin gets the name of a key, and not the key", limits, async (t) => {
    const client = await Chat.join(t, server, freshName("key"), "guide");
    client.say("r1", "Hello", { show: "options" });
    assert.equal((await client.end("r1")).outcome, "completed");
    const shown = client.responses("r1").find(({ chunk }) => chunk?.type === "data-options").chunk.data;
    assert.equal(shown.credential, "model");
    assert.doesNotMatch(JSON.stringify(client.frames.entries), new RegExp(KEY));
  });

  // Each is an attack, and what it comes to: a refusal with this sentence, or the close code, or
  // nothing.
  const deep = (levels) => "[".repeat(levels) + "]".repeat(levels);
  const part = (json) => `{"messages":[{"id":"m","role":"user","parts":[${json}]}]}`;
  const toolPart = (id) => part(JSON.stringify({ type: "tool-t", toolCallId: id, state: "input-available", input: {} }));
  const long = "x".repeat(1_000_000);
  const attacks = [
    ["100,001 messages", requestFrame("r", `{"messages":[${Array(100_001).fill('{"id":"m","role":"user","parts":[]}')}]}`), "There are more than 100000 messages."],
    ["300 levels", requestFrame("r", part(`{"type":"data-a","data":${deep(300)}}`)), "The body of the request is no JSON object."],
    ["300 levels beside it", requestFrame("r", `{"messages":[${JSON.stringify(says("a"))}],"a":${deep(300)}}`), "The body of the request is no JSON object."],
    ["a million levels", `{"type":"cf_agent_chat_messages","messages":${deep(1_000_000)}}`],
    ["a call with a long id", requestFrame("r", toolPart(long)), "The call of a tool part has no id of 1 to 256 bytes."],
    ["a result for a long id", JSON.stringify({ type: "cf_agent_tool_result", toolCallId: long, output: 1, autoContinue: true })],
    ["an approval of a long id", JSON.stringify({ type: "cf_agent_tool_approval", toolCallId: long, approved: true })],
  ];

  for (const [what, frame, sentence] of attacks) {
    test(`${what}: refused`, limits, async (t) => {
      const name = freshName("attack");
      const client = await Chat.join(t, server, name);
      client.send(frame);
      client.say("r2", "Hello");
      assert.equal((await client.end("r2")).outcome, "completed");
      const refused = { type: "cf_agent_use_chat_response", id: "r", body: sentence, done: true, error: true };
      assert.deepEqual(client.responses("r"), sentence === undefined ? [] : [refused]);
      assert.equal((await stored(server, name)).length, 2);
    });
  }

  test("a frame over max_frame ends the connection, and a long id of the model is replaced", limits, async (t) => {
    const name = freshName("frame");
    const client = await Chat.join(t, server, name, "guide");
    client.send("x".repeat(4 << 20));
    client.send("x".repeat((4 << 20) + 1));
    assert.equal(await client.closed, 1009);
    const next = await Chat.join(t, server, name);
    next.say("r1", script(name, [{ call: "locate", input: {}, id: long }]), { clientTools: [{ name: "locate" }] });
    await next.end("r1");
    const [, { parts }] = await stored(server, name);
    assert.ok(parts.at(-1).toolCallId.length <= 256);
  });

  test("of ten thousand messages a hundred wait, and the others are refused", limits, async (t) => {
    const name = freshName("many");
    const client = await Chat.join(t, server, name);
    client.say("r", script(name, [{ hold: name }, { words: 1 }]));
    await model.until(({ event, body }) => event === "request" && JSON.stringify(body).includes(name));
    const isOver = new Promise((resolve) => client.socket.on("message", (data) => data.includes('"r9999"') && resolve()));
    for (let i = 0; i < 10_000; ++i) client.say(`r${i}`, "more");
    await isOver;
    const ends = client.frames.entries.filter(({ type, done }) => type === "cf_agent_use_chat_response" && done);
    assert.equal(ends.length, 9_900);
    for (const { id, error, body } of ends) assert.deepEqual([error, body], [true, "Too many messages wait for an answer."], id);
    assert.equal((await stored(server, name)).length, 101);
    const from = client.frames.length;
    client.send({ type: "cf_agent_chat_clear" });
    await client.frames.waitFor(({ id, outcome }) => id === "r99" && outcome === "skipped", from);
    assert.deepEqual(await stored(server, name), []);
  });

  // The control sends the same frames to another server on the same cores, which drops them: what
  // the calls then wait for is not Hearth. Idle is only printed.
  test("attacks take little memory, and other agents feel them no more than those of another server", limits, async (t) => {
    const peak = () => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) << 10;
    const before = peak();
    const thread = (file, workerData) => {
      const worker = new Worker(new URL(file, import.meta.url), { workerData });
      t.after(() => worker.terminate());
      return worker;
    };
    const others = thread("prober.mjs", { host: server.host });
    const [sink] = await once(thread("sink.mjs"), "message");
    const clients = { here: await Chat.join(t, server, freshName("attack")), elsewhere: await Chat.join(t, { host: sink }, "sink") };
    const during = async (work) => {
      others.postMessage("begin");
      for (const end = performance.now() + ROUND_MS; performance.now() < end; ) await work();
      others.postMessage("end");
      return (await once(others, "message"))[0];
    };
    const attack = (client) =>
      during(async () => {
        const next = performance.now() + CYCLE_MS;
        for (const [, frame] of attacks) client.send(frame);
        const id = `r${client.frames.length}`;
        client.say(id, "Hello");
        await client.end(id);
        await new Promise((resolve) => setTimeout(resolve, next - performance.now()));
      });
    const times = { idle: [], here: [], elsewhere: [] };
    for (let round = 0; round < 3; ++round) {
      times.idle.push(...(await during(() => new Promise((resolve) => setTimeout(resolve, ROUND_MS)))));
      times.elsewhere.push(...(await attack(clients.elsewhere)));
      times.here.push(...(await attack(clients.here)));
    }
    const p99 = (all) => all.sort((a, b) => a - b)[Math.floor(all.length * 0.99)];
    const [felt, control, idle] = [p99(times.here), p99(times.elsewhere), p99(times.idle)];
    t.diagnostic(`p99 of other agents' calls: ${felt} ms, with attacks on another server ${control} ms, idle ${idle} ms`);
    assert.ok(felt <= 2 * Math.max(control, FLOOR_MS), `${felt} ms, and ${control} ms of ${times.here.length} and ${times.elsewhere.length} calls`);
    assert.ok(peak() - before < 256 << 20, `${before} and ${peak()} bytes`);
  });
});

// Answers a message "NAME" once with the recording NAME, and whatever follows with "Fine.".
describe("what servers of models say", () => {
  const table = JSON.parse(readFileSync(path.join(sources, "tests/chat/chat_completions.json"), "utf8"));
  const recordings = new Map(table.map((row) => [row.name, row]));
  // With a status: how an answer of an error ends the turn.
  const refusals = new Map([
    ["LlamaCppLoads", [503, { error: { code: 503, message: "Loading model", type: "unavailable_error" } }, "completed"]],
    ["LlamaCppIsFull", [400, { error: { code: 400, message: "too long", type: "exceed_context_size_error", n_ctx: 4096 } }, "error"]],
    ["VllmIsFull", [400, { error: { message: "This model's maximum context length is 4096 tokens.", type: "BadRequestError", code: 400 } }, "error"]],
    ["OllamaHasNoModel", [404, { error: { message: 'model "x" not found', type: "not_found_error" } }, "error"]],
    ["OllamaCrashes", [500, { error: "llama runner process has terminated" }, "completed"]],
  ]);
  const asked = new Map(); // the requests of each name
  let replay;
  let server;
  before(async () => {
    replay = createServer(async (request, response) => {
      let text = "";
      for await (const piece of request) text += piece;
      const { messages } = JSON.parse(text);
      const name = messages.findLast(({ role, content }) => role === "user" && (recordings.has(content) || refusals.has(content))).content;
      asked.set(name, (asked.get(name) ?? 0) + 1);
      const isFirst = asked.get(name) === 1;
      const [status, error] = refusals.get(name) ?? [];
      if (isFirst && status) return response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(error));
      const events = isFirst ? recordings.get(name).events : [{ choices: [{ index: 0, delta: { content: "Fine." }, finish_reason: "stop" }] }, "[DONE]"];
      const { whole } = events[0];
      if (whole) return response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(whole));
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.end(events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join(""));
    });
    await new Promise((resolve) => replay.listen(0, "127.0.0.1", resolve));
    server = await startAssistant(providers[1], { host: `127.0.0.1:${replay.address().port}` });
  });
  after(async () => {
    await server?.dispose();
    replay?.close();
  });

  // The chunks of a turn between its start and its end, and how it has ended.
  async function answer(name) {
    const body = JSON.stringify({ text: name });
    const response = await fetch(`http://${server.host}/agents/assistant/${name}/chat`, { method: "POST", body });
    const events = (await response.text()).trim().split("\n\n");
    // As the recordings name calls that came without an id.
    const data = events.map((event) => JSON.parse(/^data: ?(.*)$/m.exec(event)[1].replace(/call_\d{9,}_\d+_/g, "call_a1_")));
    return { chunks: joined(data.slice(1, -1)), ...data.at(-1) };
  }
  // Deltas of one part in a row are one: how many there are is a matter of time.
  function joined(chunks) {
    const all = [];
    for (const { delta, inputTextDelta, ...chunk } of chunks) {
      const text = delta ?? inputTextDelta;
      const last = all.at(-1);
      if (text !== undefined && last?.type === chunk.type && last.id === chunk.id && last.toolCallId === chunk.toolCallId) last.text += text;
      else all.push(text === undefined ? chunk : { ...chunk, text });
    }
    return all;
  }

  test("each recording becomes its chunks, and the turn ends as it should", limits, async () => {
    for (const server of ["Vllm", "LlamaCpp", "Ollama"]) assert.ok(table.some(({ name }) => name.startsWith(server)));
    await Promise.all(
      [...recordings, ...refusals].map(async ([name, { chunks = [], failure, calls } = {}]) => {
        const got = await answer(name);
        const expected = joined(chunks);
        if (failure && "text" in (expected.at(-1) ?? {})) expected.at(-1).text += "Fine."; // goes on in the part
        assert.deepEqual(got.chunks.slice(0, expected.length), expected, name);
        const mayGoOn = !failure || /^(transient|cut):/.test(failure);
        const outcome = refusals.get(name)?.[2] ?? (mayGoOn ? "completed" : "error");
        assert.equal(got.outcome, outcome, name);
        if (outcome === "error") assert.match(got.error, /^[A-Z][^{}]*\.$/, name);
        const isAskedAgain = calls || (outcome === "completed" && (failure || refusals.has(name)));
        assert.equal(asked.get(name), isAskedAgain ? 2 : 1, name);
      }),
    );
  });
});
