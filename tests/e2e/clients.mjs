// The real clients, in both versions that Hearth promises to serve. All that they report is
// recorded. For what they cannot do there is a bare WebSocket.

import { webcrypto } from "node:crypto";

import { AgentClient as AgentClient021, agentFetch as agentFetch021 } from "agents-021/client";
import { AgentClient as AgentClient032, agentFetch as agentFetch032 } from "agents-032/client";
import WebSocket from "ws";

// Node 18 has it, but not under the name that the clients look for when one is made.
globalThis.crypto ??= webcrypto;

export const versions = [
  { name: "agents@0.21.0", AgentClient: AgentClient021, agentFetch: agentFetch021 },
  { name: "agents@0.32.0", AgentClient: AgentClient032, agentFetch: agentFetch032 },
];

const WAIT_MS = 8_000;

// What happened, in order. A test waits for an entry instead of sleeping.
export class Recording {
  #waiting = new Set();

  constructor(what) {
    this.what = what;
    this.entries = [];
  }

  add(entry) {
    this.entries.push(entry);
    for (const check of [...this.#waiting]) check();
  }

  get length() {
    return this.entries.length;
  }

  // The first entry, from index `from` on, that `matches`.
  waitFor(matches = () => true, from = 0, wait = WAIT_MS) {
    return new Promise((resolve, reject) => {
      const check = () => {
        const found = this.entries.slice(from).find((entry) => matches(entry));
        if (found === undefined) return;
        this.#waiting.delete(check);
        clearTimeout(timer);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        const last = this.entries.slice(-50).map((entry) => (JSON.stringify(entry) ?? "").slice(0, 500));
        reject(new Error(`no such entry among the ${this.what}; the last ones are ${last.join("\n")}`));
      }, wait);
      this.#waiting.add(check);
      check();
    });
  }

  // When this many entries are there.
  async waitForCount(count) {
    await this.waitFor(() => this.entries.length >= count);
    return this.entries;
  }
}

// A real client that is closed with the test `t`. Options are the client's own; the recordings are
//   opens        one entry each time it (re)connects
//   updates      [state, source] of each onStateUpdate
//   stateErrors  the text of each onStateUpdateError
//   identities   [name, agent] of each onIdentity
//   refusals     the error of each onConnectionError
//   closes       {code, reason, at} of each close
//   failures     the text of each error of the socket, as when a connection is refused
//   frames       every frame as it came, text or ArrayBuffer, the protocol's own included
export function connect(t, version, server, options) {
  const recorded = {
    opens: new Recording("opens"),
    updates: new Recording("state updates"),
    stateErrors: new Recording("state errors"),
    identities: new Recording("identities"),
    refusals: new Recording("connection errors"),
    closes: new Recording("closes"),
    failures: new Recording("failures to connect"),
    frames: new Recording("frames"),
  };
  const client = new version.AgentClient({
    host: server.host,
    WebSocket,
    onStateUpdate: (state, source) => recorded.updates.add([state, source]),
    onStateUpdateError: (error) => recorded.stateErrors.add(error),
    onIdentity: (name, agent) => recorded.identities.add([name, agent]),
    onConnectionError: (error) => recorded.refusals.add(error),
    ...options,
  });
  client.binaryType = "arraybuffer";
  client.addEventListener("open", () => recorded.opens.add({ at: performance.now() }));
  client.addEventListener("close", ({ code, reason }) =>
    recorded.closes.add({ code, reason, at: performance.now() }),
  );
  client.addEventListener("error", ({ message }) => recorded.failures.add(message ?? ""));
  client.addEventListener("message", ({ data }) => recorded.frames.add(data));
  t.after(() => client.close());
  return { client, ...recorded };
}

// A bare WebSocket to `target` (path and query): `frames` are strings or Buffers, `closed` resolves
// to {code, reason}.
export async function openSocket(t, server, target) {
  const socket = new WebSocket(`ws://${server.host}${target}`);
  const frames = new Recording("frames");
  socket.on("message", (data, isBinary) => frames.add(isBinary ? data : data.toString()));
  const closed = new Promise((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  t.after(() => socket.terminate());
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  socket.on("error", () => {}); // a close follows, and the test looks at that
  return { socket, frames, closed };
}

// Matches the frame that answers the call `id`.
export function isRpcAnswer(id) {
  return (frame) => {
    if (typeof frame !== "string") return false;
    try {
      const parsed = JSON.parse(frame);
      return parsed?.type === "rpc" && parsed.id === id && "success" in parsed;
    } catch {
      return false; // some frames are no JSON on purpose
    }
  };
}

// Names of agents, so that no two tests share one.
let lastName = 0;
export function freshName(hint) {
  lastName += 1;
  return `${hint}-${lastName}`;
}
