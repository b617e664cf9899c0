#pragma once
// The tables in which an agent's durable work lies, and how those of an earlier version become
// them.

struct sqlite3;

namespace hearth::storage {

// cf_agents_jobs: one row for each piece of durable work, in small columns. Times are Unix
// milliseconds.
//
//   seq          the order of acceptance
//   kind         1 fiber, 2 managed fiber, 3 schedule (or one run of it: it has a parent), 4 queue
//                item, 5 notification of another agent, 6 alarm of an object
//   state        0 waiting, 1 claimed by the instance that lives (or lived), 2 dead, 3 settled and
//                not told, 4 settled
//   due_at       when the row alone is a reason to wake the agent; NULL: it is none. A claimed row
//                has NULL, and so have a queue item behind another and a paused schedule. The wake
//                time is the smallest one.
//   id, name     `name` is a fiber's name or a callback
//   key          of a fiber: its idempotency key; of a schedule: equal for requests that are alike;
//                of a notification: the callee; of an alarm: its method
//   attempts     of the present step; `claims`: in all; `failures`: of the work; `interruptions`:
//                claims in a row without an end
//   fatal_attempts                of a fiber: runs that ended the process, since the last progress
//   trace        the trace to which the work belongs, as a traceparent
//   root         always NULL: the fiber with which a fiber's work began is found by `parent`, and
//                in part 7 once the fiber has had an operation
//   keep         which retention it is under, from `ended_at` on: 'completed', 'failed', 'dead';
//                NULL: none
//   status       of a managed fiber, as a word; may be stale while `ended_at` is NULL
//   parent       of a managed fiber: the fiber that asked for it and waits for its value; of a run
//                of a schedule: the schedule
//   type         of a managed fiber that hearth.fibers/2 began: 'kept', or 'brief': its record goes
//                with its end; of a turn 'kept turn' or 'turn'
//   from `parent` on: of schedules (durable/schedule_table.hpp)
//
// cf_agents_job_documents: what may be large, one row each. part: 1 input or payload, 2 metadata, 3
// snapshot, 4 result, 5 error, 6 the error of the host's last try, 7 whose work the operations of a
// fiber are, 8 of a turn that was given up: a later one has begun, from 16 on marks of what a fiber
// does once. A trigger removes a job's documents with the job.
//
// cf_agents_runs, cf_agents_fibers, cf_agents_schedules and cf_agents_queues are views with the
// columns that those tables had: agents' authors read them with SQL.
//
// Both belong to the caller's transaction. Failure: StorageError.

// Makes tables, indexes and views unless they are there.
void create_job_tables(sqlite3& connection);

// The tables of version 1, with what is in them, become those of this version. Those of its earlier
// forms too: they lacked the columns recoveries and tell_interruptions.
void migrate_jobs_from_version_1(sqlite3& connection);

}  // namespace hearth::storage
