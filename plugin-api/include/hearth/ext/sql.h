/*
 * hearth.sql/1: the agent's own SQLite database. Synchronous: it is a file that only this agent
 * uses.
 *
 * The writes of one event, before it suspends or ends, are one transaction, committed before any
 * answer leaves. Tables whose names begin with cf_agents_ belong to the host: a plugin can read,
 * but not write them. The host refuses transaction statements, ATTACH, PRAGMA (except a few that
 * read) and load_extension.
 *
 * A statement is a number, valid until finalize or until the agent is destroyed.
 */
#ifndef HEARTH_EXT_SQL_H
#define HEARTH_EXT_SQL_H

#include <hearth/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEARTH_EXT_SQL "hearth.sql/1"

typedef uint64_t hearth_statement;

/* Types of a column's value, as SQLite numbers them. */
enum {
  HEARTH_SQL_INTEGER = 1,
  HEARTH_SQL_FLOAT = 2,
  HEARTH_SQL_TEXT = 3,
  HEARTH_SQL_BLOB = 4,
  HEARTH_SQL_NULL = 5
};

typedef struct hearth_sql_v1 {
  /* Compiles exactly one statement. Cheap for a text used before. Errors: INVALID (bad SQL;
   * last_error has SQLite's words), FORBIDDEN (see above), LIMIT (text too long, too many
   * statements open), IO. [instance] */
  hearth_status (*prepare)(const hearth_host* host, hearth_agent agent, hearth_bytes sql,
                           hearth_statement* statement);

  /* Bind a value to the placeholder at `index`, 1 is the first. Text and blobs are copied. Errors:
   * INVALID (no such placeholder), LIMIT (value too large), GONE (no such statement). [instance] */
  hearth_status (*bind_null)(const hearth_host* host, hearth_agent agent,
                             hearth_statement statement, uint32_t index);
  hearth_status (*bind_int64)(const hearth_host* host, hearth_agent agent,
                              hearth_statement statement, uint32_t index, int64_t value);
  hearth_status (*bind_double)(const hearth_host* host, hearth_agent agent,
                               hearth_statement statement, uint32_t index, double value);
  hearth_status (*bind_text)(const hearth_host* host, hearth_agent agent,
                             hearth_statement statement, uint32_t index, hearth_bytes value);
  hearth_status (*bind_blob)(const hearth_host* host, hearth_agent agent,
                             hearth_statement statement, uint32_t index, hearth_bytes value);

  /* HEARTH_ROW: a row is ready. HEARTH_OK: finished. Errors: INVALID, CONFLICT (constraint), LIMIT,
   * TIMEOUT (longer than the class's sql_time), IO (the agent breaks). [instance] */
  hearth_status (*step)(const hearth_host* host, hearth_agent agent, hearth_statement statement);

  /* Functions for the current row; `column` 0 is the first. Numbers are converted as SQLite does.
   * Bytes of column_bytes are valid until the next call on this statement, or until a function that
   * commits within the turn returns (start() and stash() of a fiber). Such a commit ends a
   * statement that is in the middle of writing. [instance] */
  hearth_status (*column_count)(const hearth_host* host, hearth_agent agent,
                                hearth_statement statement, uint32_t* count);
  hearth_status (*column_name)(const hearth_host* host, hearth_agent agent,
                               hearth_statement statement, uint32_t column, hearth_bytes* name);
  hearth_status (*column_type)(const hearth_host* host, hearth_agent agent,
                               hearth_statement statement, uint32_t column, uint32_t* type);
  hearth_status (*column_int64)(const hearth_host* host, hearth_agent agent,
                                hearth_statement statement, uint32_t column, int64_t* value);
  hearth_status (*column_double)(const hearth_host* host, hearth_agent agent,
                                 hearth_statement statement, uint32_t column, double* value);
  hearth_status (*column_bytes)(const hearth_host* host, hearth_agent agent,
                                hearth_statement statement, uint32_t column, hearth_bytes* value);

  /* Back to before the first row; bindings stay. [instance] */
  hearth_status (*reset)(const hearth_host* host, hearth_agent agent, hearth_statement statement);

  /* Gives the statement back. [instance] */
  hearth_status (*finalize)(const hearth_host* host, hearth_agent agent,
                            hearth_statement statement);

  /* Rows changed by the last INSERT, UPDATE or DELETE; and the rowid of the last INSERT. [instance]
   */
  hearth_status (*changes)(const hearth_host* host, hearth_agent agent, int64_t* rows);
  hearth_status (*last_insert_rowid)(const hearth_host* host, hearth_agent agent, int64_t* rowid);

  /* A savepoint inside the running turn: later writes can be undone. Savepoints nest; `depth` names
   * one. Those still open when the turn ends are kept. Errors: GONE (no such depth). [instance]
   *
   * rollback_savepoint() undoes rows and the agent's state (hearth.state/1): get() gives the
   * earlier state, and neither a client nor HEARTH_EVENT_STATE_CHANGED sees a state that was
   * undone. It undoes nothing else: frames sent, parts and answers of calls leave; attachments,
   * flags, the default state, eviction and destroy() stay. Fibers, schedules and the queue refuse
   * changes while a savepoint is open (INVALID). */
  hearth_status (*begin_savepoint)(const hearth_host* host, hearth_agent agent, uint32_t* depth);
  hearth_status (*release_savepoint)(const hearth_host* host, hearth_agent agent, uint32_t depth);
  hearth_status (*rollback_savepoint)(const hearth_host* host, hearth_agent agent, uint32_t depth);
} hearth_sql_v1;

HEARTH_STATIC_ASSERT(sizeof(hearth_sql_v1) == 20 * 8, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEARTH_EXT_SQL_H */
