// The transcript of plugin-api/README.md, typed as printed. Each block is a terminal
// (```console NAME): a line with "$ " is typed there, the other lines must appear, and "..." stands
// for any lines. Times, the port, and how the packages came there may differ. A terminal without a
// name is no part of it (tests/docs/by_hand_test.py).

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { nodes } from "./nodes.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const hearth = path.resolve(process.env.HEARTH_BIN);
const PRINTED_ADDRESS = "127.0.0.1:8787";
const PATIENCE_MS = 120_000; // a whole first build is among it

// A shell, its output, and how much of the output was expected.
class Terminal {
  #shell;
  #text = "";
  #seen = 0;
  #news = () => {};

  constructor(directory, environment) {
    // In its own process group, so that no process of the transcript is left at the end.
    this.#shell = spawn("bash", { cwd: directory, env: environment, detached: true, stdio: ["pipe", "pipe", "inherit"] });
    this.#shell.stdout.on("data", (bytes) => {
      this.#text += bytes;
      this.#news();
    });
    this.type("exec 2>&1"); // in the order in which it is written, as a terminal has it
  }

  get text() {
    return this.#text;
  }

  type(line) {
    this.#shell.stdin.write(`${line}\n`);
  }

  // Waits for a line after those that came before; with `anywhere`, others may lie between.
  async expect(line, anywhere) {
    const pattern = new RegExp(`^${escaped(line).replace(/\d+\\\.\d s/, "\\d+\\.\\d s")}$`);
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const end = this.#text.indexOf("\n", this.#seen);
      if (end >= 0) {
        const found = this.#text.slice(this.#seen, end);
        this.#seen = end + 1;
        if (pattern.test(found)) return;
        assert.ok(anywhere, `"${found}" came instead of "${line}"`);
        continue;
      }
      if (pattern.test(this.#text.slice(this.#seen))) {
        this.#seen = this.#text.length; // curl ends no line
        return;
      }
      const left = deadline - Date.now();
      assert.ok(left > 0, `"${line}" did not come; the terminal says:\n${this.#text}`);
      let timer;
      await new Promise((resolve) => {
        this.#news = resolve;
        timer = setTimeout(resolve, left);
      });
      clearTimeout(timer);
    }
  }

  async close() {
    if (this.#shell.exitCode !== null) return;
    const closed = once(this.#shell, "close");
    process.kill(-this.#shell.pid, "SIGTERM");
    this.#shell.kill("SIGKILL"); // it waits for its child, and ignores SIGTERM meanwhile
    await closed;
  }
}

function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

let directory;
const terminals = new Map();

before(async () => {
  directory = await mkdtemp(path.join(tmpdir(), "hearth-transcript-"));
  await mkdir(path.join(directory, "bin"));
  await symlink(hearth, path.join(directory, "bin/hearth"));
  // On a terminal curl shows no progress of an answer as short as ours; on a pipe it would.
  await writeFile(path.join(directory, ".curlrc"), "silent\nshow-error\n");
});
after(async () => {
  for (const terminal of terminals.values()) await terminal.close();
  await rm(directory, { recursive: true, force: true });
});

test("the transcript of the guide for authors", async () => {
  const guide = await readFile(path.join(process.env.HEARTH_SOURCES, "plugin-api/README.md"), "utf8");
  const address = `127.0.0.1:${await freePort()}`;
  const project = path.join(directory, "greeter");
  const environment = {
    ...process.env,
    PATH: `${path.join(directory, "bin")}:${process.env.PATH}`,
    CURL_HOME: directory,
  };
  const blocks = [...guide.matchAll(/^```console (\w+)\n(.*?)^```$/gms)];
  assert.ok(blocks.length >= 5, "the transcript is gone");
  for (const [, name, lines] of blocks) {
    if (!terminals.has(name)) terminals.set(name, new Terminal(terminals.size === 0 ? directory : project, environment));
    const terminal = terminals.get(name);
    let anywhere = false;
    for (const line of lines.trimEnd().split("\n")) {
      if (line === "...") {
        anywhere = true;
      } else if (line.startsWith("$ ")) {
        if (line === "$ node greet.mjs") await bringClient(project, address);
        terminal.type(line.slice(2).replaceAll(PRINTED_ADDRESS, address).replace("hearth dev", `hearth dev --listen ${address}`));
      } else {
        await terminal.expect(line.replaceAll(PRINTED_ADDRESS, address), anywhere);
        anywhere = false;
      }
    }
  }
  assert.ok(!terminals.get("client").text.includes("disconnected"), "the client has stayed connected");
  // The project's settings are used, and the same client sees a change of them.
  const settings = path.join(project, "classes/greeter.yaml");
  const text = await readFile(settings, "utf8");
  assert.ok(text.includes("greeting: hello"));
  await writeFile(settings, text.replace("greeting: hello", "greeting: welcome"));
  await terminals.get("client").expect("well, welcome, Ann", true);
  assert.ok(!terminals.get("client").text.includes("disconnected"), "the client has stayed connected");
  for (const { name, program } of await nodes()) {
    assert.equal(await firstLine(program, "greet.mjs", project), "well, welcome, Ann", `greet.mjs with ${name}`);
    await writeFile(path.join(project, "client.mjs"), (await clientOfTheProject(project)).replaceAll(PRINTED_ADDRESS, address));
    assert.equal(await firstLine(program, "client.mjs", project), "well, welcome, Ann", `client.mjs with ${name}`);
  }
});

// The client that the README of a new project prints.
async function clientOfTheProject(project) {
  const readme = await readFile(path.join(project, "README.md"), "utf8");
  const [block] = /^ {4}import (?:.*\n+)*? {4}client\.close\(\);$/m.exec(readme);
  assert.ok(block.includes(PRINTED_ADDRESS));
  return block.replace(/^ {4}/gm, "");
}

// What a program says first; it is ended then.
async function firstLine(program, file, directory) {
  const client = execFile(program, [file], { cwd: directory, timeout: PATIENCE_MS });
  const closed = once(client, "close");
  let text = "";
  let mistakes = "";
  client.stderr.on("data", (more) => (mistakes += more));
  await new Promise((resolve) => {
    client.stdout.on("data", (more) => (text += more).includes("\n") && resolve());
    client.on("close", resolve);
  });
  client.kill();
  await closed;
  return text.split("\n")[0] || mistakes;
}

// As the text before the command says, with the packages of these tests.
async function bringClient(project, address) {
  const text = await readFile(path.join(process.env.HEARTH_PRINTED_CLIENTS, "greet.mjs"), "utf8");
  assert.ok(text.includes(PRINTED_ADDRESS));
  await writeFile(path.join(project, "greet.mjs"), text.replaceAll(PRINTED_ADDRESS, address));
  await mkdir(path.join(project, "node_modules"));
  await symlink(path.join(here, "node_modules/agents-032"), path.join(project, "node_modules/agents"));
  await symlink(path.join(here, "node_modules/ws"), path.join(project, "node_modules/ws"));
}
