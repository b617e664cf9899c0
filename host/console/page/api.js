// Requests to this server, and whether it answers.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

// ---- JSON whose numbers are shown, and sent again, as they were written ----

const reviver = (isLost) => (_, value, context) => (typeof value === "number" && JSON.rawJSON && isLost(value, context.source) ? JSON.rawJSON(context.source) : value);
const ofAnswer = reviver((value, source) => !Number.isSafeInteger(value) && /^-?\d+$/.test(source));
const ofPerson = reviver((value, source) => String(value) !== source);

// An integer that a number of JavaScript would round becomes what JSON.stringify() writes exactly.
export const parse = (text) => JSON.parse(text, ofAnswer);

// What a person has typed, each number as it stands there. Throws SyntaxError.
export function typed(text) {
  const value = JSON.parse(text, ofPerson);
  if (!JSON.rawJSON && /\d{16}/.test(text.replace(/"(\\.|[^"\\])*"/g, ""))) throw new Error("This browser may round the number: send it from the command line, or with a newer browser.");
  return value;
}

// ---- requests ----

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// ---- a value that components watch ----

export function watchable(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const watcher of [...watchers]) watcher(next);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

export function useWatched(watched) {
  const [value, set] = useState(watched.get());
  useEffect(() => {
    set(watched.get());
    return watched.watch(set);
  }, [watched]);
  return value;
}

// ---- requests ----

// The session's key comes with the link, and stays in this tab: pages of agents have this origin
// too, and could read what is kept for all tabs.
const given = /^#key=(\w+)$/.exec(location.hash);
if (given) {
  sessionStorage.setItem("key", given[1]);
  history.replaceState(null, "", location.pathname);
}
const key = sessionStorage.getItem("key");

// "ok"; "away": the server does not answer; "over": the session has ended; "none": this tab has no
// session.
export const link = watchable(key ? "ok" : "none");

// A proxy says that the server is not there now. The server's own answers are JSON.
const isOfProxy = ({ status, headers }) => status >= 502 && status <= 504 && !headers.get("Content-Type")?.startsWith("application/json");

async function send(method, path, options = {}) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options, method, headers: { "X-Hearth-Console": key ?? "", ...options.headers } });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    link.set("away");
    throw new Failure(0, "The server does not answer.");
  }
  if (response.status === 401) {
    link.set("over");
    throw new Failure(401, "The session has ended.");
  }
  link.set(isOfProxy(response) ? "away" : "ok");
  return response;
}

async function answerOf(response) {
  const text = await response.text();
  let json;
  try {
    json = text === "" ? null : parse(text);
  } catch {
    throw new Failure(response.status, `The server's answer cannot be read (status ${response.status}).`);
  }
  if (!response.ok) throw new Failure(response.status, json?.error?.message ?? json?.error ?? `Status ${response.status}`);
  return json;
}

export async function ask(method, path, body, signal) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  return answerOf(await send(method, path, { signal, headers, body: body === undefined ? undefined : JSON.stringify(body) }));
}

export async function askText(path) {
  const response = await send("GET", path);
  if (!response.ok) throw new Failure(response.status, `Status ${response.status}`);
  return response.text();
}

// Whatever the server says, this tab has no key afterwards; it can be tried again.
export async function leave() {
  sessionStorage.removeItem("key");
  const response = await send("POST", "/console/leave");
  if (response.status !== 204) throw new Failure(response.status, `The session may go on: the server answers with status ${response.status}.`);
  link.set("over");
}

// The body of an answer that does not end, piece by piece, until it ends or is cancelled.
export async function readStream(path, signal, headers, onText) {
  const response = await send("GET", path, { signal, headers });
  if (!response.ok) await answerOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) onText(part.value);
}

export const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
};

// An agent's name as lists print it, for a path: it is encoded already, as far as it must be.
export const nameInPath = (name) => name.replace(/[^\w\-.~%/!$&'()*+,;=:@[\]|]/g, encodeURIComponent);
// Encoded once more, for the console: Chromium would encode a `|`, and mean another agent.
export const agentPath = (agentClass, name, what = "agents") => `/admin/${what}/${encodeURIComponent(agentClass)}/${name.split("/").map(encodeURIComponent).join("/")}`;
export const agentLink = (agentClass, name) => `#/agent/${encodeURIComponent(agentClass)}/${nameInPath(name)}`;

// ---- in components ----

// Asks again and again, while the page is seen: {data, error, again()}. `path` null: does not ask.
// What was seen last stays while the server is away, or fails.
export function usePolled(path, milliseconds = 2000) {
  const [seen, setSeen] = useState({ path: null, data: null, error: null });
  const wake = useRef(null);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let timer;
    const look = async () => {
      clearTimeout(timer);
      if (!document.hidden) {
        try {
          const data = await ask("GET", path, undefined, stop.signal);
          if (!stop.signal.aborted) setSeen({ path, data, error: null });
        } catch (error) {
          if (stop.signal.aborted) return;
          setSeen((before) => ({ path, data: before.path === path && !(error.status > 0 && error.status < 500) ? before.data : null, error }));
        }
      }
      if (!stop.signal.aborted && link.get() !== "over") timer = setTimeout(look, milliseconds);
    };
    wake.current = look;
    look();
    const onShown = () => document.hidden || look();
    document.addEventListener("visibilitychange", onShown);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onShown);
    };
  }, [path, milliseconds]);
  const again = useCallback(() => wake.current?.(), []);
  return seen.path === path ? { ...seen, again } : { data: null, error: null, again };
}

// The classes that are served, as usePolled() has them; null until they are known.
export const usePolledClasses = () => {
  const seen = usePolled("/admin/classes", 5000);
  return { ...seen, data: seen.data?.classes ?? null };
};
export const useClasses = () => usePolledClasses().data;

// A text of a field, once a person has stopped typing.
export function useSettled(value) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 300);
    return () => clearTimeout(timer);
  }, [JSON.stringify(value)]);
  return settled;
}
