// A library is replaced again and again while clients use it and its agents work: clients notice
// only a wait.

import assert from "node:assert/strict";
import { copyFile, mkdir, rename } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

import { connect, freshName, versions } from "./clients.mjs";
import { bundledPlugins, nextResearch, startServer } from "./server.mjs";

const CLIENTS = Number(process.env.HEARTH_RELOAD_CLIENTS ?? 50);
const RELOADS = Number(process.env.HEARTH_RELOADS ?? 20);

// One run of the work that is always under way, and one of the short ones that are waited for.
const LONG = { steps: 30, step_ms: 100 };
// A step that a version cuts off begins anew, so a short one ends between two versions on a slow
// machine too.
const SHORT = { steps: 2, step_ms: 100 };
// After this many versions the next one waits until the work of each agent has gone on from a
// checkpoint. The versions between do not wait; how many agents have gone on by then depends on the
// machine.
const RECOVERED_EVERY = 5;
const RECOVERY_DEADLINE_MS = 30_000;
const CALL_EVERY_MS = 50; // the pace of each client, so that fifty of them leave some processor to the server

const libraries = [
  { version: "1.0.0", file: path.join(bundledPlugins, "research.so") },
  { version: "2.0.0", file: nextResearch },
];

const upTo = (count) => Array.from({ length: count }, (_, i) => i + 1);
const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
const middle = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

// As `install` does: a new file takes the old one's name.
async function install(file, directory) {
  const temporary = path.join(directory, ".research.new");
  await copyFile(file, temporary);
  await rename(temporary, path.join(directory, "research.so"));
}

// A client with an agent of its own that always has work in progress. Its answers are noted, and
// compared at the end.
class Researcher {
  calls = 0;
  started = []; // runs that start() has answered with
  written = []; // [key, run] that start_once() has answered with
  contradictions = []; // announced states that contradict earlier ones
  #finished = false;
  #state = { runs: {} };
  #waiting = new Set();

  constructor(t, server, index) {
    this.name = freshName("researcher");
    this.version = versions[index % versions.length];
    const listen = (state) => this.#announced(state);
    this.connection = connect(t, this.version, server, { agent: "Research", name: this.name, onStateUpdate: listen });
  }

  get state() {
    return this.#state;
  }

  // The answer. A call that waits inside the agent when the agent must leave (result) is
  // idempotent: no client is told to try again.
  ask(method, ...args) {
    this.calls += 1;
    return this.connection.client.call(method, args);
  }

  // How often its runs have gone on from a checkpoint.
  get recoveries() {
    return total(Object.values(this.#state.runs).map((run) => run.recoveries));
  }

  async recoveredSince(before) {
    let timer;
    const late = new Promise((_, reject) => {
      const tell = () => reject(new Error(`${this.name}: ${this.recoveries} recoveries, more than ${before} expected`));
      timer = setTimeout(tell, RECOVERY_DEADLINE_MS);
    });
    await Promise.race([this.until(() => this.recoveries > before), late]).finally(() => clearTimeout(timer));
  }

  // All that it does until finish(), and then until the work has ended.
  async live() {
    await this.begin();
    await Promise.all([this.#research(), this.#write(), this.#look()]);
  }

  async begin() {
    this.started.push(await this.ask("start", "moss", LONG.steps, LONG.step_ms));
  }

  finish() {
    this.#finished = true;
  }

  // Resolves when the announced state `holds`.
  until(holds) {
    return new Promise((resolve) => {
      const check = () => {
        if (!holds(this.#state)) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  async #research() {
    for (;;) {
      const run = this.started.at(-1);
      await this.until((state) => state.runs[run]?.status === "completed");
      if (this.#finished) return;
      await this.begin();
    }
  }

  async #write() {
    for (let number = 0; !this.#finished; ++number) {
      const key = `order-${number}`;
      this.written.push([key, await this.order(key)]);
      const end = await this.ask("result", key);
      assert.equal(end.status, "completed", `${this.name}, ${key}`);
    }
  }

  order(key) {
    return this.ask("start_once", key, "ferns", SHORT.steps, SHORT.step_ms);
  }

  async #look() {
    while (!this.#finished) {
      const version = await this.ask("version");
      assert.ok(libraries.some((each) => each.version === version), version);
      const run = this.started.at(-1);
      const { completed } = await this.ask("status", run);
      const steps = await this.ask("steps", run);
      // The later answer may know more, never less.
      assert.ok(steps.length >= completed, `${this.name}: ${steps.length} rows, ${completed} announced`);
      await pause(CALL_EVERY_MS);
    }
  }

  // An announced state stays true: the server sends a state once it is safe.
  #announced(state) {
    for (const [run, before] of Object.entries(this.#state.runs)) {
      const now = state.runs[run];
      const goesOn = now && now.completed >= before.completed && now.recoveries >= before.recoveries;
      if (!goesOn) this.contradictions.push({ run, before, now });
    }
    this.#state = state;
    this.connection.frames.entries.length = 0; // thousands, which nobody looks at
    for (const check of [...this.#waiting]) check();
  }
}

// Once all work has ended, the stored data is the data that was acknowledged and announced.
async function verify(t, server, researcher) {
  const { name, started, written, state } = researcher;
  for (const run of started) assert.ok(state.runs[run], `${name}: ${run} was acknowledged and is lost`);
  for (const [key, run] of written) {
    assert.equal(await researcher.order(key), run, `${name}: ${key} was acknowledged`);
    assert.equal(state.runs[run]?.total, SHORT.steps, `${name}: ${key}`);
  }
  for (const [run, { status, completed, total: planned }] of Object.entries(state.runs)) {
    assert.deepEqual({ status, completed }, { status: "completed", completed: planned }, `${name}: ${run}`);
    // A step's row, the state and the checkpoint are one transaction: also a step that was
    // interrupted is there once.
    assert.deepEqual(await researcher.ask("steps", run), upTo(planned), `${name}: ${run}`);
  }
  assert.deepEqual(researcher.contradictions, [], name);
  assert.deepEqual(researcher.connection.closes.entries, [], `${name}: the socket stays open`);
  assert.equal(researcher.connection.opens.length, 1, name);
  assert.deepEqual(researcher.connection.refusals.entries, [], name);

  const other = connect(t, researcher.version, server, { agent: "Research", name });
  const [stored] = await other.updates.waitFor();
  assert.ok(isDeepStrictEqual(stored, state), `${name}: the state is the last that was announced`);
}

describe("replacing a library under load", () => {
  let server;
  let plugins;
  before(async () => {
    server = await startServer(async (directory) => {
      plugins = path.join(directory, "plugins");
      await mkdir(plugins);
      await install(libraries[0].file, plugins);
      return { plugins: [plugins], config: "reload:\n  quiet_time: 100ms\n" };
    });
  });
  after(async () => {
    await server?.dispose();
  });

  const what = `${CLIENTS} clients with running work stay through ${RELOADS} new versions`;
  test(what, { timeout: 280_000 }, async (t) => {
    const researchers = upTo(CLIENTS).map((_, index) => new Researcher(t, server, index));
    // A failure of one client ends the test, also while others are busy.
    const lives = Promise.all(researchers.map((each) => each.live()));
    const all = (work) => Promise.race([Promise.all(researchers.map(work)), lives.then(() => assert.fail("ended"))]);
    await all((each) => each.until(({ runs }) => Object.values(runs).some(({ completed }) => completed > 0)));

    const took = [];
    let before = new Map();
    for (let round = 1; round <= RELOADS; ++round) {
      if (round % RECOVERED_EVERY === 1) before = new Map(researchers.map((each) => [each, each.recoveries]));
      const { version, file } = libraries[round % libraries.length];
      const done = server.nextLine(/reload\.done/, /reload\.taken_back|plugin\.refused/);
      const begun = performance.now();
      await install(file, plugins);
      const line = await Promise.race([done, lives]);
      took.push(performance.now() - begun);
      assert.ok(line.includes(version), line);
      await all(async (each) => assert.equal(await each.ask("version"), version, each.name));
      if (round % RECOVERED_EVERY === 0) await all((each) => each.recoveredSince(before.get(each)));
    }
    for (const each of researchers) each.finish();
    await lives;
    await Promise.all(researchers.map((each) => verify(t, server, each)));

    const metrics = await (await fetch(`http://${server.host}/metrics`)).text();
    assert.match(metrics, new RegExp(`^hearth_reloads_total ${RELOADS}$`, "m"));
    const sum = (field) => total(researchers.map(field));
    t.diagnostic(`from the new file to reload.done: ${middle(took).toFixed(0)} ms, at most ${Math.max(...took).toFixed(0)} ms`);
    t.diagnostic(
      `${sum((each) => each.calls)} calls, all answered the first time; ` +
        `${sum((each) => Object.keys(each.state.runs).length)} runs, ${sum((each) => each.recoveries)} times recovered; ` +
        `${sum((each) => each.connection.closes.length)} sockets closed`,
    );
  });
});
