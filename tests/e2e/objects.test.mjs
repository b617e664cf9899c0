// Clients of objects: clients/js, and the npm package agentkernel as it is. Each program runs by
// itself, with each Node from 20 on.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { nodes } from "./nodes.mjs";
import { startServer } from "./server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const library = process.env.HEARTH_SEED_COUNTER ?? path.join(here, "../../build/release/tests/agents/seed-counter.so");
const clients = path.join(process.env.HEARTH_SOURCES ?? path.join(here, "../.."), "clients/js");
const limits = { timeout: 30_000 };
const KEY = "0123456789abcdef-of-objects";
const run = promisify(execFile);

// As the page prints it on which the surface of `client.objects` was first told, imports apart.
const PRINTED_FIRST = `
const client = new AgentKernel();

const result = await client.objects.call("counter", "user-123", {
  method: "increment",
  args: { amount: 5 },
});

const info = await client.objects.get("counter", "user-123");
await client.objects.delete("counter", "user-123");

await client.objects.setAlarm("counter", "user-123", {
  method: "reset",
  fireAt: "2026-02-16T00:00:00Z",
});
`;
const OURS = `import { Hearth as AgentKernel } from "hearth-client";\n`;

const README = /^```js\n(.*?)^```$/ms;

async function serveCounter(directory, file) {
  await mkdir(path.join(directory, "plugins"));
  await mkdir(path.join(directory, "classes"));
  await copyFile(file, path.join(directory, "plugins/counter.so"));
  await writeFile(path.join(directory, "classes/counter.yaml"), "class: counter\nobjects: true\n");
  await writeFile(path.join(directory, "key"), `${KEY}\n`, { mode: 0o600 });
  return { plugins: [path.join(directory, "plugins")], config: "objects: {token_file: key}\n" };
}

let server;
before(async () => {
  server = await startServer((directory) => serveCounter(directory, library));
});
after(async () => {
  await server?.dispose();
});

// What a program prints, line by line.
async function outputOf(program, text, environment = {}) {
  const { stdout } = await run(program, ["--input-type=module", "--eval", text], {
    cwd: here,
    env: { PATH: process.env.PATH, ...environment },
    timeout: 20_000,
  });
  return stdout.trimEnd().split("\n");
}

function ours() {
  return { HEARTH_URL: `http://${server.host}`, HEARTH_TOKEN: KEY };
}

// A server that answers as `script` says, one entry a request: [status, body, headers], or null to
// cut the connection. Returns its URL and the requests that it has seen.
async function scripted(t, script) {
  const seen = [];
  const scriptedServer = createServer((request, response) => {
    let body = "";
    request.on("data", (bytes) => (body += bytes));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body });
      const step = script.shift();
      if (step === null) return request.socket.destroy();
      response.writeHead(step[0], { Connection: "close", ...step[2] });
      response.end(JSON.stringify(step[1]));
    });
  });
  await new Promise((resolve) => scriptedServer.listen(0, "127.0.0.1", resolve));
  t.after(() => scriptedServer.close());
  return { url: `http://127.0.0.1:${scriptedServer.address().port}/`, seen };
}

const refusal = (status, code, retryable) => [status, { success: false, error: "x", code, retryable }, {}];
const BUSY = refusal(503, "sandbox_unavailable", true);
const DONE = [200, { success: true, data: 7, result: 7 }, {}];

const found = (await nodes()).filter(({ name }) => Number(/\d+/.exec(name)[0]) >= 20);

test("there is a Node to test with", () => {
  assert.ok(found.length >= 1);
});

for (const { name, program } of found) {
  describe(`objects with ${name}`, () => {
    test("what was printed first runs, imports apart", limits, async () => {
      const text = `${OURS}${PRINTED_FIRST}console.log(result.value, info.status, info.storage.count);`;
      assert.deepEqual(await outputOf(program, text, ours()), ["5 Active 5"]);
    });

    test("the README runs as printed, with the counter that ships", limits, async (t) => {
      const shipped = path.join(process.env.HEARTH_PLUGINS, "counter.so");
      const asPrinted = await startServer((directory) => serveCounter(directory, shipped));
      t.after(() => asPrinted.dispose());
      const [, text] = README.exec(await readFile(path.join(clients, "README.md"), "utf8"));
      const expected = [...text.matchAll(/console\.log\(.*\/\/ (.+)$/gm)].map(([, line]) => line);
      const lines = await outputOf(program, text, { HEARTH_URL: `http://${asPrinted.host}`, HEARTH_TOKEN: KEY });
      assert.equal(expected.length, 3);
      assert.deepEqual([...lines.slice(0, 2), lines.at(-1)], expected);
      assert.match(lines[2], /^ann 20/);
    });

    test("both spellings, any id, and pages", limits, async () => {
      const text = `${OURS}
        const { objects } = new AgentKernel();
        const ids = ["a/b", "a b", "..%2F", "ü"];
        for (const id of ids) await objects.call("counter", id, { method: "increment", args: { amount: 1 } });
        const listed = (await objects.list({ class_name: "counter" })).map((each) => each.objectId);
        console.log(ids.every((id) => listed.includes(id)));
        const at = new Date("2999-02-16T00:00:00Z");
        console.log((await objects.set_alarm("counter", "a b", { method: "reset", fire_at: at })).replaced);
        console.log((await objects.setAlarm("counter", "a b", { method: "reset", delay_seconds: 99 })).replaced);
        for (const id of ids) await objects.delete("counter", id);
        await objects.get("counter", "a b").catch((error) => console.log(error.name, error.status, error.code));
        const wrong = new AgentKernel({ token: "wrong-${KEY}" });
        await wrong.objects.list().catch((error) => console.log(error.status, error.code));`;
      assert.deepEqual(await outputOf(program, text, ours()), [
        "true",
        "false",
        "true",
        "HearthError 404 object_not_found",
        "401 unauthorized",
      ]);
    });

    test("a call is sent again with its key, and only if that may help", limits, async (t) => {
      const running = refusal(409, "call_in_progress", false);
      const proxy = [502, "<html>", {}];
      const script = [null, BUSY, running, DONE, proxy, DONE, refusal(504, "call_timeout", false), refusal(429, "limit_exceeded", false), BUSY, BUSY, BUSY, DONE, null, proxy, null];
      const { url, seen } = await scripted(t, script);
      const text = `${OURS}
        const client = new AgentKernel({ url: "${url}", token: "t" });
        const call = (c) => c.objects.call("counter", "a", { method: "m" });
        const told = (error) => console.log(error.code, error.retryable);
        console.log(await call(client), await call(client));
        await call(client).catch(told);
        await call(client).catch(told);
        await call(new AgentKernel({ url: "${url}", retries: 1 })).catch(told);
        console.log(await client.objects.delete("counter", "a"));
        await client.objects.delete("counter", "a").catch(told);
        await client.objects.delete("counter", "a").catch(told);
        await client.objects.setAlarm("counter", "a", { method: "m", delaySeconds: 0 }).catch(told);`;
      assert.deepEqual(await outputOf(program, text), [
        "7 7",
        "call_timeout false",
        "limit_exceeded false",
        "sandbox_unavailable true",
        "undefined",
        "no_answer true",
        "http_error true",
        "no_answer true",
      ]);
      const keys = seen.map(({ headers }) => headers["idempotency-key"]);
      assert.equal(new Set(keys.slice(0, 4)).size, 1);
      assert.equal(new Set(keys.slice(4, 6)).size, 1);
      assert.equal(new Set(keys.slice(0, 10)).size, 5);
      assert.equal(new Set(seen.slice(0, 4).map(({ body }) => body)).size, 1);
      assert.equal(seen[0].headers.authorization, "Bearer t");
      assert.equal(seen.length, 15);
    });

    test("a redirect is refused and takes no key along", limits, async (t) => {
      const elsewhere = await scripted(t, [DONE, DONE]);
      const { url, seen } = await scripted(t, [[307, "", { Location: `${elsewhere.url}objects` }]]);
      const text = `${OURS}
        const client = new AgentKernel({ url: "${url}", token: "t" });
        await client.objects.call("counter", "a", { method: "m" })
          .catch((error) => console.log(error.status, error.code, error.retryable));`;
      assert.deepEqual(await outputOf(program, text), ["307 http_error false"]);
      assert.equal(seen.length, 1);
      assert.equal(elsewhere.seen.length, 0);
    });

    test("it waits as long as the server says", limits, async (t) => {
      const patient = [503, BUSY[1], { "Retry-After": "1" }];
      const { url } = await scripted(t, [patient, DONE]);
      const text = `${OURS}
        const began = performance.now();
        await new AgentKernel({ url: "${url}" }).objects.call("counter", "a", { method: "m" });
        console.log(performance.now() - began >= 999);`;
      assert.deepEqual(await outputOf(program, text), ["true"]);
    });

    test("C1: agentkernel@0.18.1 does what it can", limits, async () => {
      const text = `
        import { AgentKernel, AuthError, NotFoundError, ValidationError } from "agentkernel";
        const client = new AgentKernel();
        const made = await client.createObject({ class: "counter", object_id: "c/1", storage: { note: "x" } });
        console.log(made.class, made.object_id, made.status);
        console.log(await client.callObject("counter", "c/1", "increment", { amount: 2 }));
        const shown = await client.getObject(made.id);
        console.log(shown.status, shown.storage);
        console.log((await client.patchObject(made.id, { storage: { note: "y" } })).storage);
        console.log((await client.listObjects()).filter((each) => each.object_id === "c/1").length);
        console.log((await client.deleteObject(made.id)).object_id);
        const failed = async (promise, kind) => console.log(await promise.catch((e) => e instanceof kind && e.message));
        await failed(client.getObject(made.id), NotFoundError);
        await failed(client.createObject({ class: "counter" }), ValidationError);
        await failed(client.callObject("nothing", "a", "m"), NotFoundError);
        await failed(new AgentKernel({ apiKey: "wrong-${KEY}" }).listObjects(), AuthError);`;
      const environment = { AGENTKERNEL_BASE_URL: `http://${server.host}`, AGENTKERNEL_API_KEY: KEY };
      assert.deepEqual(await outputOf(program, text, environment), [
        "counter c/1 Hibernating",
        "{ value: 2 }",
        "Active { count: 2, note: 'x' }",
        "{ count: 2, note: 'y' }",
        "1",
        "c/1",
        "there is no such object",
        "`class` and `object_id` must be texts",
        "there are no objects of such a class",
        "send the key of objects, or the administrators' token: Authorization: Bearer KEY or X-Api-Key: KEY",
      ]);
    });
  });
}

test("the types are those of what is printed, and refuse what is not there", limits, async (t) => {
  const scratch = await mkdtemp(path.join(here, "types-"));
  t.after(() => rm(scratch, { recursive: true }));
  const [, readme] = README.exec(await readFile(path.join(clients, "README.md"), "utf8"));
  const wrong = `import { Hearth } from "hearth-client";
    // @ts-expect-error: a method must be named
    await new Hearth().objects.call("counter", "a", {});
    // @ts-expect-error: there is no such status
    await new Hearth().objects.list({ status: "Deleted" });
    const value: { value: number } = await new Hearth().objects.call("c", "a", { method: "get" });\n`;
  await writeFile(path.join(scratch, "readme.mts"), readme);
  await writeFile(path.join(scratch, "first.mts"), OURS + PRINTED_FIRST + "export {};\n");
  await writeFile(path.join(scratch, "wrong.mts"), wrong);
  const options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"];
  const files = ["readme.mts", "first.mts", "wrong.mts"].map((file) => path.join(scratch, file));
  const compiler = path.join(here, "node_modules/typescript/bin/tsc");
  try {
    await run(process.execPath, [compiler, ...options, ...files], { cwd: here });
  } catch (mistakes) {
    assert.fail(mistakes.stdout);
  }
});

test("a mistake of the caller is told at once, and is no server that does not answer", limits, async (t) => {
  const { url, seen } = await scripted(t, []);
  const text = `${OURS}
    const circular = {};
    circular.self = circular;
    const call = (url, call) => new AgentKernel({ url }).objects.call("counter", "a", { method: "m", ...call });
    for (const wrong of [
      () => call("${url}", { args: [10n] }),
      () => call("${url}", { args: circular }),
      () => call("${url}", { idempotencyKey: "\\u0416" }),
      () => call("127.0.0.1:8787"),
      () => call("localhost:8787"),
    ]) await wrong().catch((error) => console.log(error.name));`;
  assert.deepEqual(await outputOf(process.execPath, text), Array(5).fill("TypeError"));
  assert.equal(seen.length, 0);
});
