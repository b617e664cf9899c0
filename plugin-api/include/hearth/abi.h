/*
 * hearth/abi.h: the contract between Hearth and a library of agent classes. Version 1.0.
 *
 * This header is the specification. It is plain C11 (and C++11 and later), needs nothing but the
 * two includes below, and describes 64-bit little-endian Linux (x86-64, AArch64).
 *
 * A plugin is a shared library. It exports ONE data symbol, `hearth_plugin_v1`, and carries ONE ELF
 * note with the same facts (HEARTH_PLUGIN_NOTE). The host reads the note before it runs any code of
 * the file. A version script hides all other symbols (plugin-api/cmake/plugin.map).
 *
 *     file found -> note read -> hearth_plugin_v1 checked -> init(host, config)           [loader]
 *     an agent is needed -> create -> START -> CONNECTING/CONNECT/MESSAGE/CALL/... events
 *                                                                                      [instance]
 *     idle, replaced, shut down -> EVICT (if the class has a grace) -> destroy         [instance]
 *     no instance left -> deinit                                                       [loader]
 *
 * Threads. Each function carries one tag:
 *   [loader]    one thread of the host; never at the same time as another [loader] call.
 *   [instance]  serialised for each agent; the OS thread may differ from call to call, so keep
 *               nothing in thread-local storage between calls. Never re-entrant: the host never
 *               calls a plugin from inside a host function.
 *   [any]       every thread, at any time between init and the end of deinit.
 *   A host function called on a wrong thread returns HEARTH_E_WRONG_THREAD and does nothing.
 *
 * Memory. Bytes are borrowed for the duration of the call, both ways: the receiver copies them, and
 * neither side frees the other's memory. Bytes that a host function gives through an out parameter
 * stay valid until the plugin returns to the host, or until its next call to the host for the same
 * agent, whichever is first. That next call may take these bytes, or a part of them, as its
 * argument. They then stay valid until it returns, even if it replaces their source: get() of
 * hearth.state/1, then set() with a part of its result.
 * A null `ptr` is allowed only with `len` 0. Text is UTF-8 without a final NUL; where a function
 * expects text, the host rejects invalid UTF-8 with HEARTH_E_INVALID. JSON is nested at most
 * HEARTH_MAX_JSON_DEPTH levels deep (hearth/json_rules.h), its numbers fit a double, and escaped
 * surrogates come in pairs. The host rejects other JSON with HEARTH_E_INVALID; arguments of a CALL
 * and the state are never such JSON. The body of a MESSAGE or a REQUEST is unchecked: the
 * client's own bytes.
 *
 * Errors. Functions return 0 (or a positive value, where their comment says so) or a negative
 * HEARTH_E_*. Codes are stable, texts are not. No exception, panic or longjmp may cross this
 * interface. exit() and abort() crash the host.
 *
 * Versions. 1.0 is frozen, with all of hearth/ext/. A version 1.x keeps every name, value, layout
 * and meaning of 1.0, and may add:
 *   members     at the end of a struct that has a `struct_size`. A member from after 1.0 exists if
 *               it lies within `struct_size` (HEARTH_HAS). The host reads one that is missing as
 *               0. A struct without a `struct_size` never changes
 *   numbers     event kinds, operations, flags, errors. The receiver answers an event kind, flag or
 *               operation that it does not know with HEARTH_E_UNSUPPORTED
 *   extensions  named by strings. One that has to change is a new one: "hearth.sql/2" stands beside
 *               "hearth.sql/1"
 *
 *     a library of   a host of 1.x
 *     1.y, y <= x    takes it: all that the library knows is there
 *     1.y, y > x     takes it: the library uses what came after 1.0 only if HEARTH_HAS or
 *                    get_extension() says that it is there. A library that cannot work without
 *                    says so in its note (min_host_minor), and the host refuses it (rule N3)
 *     others         refuses it (rule N2). 2.0 would be another ABI, with a symbol of another name,
 *                    for libraries that are built for it
 */
#ifndef HEARTH_ABI_H
#define HEARTH_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HEARTH_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define HEARTH_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define HEARTH_ABI_MAJOR 1
#define HEARTH_ABI_MINOR 0

/* "HEARTH\0" and a 1, read as a little-endian number. */
#define HEARTH_MAGIC UINT64_C(0x0100485452414548)

/* True if `member` lies inside the table that `table` points to and is not null. */
#define HEARTH_HAS(table, type, member) \
  ((table)->struct_size >= offsetof(type, member) + sizeof((table)->member) && (table)->member != 0)

/* ---- words ----------------------------------------------------------------------------------- */

/* A run of bytes, borrowed. */
typedef struct hearth_bytes {
  const void* ptr; /* may be null only if len is 0 */
  size_t len;
} hearth_bytes;

/* 0 or positive: success. Negative: one of HEARTH_E_*. */
typedef int32_t hearth_status;

enum {
  HEARTH_OK = 0,
  HEARTH_ROW = 1, /* hearth.sql/1: a row is ready */

  HEARTH_E_INVALID = -1,     /* an argument breaks this contract, or a message is malformed */
  HEARTH_E_NOMEM = -2,       /* out of memory */
  HEARTH_E_UNSUPPORTED = -3, /* unknown kind, flag, operation or extension */
  HEARTH_E_CANCELLED = -4,   /* the caller or the host gave up on it */
  HEARTH_E_TIMEOUT = -5,     /* a deadline passed */
  HEARTH_E_CLOSING = -6,     /* the agent is being evicted: no new work */
  HEARTH_E_GONE = -7, /* the agent, call, connection or operation no longer exists; often normal */
  HEARTH_E_WRONG_THREAD = -8, /* see the function's thread tag */
  HEARTH_E_PLUGIN =
      -9, /* the plugin's own code failed; the text says how: for the log and other agents, not for clients */
  HEARTH_E_LIMIT = -10,     /* a limit of the class or the server was reached */
  HEARTH_E_BUSY = -11,      /* not now; try again later */
  HEARTH_E_IO = -12,        /* storage failed: the agent is broken and will be evicted */
  HEARTH_E_NOT_FOUND = -13, /* no such row, method, header, ... */
  HEARTH_E_CONFLICT = -14,  /* a constraint was violated */
  HEARTH_E_FORBIDDEN = -15, /* not allowed for this caller, connection or plugin */
  HEARTH_E_FINAL = -16,     /* as PLUGIN, and no retry can end better: work is not tried again */
  HEARTH_E_UNREADABLE = -17 /* the code cannot read what an earlier version of it has stored: work
                               waits for another version */
};

/* One live agent. A number, never a pointer; never used again after the agent is destroyed. */
typedef uint64_t hearth_agent;

struct hearth_host;
struct hearth_class;

/* ---- events: the host calls an agent --------------------------------------------------------- */

/*
 * Kinds of events. "asynchronous" kinds have `call` != 0. If on_event returns HEARTH_OK the event
 * is accepted and must be completed exactly once (hearth_host.complete), inside on_event or later.
 * If on_event returns an error the event is refused: it must not be completed, and the host answers
 * for the plugin. "synchronous" kinds have `call` == 0 and are over when on_event returns.
 *
 * UNSUPPORTED for START, CONNECT, MESSAGE, CLOSE, STATE_CHANGED or EVICT means that the class does
 * not handle it, and counts as completed with OK.
 */
enum {
  /* asynchronous. The first event after create. Until it is completed all others wait. An error
   * fails the start: the agent is destroyed, waiting events are answered with an error, the next
   * event tries again. */
  HEARTH_EVENT_START = 1,

  /* synchronous. A client wants to connect. name: request target ("/agents/counter/a?x=1"). The
   * plugin may set tags and flags and read request headers (hearth.connections/1). An error refuses
   * the client (FORBIDDEN: close code 4403, else 1011). To use another code, call close() of that
   * extension and return OK. UNSUPPORTED accepts the client. */
  HEARTH_EVENT_CONNECTING = 2,

  /* asynchronous. The client is connected and has its handshake frames. name: as above. The
   * connection's messages wait until this is completed.
   * If the agent is evicted before that, the next instance gets CONNECT again for the same
   * connection, without CONNECTING. Tags, flags and attachment are kept, and messages wait behind
   * it. The next instance may have another version, and the client may have left by then. After it
   * was completed once, CONNECT never comes again. */
  HEARTH_EVENT_CONNECT = 3,

  /* asynchronous. A frame that is no frame of the protocol. flags: HEARTH_MESSAGE_TEXT or _BINARY.
   */
  HEARTH_EVENT_MESSAGE = 4,

  /* asynchronous. The connection is gone. name: the reason; flags: the close code, plus
   * HEARTH_CLOSE_WAS_CLEAN if the closing handshake was completed. */
  HEARTH_EVENT_CLOSE = 5,

  /* asynchronous. A client calls a method. name: method; body: JSON array of arguments; connection:
   * the caller's or 0. Completed with a JSON value, or with empty bytes for "no value". emit()
   * sends parts of a streaming answer (one JSON value each). NOT_FOUND: there is no such method.
   * If the class listed the method as idempotent, the call may come again after an eviction:
   * hearth.methods/1. */
  HEARTH_EVENT_CALL = 6,

  /* asynchronous. An HTTP request. name: method; body: the body; the rest through hearth.http/1.
   * flags: HEARTH_REQUEST_UNREAD_BODY if the class has HEARTH_CLASS_READS_BODIES and the request
   * has a body: it has not arrived yet, `body` is empty, and read_body() of hearth.http/1 gives it.
   */
  HEARTH_EVENT_REQUEST = 7,

  /* synchronous. A client asks to replace the state. body: the new state (JSON); connection: the
   * client. Sent only to classes with HEARTH_CLASS_CHECKS_STATE. OK or UNSUPPORTED accepts, any
   * error rejects. */
  HEARTH_EVENT_STATE_CHECK = 8,

  /* asynchronous. The state was replaced. body: the state (JSON); connection: the client that did
   * it, or 0 for the agent itself. Sent only to classes with HEARTH_CLASS_WATCHES_STATE. */
  HEARTH_EVENT_STATE_CHANGED = 9,

  /* asynchronous. The agent will be destroyed when this is completed or when deadline_ms have
   * passed. flags: HEARTH_EVICT_*. Sent only if the class has an eviction grace; eviction may
   * always be sudden. */
  HEARTH_EVENT_EVICT = 10
};

/* hearth_event.flags of HEARTH_EVENT_MESSAGE */
enum { HEARTH_MESSAGE_TEXT = 0, HEARTH_MESSAGE_BINARY = 1 };

/* hearth_event.flags of HEARTH_EVENT_CLOSE: the close code is flags & 0xffff. */
enum { HEARTH_CLOSE_WAS_CLEAN = 0x10000 };

/* hearth_event.flags of HEARTH_EVENT_EVICT: why. */
enum {
  HEARTH_EVICT_IDLE = 1,
  HEARTH_EVICT_CODE_UPDATE = 2,
  HEARTH_EVICT_PLUGIN_REMOVED = 3,
  HEARTH_EVICT_SHUTDOWN = 4,
  HEARTH_EVICT_DESTROYED = 5,
  HEARTH_EVICT_HUNG = 6,
  HEARTH_EVICT_LIMIT = 7,
  HEARTH_EVICT_ADMIN = 8
};

typedef struct hearth_event {
  uint32_t struct_size;
  uint32_t kind;        /* HEARTH_EVENT_* */
  uint64_t call;        /* names this event in complete() and emit(); 0 for synchronous kinds */
  uint64_t connection;  /* the client it came from, or 0 */
  hearth_bytes name;    /* meaning: see the kind */
  hearth_bytes body;    /* meaning: see the kind */
  uint64_t deadline_ms; /* milliseconds left until the host gives up on the event; 0: none */
  uint32_t flags;       /* meaning: see the kind */
  uint32_t reserved;    /* 0 */
} hearth_event;

/* The outcome, or a part of the outcome, of an operation that the agent submitted; or a post().
 * Only an operation whose extension says so has parts: results without HEARTH_RESULT_FINAL. */
typedef struct hearth_result {
  uint32_t struct_size;
  uint32_t flags;       /* HEARTH_RESULT_FINAL on the last (often only) result of an operation;
                           from bit 8 on: meaning see the operation */
  hearth_status status; /* HEARTH_OK or why the operation failed; then body is a text for people */
  uint32_t operation;   /* HEARTH_OP_* as submitted; HEARTH_OP_POST for a post() */
  uint64_t token;       /* as submitted or posted */
  hearth_bytes body;    /* meaning: see the operation */
} hearth_result;

enum { HEARTH_RESULT_FINAL = 1 };

/* Operations of submit(). Each is described in its extension's header. */
enum {
  HEARTH_OP_POST = 0,   /* not submitted: marks the results that post() causes */
  HEARTH_OP_SLEEP = 1,  /* ext/sleep.h */
  HEARTH_OP_OFFLOAD = 2 /* ext/offload.h */
};

/* ---- the host's functions: an agent calls the host ------------------------------------------- */

/*
 * One table for each loaded library, constant, valid from init to the end of deinit. Every function
 * takes the table itself first: the host needs no global state to serve it.
 */
typedef struct hearth_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  uint32_t flags; /* 0 */
  uint32_t reserved;

  /* The table of an extension ("hearth.sql/1"), or null if the host does not have it. The table is
   * as long-lived as `host`. [any] */
  const void* (*get_extension)(const struct hearth_host* host, const char* id);

  /* Completes an accepted event. status HEARTH_OK: `body` is the answer that the event's kind asks
   * for. status < 0: `body` is a text for the caller (at most 4 KiB are used). The agent's earlier
   * writes to storage are committed before the answer leaves.
   * `call` 0 with an error: sets the text of the error that create or a synchronous event is about
   * to return.
   * Errors:
   *   GONE      completed before, cancelled, timed out: normal after a deadline
   *   INVALID   a CALL's body is not JSON: the caller has got an error. Or a savepoint of
   *             hearth.sql/1 is open, and the event is durable work (a fiber, a schedule or a queue
   *             item): nothing has happened; end the savepoint first
   *   LIMIT     the body is too large: the caller has got an error
   * [instance] */
  hearth_status (*complete)(const struct hearth_host* host, hearth_agent agent, uint64_t call,
                            hearth_status status, hearth_bytes body);

  /* Sends one part of a streaming answer to a CALL (a JSON value) or a REQUEST (bytes of the body).
   * Errors: GONE (also when the client has left: stop the work), INVALID, LIMIT, UNSUPPORTED (kind
   * has no parts). [instance] */
  hearth_status (*emit)(const struct hearth_host* host, hearth_agent agent, uint64_t call,
                        hearth_bytes part);

  /* Starts an operation. Never calls back before it returns. If it returns OK, on_result brings
   * exactly one result with HEARTH_RESULT_FINAL for `token`, unless the operation is cancelled or
   * the agent destroyed. The token is the plugin's own; *id is for cancel(). Errors: UNSUPPORTED,
   * INVALID (request malformed), LIMIT (too many in flight), CLOSING. [instance] */
  hearth_status (*submit)(const struct hearth_host* host, hearth_agent agent, uint32_t operation,
                          hearth_bytes request, uint64_t token, uint64_t* id);

  /* Cancels an operation. OK: no result will come. GONE: it has ended, or its result is on the way;
   * if no FINAL result came so far, none will come. [instance] */
  hearth_status (*cancel)(const struct hearth_host* host, hearth_agent agent, uint64_t id);

  /* A text for people about the last error that a host function returned for this agent; empty if
   * there was none. [instance] */
  hearth_status (*last_error)(const struct hearth_host* host, hearth_agent agent,
                              hearth_bytes* text);

  /* The only way in from other threads. Soon after it, on_result is called on the agent's own
   * thread with HEARTH_OP_POST, FINAL and `token`. GONE is normal: the agent was destroyed
   * meanwhile. [any] */
  hearth_status (*post)(const struct hearth_host* host, hearth_agent agent, uint64_t token);

  /* Lets an operation with parts send `bytes` more of them. A part uses as much credit as it has
   * bytes. Parts come while any credit is left, so the last one may use more than there is. The
   * first credit is the window of the operation's request. GONE: it has ended. UNSUPPORTED: it has
   * no parts. [instance] */
  hearth_status (*credit)(const struct hearth_host* host, hearth_agent agent, uint64_t id,
                          uint64_t bytes);
} hearth_host;

/* ---- the plugin's side ----------------------------------------------------------------------- */

/* hearth_class.flags */
enum {
  HEARTH_CLASS_CHECKS_STATE = 1,  /* wants HEARTH_EVENT_STATE_CHECK */
  HEARTH_CLASS_WATCHES_STATE = 2, /* wants HEARTH_EVENT_STATE_CHANGED */
  HEARTH_CLASS_READS_BODIES = 4   /* reads the bodies of requests as they arrive (hearth.http/1) */
};

/* One agent class. Constant data of the plugin, valid until the library is unloaded. */
typedef struct hearth_class {
  uint32_t struct_size;
  uint32_t flags; /* HEARTH_CLASS_* */

  /* "ChatRoom": [A-Za-z_][A-Za-z0-9_-]{0,63}. Clients reach it at /agents/chat-room/NAME.
   * NUL-terminated. */
  const char* name;
  const char* version; /* the author's own, for people: "1.2.0". NUL-terminated. */

  /* Makes the instance of one agent. `name`: the agent's name. `options`: the `options` mapping of
   * the class's YAML file as JSON ("{}" if it has none). May use the host's direct functions, but
   * not submit() (FORBIDDEN). On error nothing was made, and *instance is not read.
   * `self`: this table. If a class file gives the code to a class of another name, a copy of it up
   * to get_extension with that `name`, valid as long as the instance. [instance] */
  hearth_status (*create)(const struct hearth_class* self, const hearth_host* host,
                          hearth_agent agent, hearth_bytes name, hearth_bytes options,
                          void** instance);

  /* Frees the instance and everything that it holds, suspended work too. Cannot fail. Host
   * functions answer CLOSING while it runs, but log, cancel and last_error work. Called exactly
   * once after a successful create. [instance] */
  void (*destroy)(void* instance);

  /* An event; see HEARTH_EVENT_*. Unknown kinds must be answered HEARTH_E_UNSUPPORTED. [instance]
   */
  hearth_status (*on_event)(void* instance, const hearth_event* event);

  /* The host has given up on an accepted event, because its deadline has passed: complete() for
   * `call` returns GONE, and the plugin should stop the work. (If a client leaves, there is no
   * on_cancel: emit() then returns GONE, and the body of complete() is dropped.) [instance] */
  void (*on_cancel)(void* instance, uint64_t call);

  /* A result of an operation, or a post. Unknown tokens must be ignored. [instance] */
  void (*on_result)(void* instance, const hearth_result* result);

  /* The plugin's side of an extension (such as "hearth.offload/1"), or null. May be null itself.
   * [any] */
  const void* (*get_extension)(const struct hearth_class* self, const char* id);
} hearth_class;

/* The exported symbol. */
typedef struct hearth_plugin {
  uint64_t magic;       /* HEARTH_MAGIC */
  uint32_t struct_size; /* sizeof(hearth_plugin) as the plugin was compiled */
  uint16_t abi_major;   /* HEARTH_ABI_MAJOR */
  uint16_t abi_minor;   /* HEARTH_ABI_MINOR */
  uint32_t flags;       /* HEARTH_PLUGIN_* */
  uint32_t class_count; /* at least 1 */

  /* Called once after loading, before anything else. `config`: reserved, empty JSON object. An
   * error refuses the library. [loader] */
  hearth_status (*init)(const hearth_host* host, hearth_bytes config);

  /* Called once when no instance is left. HEARTH_E_BUSY: something still runs; the library stays
   * loaded. [loader] */
  hearth_status (*deinit)(void);

  /* The class at `index`; null for index >= class_count. [loader] */
  const hearth_class* (*get_class)(uint32_t index);
} hearth_plugin;

/* hearth_plugin.flags */
enum {
  HEARTH_PLUGIN_THREADS = 1 /* runs threads of its own; deinit joins them */
};

/*
 * The ELF note: owner "HEARTH", type 1, in a section ".note.hearth". The description holds the
 * fields below (packed, little-endian) and `manifest_size` bytes of JSON:
 *
 *   {"plugin": "counter", "version": "1.0.0", "classes": ["Counter"], "extensions":
 *   ["hearth.sql/1"]}
 *
 * plugin, version and classes are required; extensions lists those the plugin cannot work without.
 * The host refuses a library whose note and symbol disagree. At most 64 KiB.
 */
#define HEARTH_NOTE_TYPE 1
#define HEARTH_NOTE_OWNER "HEARTH"

typedef struct hearth_note {
  uint32_t owner_size;       /* 7: "HEARTH" and its NUL */
  uint32_t description_size; /* 24 + manifest_size, and the NUL if there is one */
  uint32_t type;             /* HEARTH_NOTE_TYPE */
  char owner[8];             /* "HEARTH\0\0" */
  uint32_t magic[2];         /* HEARTH_MAGIC, low half first */
  uint16_t abi_major;
  uint16_t abi_minor;
  uint16_t min_host_minor; /* the oldest minor version of the host that will do */
  uint16_t reserved;
  uint32_t plugin_struct_size; /* sizeof(hearth_plugin) */
  uint32_t manifest_size;      /* bytes of JSON that follow, without a NUL */
} hearth_note;

/*
 * Puts the note into a plugin. Once in a library, at file scope; `manifest` is a string literal:
 *     HEARTH_PLUGIN_NOTE("{\"plugin\":\"echo\",\"version\":\"1.0.0\",\"classes\":[\"Echo\"]}");
 */
#define HEARTH_PLUGIN_NOTE(manifest)                                               \
  __attribute__((section(".note.hearth"), used, aligned(4))) static const struct { \
    hearth_note head;                                                              \
    char text[(sizeof(manifest) + 3) / 4 * 4];                                     \
  } hearth_plugin_note_ = {{7,                                                     \
                            24 + sizeof(manifest),                                 \
                            HEARTH_NOTE_TYPE,                                      \
                            {'H', 'E', 'A', 'R', 'T', 'H', 0, 0},                  \
                            {HEARTH_MAGIC & 0xffffffffu, HEARTH_MAGIC >> 32},      \
                            HEARTH_ABI_MAJOR,                                      \
                            HEARTH_ABI_MINOR,                                      \
                            0,                                                     \
                            0,                                                     \
                            sizeof(hearth_plugin),                                 \
                            sizeof(manifest) - 1},                                 \
                           manifest}

/* Marks the exported symbol, the const hearth_plugin of the name hearth_plugin_v1. */
#ifdef __cplusplus
#define HEARTH_EXPORT extern "C" __attribute__((visibility("default"), used))
#else
#define HEARTH_EXPORT __attribute__((visibility("default"), used))
#endif

/* ---- layout ---------------------------------------------------------------------------------- */

HEARTH_STATIC_ASSERT(sizeof(void*) == 8, "Hearth's ABI is for 64-bit systems");
HEARTH_STATIC_ASSERT(sizeof(hearth_bytes) == 16, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_event) == 72, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, call) == 8, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, connection) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, name) == 24, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, body) == 40, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, deadline_ms) == 56, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_event, flags) == 64, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_result) == 40, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_result, status) == 8, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_result, operation) == 12, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_result, token) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_result, body) == 24, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_host) == 80, "grows at its end");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, get_extension) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, complete) == 24, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, emit) == 32, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, submit) == 40, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, cancel) == 48, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, last_error) == 56, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, post) == 64, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_host, credit) == 72, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_class) == 72, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, name) == 8, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, version) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, create) == 24, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, destroy) == 32, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, on_event) == 40, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, on_cancel) == 48, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, on_result) == 56, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_class, get_extension) == 64, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_plugin) == 48, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, struct_size) == 8, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, flags) == 16, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, class_count) == 20, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, init) == 24, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, deinit) == 32, "layout");
HEARTH_STATIC_ASSERT(offsetof(hearth_plugin, get_class) == 40, "layout");
HEARTH_STATIC_ASSERT(sizeof(hearth_note) == 44, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_ABI_H */
