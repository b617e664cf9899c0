#pragma once
// The tables for an agent's durable work.

#include <string_view>

struct sqlite3;

namespace hearth::storage {

// cf_agents_jobs: one row for each piece of durable work, in small columns. Times are Unix
// milliseconds.
//
//   seq          the order of acceptance
//   kind         2 fiber, 3 schedule (or one run of it: it has a parent), 4 queue item,
//                5 notification of another agent, 6 alarm of an object, 7 telling: the agent's code
//                is to be told that the fiber of this id has ended, 8 question: the agent waits for
//                a person, for what `name` says; always dead
//   state        0 waiting, 1 claimed by the instance that lives (or lived), 2 dead, 3 settled
//   due_at       the time at which this row wakes the agent; NULL: it does not. A claimed row has
//                NULL, also a queue item or a fiber behind another one and a paused schedule. The
//                agent's wake time is the smallest due_at.
//   id, name     `name` is a fiber's name or a callback
//   key          of a fiber: its idempotency key; of a schedule: equal for equal requests; of a
//                notification: the callee; of an alarm: its method
//   attempts     of the current step; `claims`: in total; `failures`: of the work; `interruptions`:
//                claims in a row without an end
//   fatal_attempts                of a fiber: runs that crashed the process since its last progress
//   trace        the trace that the work belongs to, as a traceparent
//   keep         the retention from `ended_at` on: 'completed', 'failed'; NULL: none
//   status       of a fiber, as a word; may be stale while `ended_at` is NULL
//   parent       of a fiber: the fiber that started it and waits for its value; of a run of
//                a schedule: the schedule
//   type         of a fiber: 'kept', or 'brief' if its record is removed when it ends; of a turn:
//                'kept turn' or 'turn'
//   next_at      the next try does not begin before; `set_at`: when that was set
//   lane         of a fiber: it begins when the earlier ones of its lane are settled
//   failing_since  when the first of its `failures` ended, not of schedules
//   from `length_ms` on: of schedules (durable/schedule_table.hpp)
//
// cf_agents_job_documents: values that may be large, one row each, by `part`:
//
//   1 input or payload   2 metadata   3 snapshot   4 result   5 error
//   6    the error of the host's last try
//   7    of a fiber: the work that its operations belong to
//   8    of a turn that was given up: a later turn has begun
//   9    empty; of a fiber: its progress resets its retries
//   10   of a fiber: the reason that its author gives for its end
//   16+  marks of steps that a fiber does only once
//
// A trigger removes a job's documents with the job.
//
// cf_agents_runs, cf_agents_fibers, cf_agents_schedules and cf_agents_queues are views, which
// agents' authors read with SQL. The first statement that names one makes them (PluginSql): each
// connection to a file with views holds 25 KiB for them.
inline constexpr std::string_view kWorkViews[] = {"cf_agents_runs", "cf_agents_fibers",
                                                  "cf_agents_schedules", "cf_agents_queues"};

// Makes the tables and indexes that do not exist, in the caller's transaction.
// Failure: StorageError.
void create_job_tables(sqlite3& connection);

// Makes the views that do not exist: in the file, where they need the tables and the caller's
// transaction, or for this connection alone. Failure: StorageError.
enum class ViewsIn { kFile, kConnection };
void create_job_views(sqlite3& connection, ViewsIn where);
// Drops those of this connection. Failure: StorageError.
void drop_connection_views(sqlite3& connection);

}  // namespace hearth::storage
