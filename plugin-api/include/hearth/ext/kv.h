/*
 * hearth.kv/1: small values that an agent keeps by key.
 *
 * A value is JSON, a row of the agent's database. It is written with the running turn, and undone
 * when a savepoint of hearth.sql/1 is rolled back. Plugin SQL may read the rows, in the table
 * cf_agents_kv(key, value), but not write them.
 *
 * A key is 1 to 2048 bytes of UTF-8 without NUL. Keys are ordered by their bytes.
 *
 * Bounded by the class: kv.max_keys (10000), kv.max_value (1 MiB, of one value), kv.max_total (50
 * MiB, of all keys and values).
 */
#ifndef HEARTH_EXT_KV_H
#define HEARTH_EXT_KV_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_KV "hearth.kv/1"

/* The filter of list(). A zero or empty field does not restrict. */
typedef struct hearth_kv_filter {
  uint32_t struct_size;
  uint32_t limit;      /* 1 to 1000; 0: 100 */
  hearth_bytes prefix; /* of the key */
  hearth_bytes after;  /* only keys after this one, which need not exist */
} hearth_kv_filter;

HEARTH_STATIC_ASSERT(sizeof(hearth_kv_filter) == 40, "layout");

typedef struct hearth_kv_v1 {
  /* NOT_FOUND; INVALID: no key. [instance] */
  hearth_status (*get)(const hearth_host* host, hearth_agent agent, hearth_bytes key,
                       hearth_bytes* value);

  /* Adds or replaces a value. INVALID: no key, or no JSON; LIMIT: nothing was changed.
   * [instance] */
  hearth_status (*put)(const hearth_host* host, hearth_agent agent, hearth_bytes key,
                       hearth_bytes value);

  /* NOT_FOUND; INVALID: no key. [instance] */
  hearth_status (*remove)(const hearth_host* host, hearth_agent agent, hearth_bytes key);

  /* *entries: a JSON array of {"key", "value"}, in the order of the keys. A page of more than 4 MiB
   * ends before its limit: only an empty page is the last. INVALID. [instance] */
  hearth_status (*list)(const hearth_host* host, hearth_agent agent,
                        const hearth_kv_filter* filter, hearth_bytes* entries);

  /* The number of keys, and the bytes of all keys and values. Either may be null. [instance] */
  hearth_status (*usage)(const hearth_host* host, hearth_agent agent, uint64_t* keys,
                         uint64_t* bytes);
} hearth_kv_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_kv_v1) == 40, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_KV_H */
