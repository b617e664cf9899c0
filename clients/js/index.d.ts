/**
 * Objects of a Hearth server, over HTTP.
 *
 * Trying again: a request that got no answer, or one that says "retryable", is sent again:
 * `retries` times, after 0.1 s, 0.2 s, 0.4 s ..., and not before the `Retry-After` of the answer.
 * Each call has an `Idempotency-Key`, the same one each time, so the server runs it once. A removal
 * and an alarm have none: they are sent again only if the server says with 429 or 503 that it has not
 * taken them. Without an answer they may have been done, and a second removal could meet an object
 * that another client has made meanwhile.
 *
 * Failure: each promise is rejected with a HearthError.
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
   * The key of objects, the administrators' token, or what clients of agents prove themselves with.
   * HEARTH_TOKEN of the environment by default.
   */
  token?: string;
  /** For one attempt; longer than the server's own deadline for a call, 30 s. 35,000 by default. */
  timeoutMs?: number;
  /** How many times a request is sent again. 3 by default. */
  retries?: number;
}

export interface Objects {
  /** The result of the method. An array of `args` is positional, any other value the one argument. */
  call<Result = unknown>(className: string, id: string, call: ObjectCall): Promise<Result>;
  /** The object, with all of its storage. */
  get(className: string, id: string): Promise<ObjectInfo>;
  /** All objects, or those of a class, or with a status. */
  list(filter?: ObjectFilter): Promise<ObjectInfo[]>;
  /** The same, a page at a time. */
  iterate(filter?: ObjectFilter): AsyncIterableIterator<ObjectInfo>;
  /** Removes the object, its storage and its alarms. Not sent again without an answer. */
  delete(className: string, id: string): Promise<void>;
  /** Has a method called at a time. Gives the alarm as the server keeps it. Not sent again without an
   * answer. */
  setAlarm(className: string, id: string, alarm: ObjectAlarm): Promise<Alarm>;
  set_alarm(className: string, id: string, alarm: ObjectAlarm): Promise<Alarm>;
}

export interface ObjectCall {
  method: string;
  args?: unknown;
  /** A key of one's own makes it safe to repeat the call in another process. */
  idempotencyKey?: string;
}

export interface ObjectFilter {
  className?: string;
  class_name?: string;
  status?: "Active" | "Hibernating";
}

/** One of the times must be given: RFC 3339 or a Date, or a number of seconds from now. */
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
  /** Its own; a new object of the same name has another. */
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
  /** Of get() only. */
  storage?: Record<string, unknown>;
}

export class HearthError extends Error {
  constructor(status: number, code: string, message: string, retryable?: boolean);
  /** Of the answer; 0: there was none. */
  status: number;
  /** The server's word for why: "object_not_found", "invalid_method"... */
  code: string;
  /** Whether the same request may succeed later. */
  retryable: boolean;
}
