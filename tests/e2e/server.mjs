// Runs the real server binary for a test file: start, stop, kill, start again on the same port and
// data.
//
// HEARTH_BIN           the binary               (default: the release build of this tree)
// HEARTH_PLUGINS       the bundled plugins      (default: beside it)
// HEARTH_TEST_PLUGINS  plugins made for tests   (default: beside it)
// HEARTH_NEXT_RESEARCH research as its next version

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = path.dirname(fileURLToPath(import.meta.url));
const build = path.resolve(here, "../../build/release");
const binary = path.resolve(process.env.HEARTH_BIN ?? path.join(build, "host/hearth"));
export const bundledPlugins = path.resolve(process.env.HEARTH_PLUGINS ?? path.join(build, "plugins"));
export const nextResearch = path.resolve(
  process.env.HEARTH_NEXT_RESEARCH ?? path.join(build, "tests/agents/research-2.so"),
);
export const testPlugins = path.resolve(process.env.HEARTH_TEST_PLUGINS ?? path.join(build, "tests/agents"));
const pluginDirectories = [bundledPlugins, testPlugins];

const READY = /listening on (\S+)/;
const START_DEADLINE_MS = 20_000;
const STOP_DEADLINE_MS = 15_000;
const LINE_DEADLINE_MS = 30_000;
const KEPT_LOG_BYTES = 64 * 1024;

function withDeadline(promise, milliseconds, what) {
  let timer;
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${milliseconds} ms`)), milliseconds);
  });
  return Promise.race([promise, deadline]).finally(() => clearTimeout(timer));
}

// One server and its data directory, over any number of lives of the process.
export class Server {
  #process = null;
  #exited = null;
  #log = "";
  #line = ""; // the last line, as far as it has come
  #listeners = new Set(); // of lines
  #port = 0; // 0 until the first life has picked one; later lives take the same

  // Options: `plugins`, the directories of libraries; `config`, the text of a configuration file.
  constructor(directory, { plugins = pluginDirectories, config } = {}) {
    this.directory = directory;
    this.plugins = plugins;
    this.config = config;
  }

  get host() {
    return `127.0.0.1:${this.#port}`;
  }

  get log() {
    return this.#log;
  }

  async start() {
    const args = ["serve", "--listen", `127.0.0.1:${this.#port}`, "--data", path.join(this.directory, "data")];
    for (const directory of this.plugins) args.push("--plugins", directory);
    if (this.config !== undefined) {
      const file = path.join(this.directory, "hearth.yaml");
      await writeFile(file, this.config);
      args.push("--config", file);
    }
    // Away from the tree, so that no configuration file of a developer is found.
    const child = spawn(binary, args, { cwd: this.directory, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    this.#exited = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: null, signal: null, error }));
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    child.stderr.on("data", (bytes) => this.#keep(bytes));

    const ready = new Promise((resolve, reject) => {
      let output = "";
      child.stdout.on("data", (bytes) => {
        this.#keep(bytes);
        output += bytes;
        const match = READY.exec(output);
        // The whole line must be there, or the port may be cut.
        if (match && output.includes("\n", match.index)) resolve(match[1]);
      });
      this.#exited.then((end) =>
        reject(new Error(`the server ended before it was ready (${JSON.stringify(end)}${end.error ?? ""})`)),
      );
    });
    try {
      const address = await withDeadline(ready, START_DEADLINE_MS, "start of the server");
      this.#port = Number(address.slice(address.lastIndexOf(":") + 1));
    } catch (error) {
      child.kill("SIGKILL");
      error.message += `\n--- log of the server ---\n${this.#log}`;
      throw error;
    }
    return this;
  }

  // The next line of the log, from now on, that matches the expression `wanted`. A line that
  // matches `unwanted` fails the wait.
  nextLine(wanted, unwanted) {
    let listener;
    const line = new Promise((resolve, reject) => {
      listener = (text) => {
        if (wanted.test(text)) resolve(text);
        if (unwanted?.test(text)) reject(new Error(`the server says: ${text}`));
      };
      this.#listeners.add(listener);
    });
    return withDeadline(line, LINE_DEADLINE_MS, `a line ${wanted} of the log`).finally(() =>
      this.#listeners.delete(listener),
    );
  }

  // Asks it to stop, as a service manager would. The exit status is the caller's to judge.
  async stop() {
    return this.#end("SIGTERM");
  }

  // As a power cut would: no handler runs.
  async kill() {
    return this.#end("SIGKILL");
  }

  // What an administrator's command prints, as in evict("assistant", "a").
  async command(...args) {
    const { stdout } = await promisify(execFile)(binary, [...args, "--data", path.join(this.directory, "data")]);
    return stdout;
  }

  get pid() {
    return this.#process.pid;
  }

  async dispose() {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) {
      await this.kill();
    }
    await rm(this.directory, { recursive: true, force: true });
  }

  async #end(signal) {
    this.#process.kill(signal);
    try {
      return await withDeadline(this.#exited, STOP_DEADLINE_MS, `end of the server after ${signal}`);
    } catch (error) {
      this.#process.kill("SIGKILL");
      error.message += `\n--- log of the server ---\n${this.#log}`;
      throw error;
    }
  }

  #keep(bytes) {
    this.#log = (this.#log + bytes).slice(-KEPT_LOG_BYTES);
    const lines = (this.#line + bytes).split("\n");
    this.#line = lines.pop();
    for (const line of lines) for (const listener of [...this.#listeners]) listener(line);
  }
}

// `prepare(directory)` may put files there first, and tells the options of the server.
export async function startServer(prepare = async () => ({})) {
  const directory = await mkdtemp(path.join(tmpdir(), "hearth-e2e-"));
  const server = new Server(directory, await prepare(directory));
  try {
    return await server.start();
  } catch (error) {
    await server.dispose();
    throw error;
  }
}
