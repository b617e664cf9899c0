// The clients in the documents, as printed except for the address. With each version of Node they
// must run, print what the documents say, and exit by themselves.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { nodes } from "./nodes.mjs";
import { startServer } from "./server.mjs";

const run = promisify(execFile);
const here = path.dirname(fileURLToPath(import.meta.url));
const printed = process.env.HEARTH_PRINTED_CLIENTS;
const PRINTED_ADDRESS = "127.0.0.1:8787";
const PATIENCE_MS = 20_000;
const programs = await nodes();

// What they say the first time; each run counts one further.
const clients = [
  { file: "readme-client.mjs", first: 2, says: (count) => [`state: { count: ${count} }`, `count: ${count}`] },
  { file: "east-gate.mjs", first: 1, says: (count) => [`state: { reports: ${count} }`, `reports: ${count}`] },
];

describe("what the documents print", () => {
  let server;
  let directory;

  before(async () => {
    server = await startServer(async (place) => {
      // As `npm install agents ws` leaves them; here they have other names, because there are two
      // versions.
      directory = place;
      await mkdir(path.join(place, "node_modules"));
      await symlink(path.join(here, "node_modules/agents-032"), path.join(place, "node_modules/agents"));
      await symlink(path.join(here, "node_modules/ws"), path.join(place, "node_modules/ws"));
      return { plugins: [process.env.HEARTH_PRINTED_PLUGINS] };
    });
  });
  after(() => server.dispose());

  test("the agent answers the command", async () => {
    const readme = await readFile(path.join(process.env.HEARTH_SOURCES, "README.md"), "utf8");
    const command = /^ {4}(curl .*)$/m.exec(readme)[1].replace(PRINTED_ADDRESS, server.host);
    const { stdout } = await run("bash", ["-c", command], { timeout: PATIENCE_MS });
    assert.equal(stdout, '{"count":1}');
  });

  for (const { file, first, says } of clients) {
    for (const [index, { name, program }] of programs.entries()) {
      test(`${file} runs with ${name}`, async () => {
        const text = await readFile(path.join(printed, file), "utf8");
        assert.ok(text.includes(PRINTED_ADDRESS));
        await writeFile(path.join(directory, file), text.replaceAll(PRINTED_ADDRESS, server.host));
        const { stdout } = await run(program, [file], { cwd: directory, timeout: PATIENCE_MS });
        for (const line of says(first + index)) assert.ok(stdout.split("\n").includes(line), stdout);
      });
    }
  }
});
