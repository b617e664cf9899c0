// Calls objects of a Hearth server over HTTP. index.d.ts describes the interface, README.md its
// use. Needs only fetch: Node 20 or newer, or a browser.

const MAX_BACKOFF_MS = 5_000;
const MAX_RETRY_AFTER_MS = 60_000;
const PAGE = 1000;

export class HearthError extends Error {
  constructor(status, code, message, retryable = false) {
    super(message);
    this.name = "HearthError";
    this.status = status;
    this.code = code;
    this.retryable = retryable;
  }
}

const environment = (name) => globalThis.process?.env?.[name];

export class Hearth {
  #token;
  #timeoutMs;
  #retries;

  constructor({ url, token, timeoutMs = 35_000, retries = 3 } = {}) {
    this.url = (url ?? environment("HEARTH_URL") ?? "http://localhost:8787").replace(/\/+$/, "");
    this.#token = token ?? environment("HEARTH_TOKEN");
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.objects = new Objects((...request) => this.#request(...request));
  }

  // The body of the answer. Retries as index.d.ts says.
  async #request(method, path, body, headers = {}) {
    const repeatable = method === "GET" || "Idempotency-Key" in headers;
    for (let attempt = 0; ; ++attempt) {
      const failure = await this.#attempt(method, path, body, headers);
      if (failure.body) return failure.body;
      const { error, retryAfterMs } = failure;
      if (attempt >= this.#retries || !error.retryable) throw error;
      // If the server answers these as "retryable", it has done nothing: a limit that a method
      // reaches is not retryable. A proxy ("http_error") does not know what the server has done.
      const hasDoneNothing = [429, 503].includes(error.status) && error.code !== "http_error";
      if (!repeatable && !hasDoneNothing) throw error;
      const backoff = Math.min(100 * 2 ** attempt, MAX_BACKOFF_MS) * (0.5 + Math.random() / 2);
      await new Promise((resolve) => setTimeout(resolve, Math.max(backoff, retryAfterMs)));
    }
  }

  async #attempt(method, path, body, headers) {
    const all = { ...headers };
    if (this.#token) all.Authorization = `Bearer ${this.#token}`;
    if (body !== undefined) all["Content-Type"] = "application/json";
    // Throws for what cannot be sent, however often it is tried.
    const request = new Request(this.url + path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      redirect: "manual",  // the key is for this server alone
    });
    if (!/^https?:/.test(request.url)) throw new TypeError(`${this.url} does not begin with http:// or https://`);
    const signal = AbortSignal.timeout(this.#timeoutMs);
    let response;
    let text;
    try {
      response = await fetch(request, { signal });
      text = await response.text();
    } catch (cause) {
      const error = new HearthError(0, "no_answer", `${this.url} does not answer`, true);
      error.cause = cause;
      return { error, retryAfterMs: 0 };
    }
    const read = parsed(text);
    if (response.ok && read) return { body: read };
    const seconds = Number(response.headers.get("Retry-After") ?? 0);
    const retryAfterMs = seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : 0;
    return { error: errorOf(response.status, read), retryAfterMs };
  }
}

class Objects {
  #request;

  constructor(request) {
    this.#request = request;
  }

  async call(className, id, { method, args, idempotencyKey = freshKey() }) {
    const headers = { "Idempotency-Key": idempotencyKey };
    return (await this.#request("POST", pathOf(className, id, "call"), { method, args }, headers)).result;
  }

  async get(className, id) {
    const storage = {};
    for (let after = ""; ; ) {
      const query = new URLSearchParams({ limit: String(PAGE), after });
      const { data } = await this.#request("GET", `${pathOf(className, id)}?${query}`);
      Object.assign(storage, data.storage);
      after = data.storage_next;
      if (!after) return infoOf({ ...data, storage });
    }
  }

  async list(filter = {}) {
    const all = [];
    for await (const each of this.iterate(filter)) all.push(each);
    return all;
  }

  async *iterate({ className, class_name = className, status } = {}) {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (class_name) query.set("class", class_name);
    if (status) query.set("status", status);
    for (;;) {
      const page = await this.#request("GET", `/objects?${query}`);
      yield* page.data.map(infoOf);
      if (!page.next) return;
      query.set("cursor", page.next);
    }
  }

  async delete(className, id) {
    await this.#request("DELETE", pathOf(className, id));
  }

  async setAlarm(className, id, alarm) {
    const { method, args } = alarm;
    const fire_at = timeOf(alarm.fireAt ?? alarm.fire_at);
    const delay_seconds = alarm.delaySeconds ?? alarm.delay_seconds;
    const body = { method, args, fire_at, delay_seconds };
    return (await this.#request("POST", pathOf(className, id, "alarms"), body)).data;
  }

  set_alarm(className, id, alarm) {
    return this.setAlarm(className, id, alarm);
  }
}

function pathOf(...segments) {
  return `/objects/${segments.map(encodeURIComponent).join("/")}`;
}

// Pages without TLS have no crypto.randomUUID().
function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function timeOf(at) {
  return at instanceof Date ? at.toISOString() : at;
}

// Both spellings of each name.
function infoOf(data) {
  return {
    ...data,
    className: data.class,
    objectId: data.object_id,
    sandboxName: data.sandbox_name,
    createdAt: data.created_at,
    lastActive: data.last_active,
  };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function errorOf(status, body) {
  if (typeof body?.error !== "string") {
    // The answer comes from a proxy.
    const passes = status === 429 || status === 502 || status === 503;
    return new HearthError(status, "http_error", `HTTP status ${status}`, passes);
  }
  // In progress: the attempt before still runs. Ask again for its answer.
  const retryable = body.retryable === true || body.code === "call_in_progress";
  return new HearthError(status, body.code, body.error, retryable);
}
