// An agent's WebSocket, as any client of the agent has it.

import { nameInPath, parse } from "./api.js";
import { isObject, jsonOf } from "./chat.js";

const MOST_FAILURES = 3; // of a connection that was never open

// The path of the agent: a sub-agent's name is the path to it, "Inbox/user-123/Chat/first".
export function socketPath(agentClass, name, classes) {
  const segment = (each) => classes.find((known) => known.class === each)?.path.split("/").at(-1) ?? each.replace(/(?<=.)([A-Z])/g, "-$1").toLowerCase();
  const steps = name.split("/");
  steps.splice(steps.length - 1, 0, agentClass); // the class of the last name
  if (steps.length === 2) return `/agents/${segment(agentClass)}/${nameInPath(name)}`;
  const pairs = [];
  for (let at = 0; at < steps.length; at += 2) pairs.push(`${segment(steps[at])}/${nameInPath(steps[at + 1])}`);
  return `/agents/${pairs.join("/sub/")}`;
}

// Keeps a connection until close(), and makes it anew when it breaks. Calls back:
// onState("connecting" | "open" | "closed", why, final) and onFrame(frame). `final`: it is not made
// again.
export class AgentSocket {
  #calls = new Map(); // id -> {resolve, reject, onChunk}
  #next = 1;
  #socket = null;
  #wait = 500;
  #timer = null;
  #wanted = true;
  #failures = 0; // -1: it was open once

  constructor(path, token, { onState, onFrame }) {
    this.path = path;
    this.token = token.trim();
    this.onState = onState;
    this.onFrame = onFrame;
    this.#connect();
  }

  #connect() {
    this.onState("connecting");
    const url = `${location.protocol.replace("http", "ws")}//${location.host}${this.path}`;
    // A browser can send the token of a client only as a subprotocol.
    let socket;
    try {
      socket = this.token ? new WebSocket(url, ["bearer", this.token]) : new WebSocket(url);
    } catch {
      return this.onState("closed", "A browser cannot send this token: it has characters that a subprotocol may not have.", true);
    }
    this.#socket = socket;
    socket.onopen = () => {
      this.#failures = -1;
      this.#wait = 500;
      this.onState("open");
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") return;
      const frame = jsonOf(data, parse);
      if (!isObject(frame)) return;
      if (frame.type === "rpc") this.#answer(frame);
      else this.onFrame(frame);
    };
    socket.onclose = ({ code, reason }) => {
      for (const call of this.#calls.values()) call.reject(new Error("The connection broke before the answer came."));
      this.#calls.clear();
      if (!this.#wanted) return;
      if (this.#failures >= 0) this.#failures += 1;
      const isRefused = code === 1008 || (code >= 4400 && code < 4500);
      const isFinal = isRefused || this.#failures === MOST_FAILURES;
      const why = isRefused ? `The server refuses this client (${code}).` : isFinal ? "No connection could be made. The agent may ask its clients for a token." : "The connection broke; it is made again.";
      this.onState("closed", reason || why, isFinal);
      if (isFinal) return;
      this.#timer = setTimeout(() => this.#connect(), this.#wait);
      this.#wait = Math.min(this.#wait * 2, 8000);
    };
  }

  #answer(frame) {
    const call = this.#calls.get(frame.id);
    if (!call) return;
    if (frame.success && frame.done === false) return call.onChunk?.(frame.result);
    this.#calls.delete(frame.id);
    if (frame.success) call.resolve(frame.result);
    else call.reject(new Error(frame.error));
  }

  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  call(method, args, onChunk) {
    return new Promise((resolve, reject) => {
      const id = String(this.#next++);
      this.#calls.set(id, { resolve, reject, onChunk });
      if (!this.send({ type: "rpc", id, method, args })) {
        this.#calls.delete(id);
        reject(new Error("There is no connection now."));
      }
    });
  }

  close() {
    this.#wanted = false;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }
}
