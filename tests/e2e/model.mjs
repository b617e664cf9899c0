// The model server of packaging/model_server for a test file, and servers whose class `assistant`
// asks it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { bundledPlugins, startServer, testPlugins } from "./server.mjs";

export const sources = process.env.HEARTH_SOURCES ?? fileURLToPath(new URL("../..", import.meta.url));
export const KEY = "a-key-of-a-provider";
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 10;

// The text of a message that tells the model what to answer (packaging/model_server --help).
export const script = (name, ...steps) => `${name}\n\`\`\`json\n${JSON.stringify(steps)}\n\`\`\``;

export class Model {
  static async start() {
    const program = path.join(sources, "packaging/model_server");
    const child = spawn("python3", [program, "--words", "5", "--rate", "0", "--key", KEY], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(child.stdout.setEncoding("utf8"), "data");
    return new Model(child, line.trim().split("//")[1]);
  }

  constructor(child, host) {
    this.child = child;
    this.host = host;
  }

  stop() {
    this.child.kill();
  }

  async release(name) {
    await fetch(`http://${this.host}/release/${name}`, { method: "POST" });
  }

  // What has happened since: the lines of its journal behind `from`.
  async journal(from = 0) {
    const text = await (await fetch(`http://${this.host}/journal`)).text();
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.slice(from).map((line) => JSON.parse(line));
  }

  async requests(from) {
    return (await this.journal(from)).filter(({ event }) => event === "request");
  }

  async until(holds, from) {
    for (const end = performance.now() + WAIT_MS; ; ) {
      const lines = await this.journal(from);
      const found = lines.find(holds);
      if (found) return found;
      if (performance.now() > end) throw new Error(`no such line of the journal: ${JSON.stringify(lines)}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }
}

// The dialects, with how a server speaks them that is configured so.
// A picture of a user, and the form in which each provider gets it.
const data = "iVBORw0KGgo=";
export const picture = { type: "file", mediaType: "image/png", url: `data:image/png;base64,${data}` };
export const providers = [
  {
    name: "OpenAI Responses",
    path: "/v1/responses",
    resumable: true,
    options: { provider: "openai-responses", background: true },
    picture: { type: "input_image", image_url: picture.url },
  },
  {
    name: "chat/completions",
    path: "/v1/chat/completions",
    resumable: false,
    options: { provider: "chat-completions" },
    picture: { type: "image_url", image_url: { url: picture.url } },
  },
  {
    name: "Anthropic Messages",
    path: "/v1/messages",
    resumable: false,
    options: { provider: "anthropic" },
    picture: { type: "image", source: { type: "base64", media_type: "image/png", data } },
  },
];

// The classes of a server: `assistant`, and `guide` (tests/agents/guide_agent.cpp), whose frames
// have the usual limit, and which drops a message that comes while a turn runs. `host`: of the
// model. `tools`: the address of the server of the tool `refund`; `elsewhere`: of the tool `peek`,
// whose requests egress.allow does not let out. `origin`: of the pages.
export function startAssistant(
  provider,
  { host },
  { tools = "127.0.0.1:1", elsewhere = "127.0.0.1:1", origin = "http://localhost" } = {},
) {
  return startServer(async (root) => {
    const [classes, plugins] = ["classes", "plugins"].map((name) => path.join(root, name));
    for (const directory of [classes, plugins]) await mkdir(directory);
    await copyFile(path.join(bundledPlugins, "assistant.so"), path.join(plugins, "assistant.so"));
    await copyFile(path.join(testPlugins, "guide-agent.so"), path.join(plugins, "guide-agent.so"));
    await writeFile(path.join(classes, "model.key"), KEY, { mode: 0o600 });
    const settings = {
      evict_grace: "100ms",
      egress: { allow: [host, tools], secrets: { model: "model.key" } },
      options: {
        ...provider.options,
        base_url: `http://${host}/v1`,
        model: "scripted",
        credential: "model",
        system: "Answer in words.",
      },
    };
    const refund = {
      name: "refund",
      description: "Refunds an order.",
      schema: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
      http: { method: "POST", url: `http://${tools}/refund/{order}`, effect: "unsafe" },
      approval: true,
    };
    const peek = { name: "peek", description: "Looks elsewhere.", http: { url: `http://${elsewhere}/` } };
    const all = {
      guide: { ...settings, options: { ...settings.options, concurrency: "drop" } },
      assistant: { ...settings, limits: { max_frame: "32MiB" }, options: { ...settings.options, tools: [refund, peek] } },
    };
    for (const [name, file] of Object.entries(all))
      await writeFile(path.join(classes, `${name}.yaml`), JSON.stringify({ class: name, ...file }));
    const config = `classes: classes\ncors: {origins: ["${origin}"]}\nreload: {quiet_time: 100ms}\n`;
    return { plugins: [plugins], config };
  });
}
