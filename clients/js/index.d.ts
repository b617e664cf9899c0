/**
 * Objects of a Hearth server, over HTTP.
 *
 * Retries: a request is sent again if it got no answer or the answer is "retryable": `retries`
 * times, after 0.1 s, 0.2 s, 0.4 s ..., and not before the `Retry-After` of the answer. All
 * attempts of a call have the same `Idempotency-Key`, so the server runs the call once. A removal
 * and an alarm have no key: they are sent again only if the server answers 429 or 503, which says
 * that it has not taken them. Without an answer they may have been done, and a second removal could
 * remove an object that another client has made meanwhile.
 *
 * Failure: each promise is rejected with a HearthError; or with a TypeError if the request cannot
 * be sent as it is, such as one with a BigInt in `args`.
 */
export class Hearth {
  constructor(options?: HearthOptions);
  readonly url: string;
  readonly objects: Objects;
}

export interface HearthOptions {
  /** HEARTH_URL of the environment by default, or http://localhost:8787. */
  url?: string;
  /**
   * The key of objects, the administrators' token, or a token of a client of agents. HEARTH_TOKEN
   * of the environment by default.
   */
  token?: string;
  /** For one attempt; longer than the server's deadline for a call, 30 s. 35,000 by default. */
  timeoutMs?: number;
  /** How many times a request is sent again. 3 by default. */
  retries?: number;
}

export interface Objects {
  /** The result of the method. An array of `args` is positional, any other value is the only
   * argument. */
  call<Result = unknown>(className: string, id: string, call: ObjectCall): Promise<Result>;
  /** The object, with all its storage. */
  get(className: string, id: string): Promise<ObjectInfo>;
  /** All objects, or those of a class, or with a status. */
  list(filter?: ObjectFilter): Promise<ObjectInfo[]>;
  /** The same, a page at a time. */
  iterate(filter?: ObjectFilter): AsyncIterableIterator<ObjectInfo>;
  /** Removes the object, its storage and its alarms. Not sent again without an answer. */
  delete(className: string, id: string): Promise<void>;
  /** Sets an alarm: the server calls the method at a time. Returns the alarm as the server keeps
   * it. Not sent again without an answer. */
  setAlarm(className: string, id: string, alarm: ObjectAlarm): Promise<Alarm>;
  set_alarm(className: string, id: string, alarm: ObjectAlarm): Promise<Alarm>;
}

export interface ObjectCall {
  method: string;
  args?: unknown;
  /** Pass one if another process must be able to repeat the call. */
  idempotencyKey?: string;
}

export interface ObjectFilter {
  className?: string;
  class_name?: string;
  status?: "Active" | "Hibernating";
}

/** Needs one of the times: RFC 3339 or a Date, or a number of seconds from now. */
export interface ObjectAlarm {
  method: string;
  args?: unknown;
  fireAt?: string | Date;
  fire_at?: string | Date;
  delaySeconds?: number;
  delay_seconds?: number;
}

export interface Alarm {
  id: string;
  method: string;
  args: unknown[];
  fire_at: string;
  replaced: boolean;
}

export interface ObjectInfo {
  /** The object's own; a new object of the same name has another. */
  id: string;
  class: string;
  className: string;
  object_id: string;
  objectId: string;
  status: "Active" | "Hibernating";
  sandbox_name: string;
  sandboxName: string;
  /** RFC 3339. */
  created_at: string;
  createdAt: string;
  last_active: string;
  lastActive: string;
  /** Only from get(). */
  storage?: Record<string, unknown>;
}

export class HearthError extends Error {
  constructor(status: number, code: string, message: string, retryable?: boolean);
  /** The status of the answer; 0: there was no answer. */
  status: number;
  /** The reason: "object_not_found", "invalid_method"... */
  code: string;
  /** Whether the same request may succeed later. */
  retryable: boolean;
}
