#pragma once
// Named places in the server where a test can make the process stand still, to kill it exactly
// there.
//
//     HEARTH_STOP_AT=fiber.stash.committed      the first time that this place is reached
//     HEARTH_STOP_AT=fiber.stash.committed:3    the third time
//
// For tests only: tests/fault kills servers so. Nobody sets the variable on a server that serves,
// and no other way leads here. When the place is reached the process writes the line "stopped at
// NAME" to standard error and stops all of its threads (SIGSTOP). Whoever waits for the line may
// look at the files, and then kill it (SIGKILL) or let it go on (SIGCONT).
//
// Cost       One load and one branch that is never taken, when the variable is not set.
// State      The variable is read once, into a constant, before main(): a place is reached deep
//            inside an agent, and to hand a switch for tests through every constructor on the way
//            there would cost every reader of those more than the constant does. The only thing
//            that changes is the count of visits, which is private to stop_here().
// Threads    Any. Visits of all threads are counted together.

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// Every place. "written": the rows are in the agent's open transaction, and nowhere else.
// "committed": they are on disk, and nobody has been told. Where the effect waits for the end of
// its turn, "committed" is right after that turn's commit.
inline constexpr auto kStopPoints = std::to_array<std::string_view>({
    // the wake index knows of a nearer wake, the agent's rows are not committed
    "commit.index_written",
    // the agent's rows are committed, the wake index still knows the earlier wake
    "commit.index_late",
    "fetch.start.committed",     // the turn of a request, and nothing of it was sent
    "fiber.start.written",       // the new row
    "fiber.start.committed",     //
    "fiber.stash.written",       // the checkpoint, and what the turn wrote before it
    "fiber.stash.committed",     //
    "fiber.finish.written",      // the row has gone
    "fiber.finish.committed",    //
    "fiber.attempt.written",     // one more attempt of recovery is counted
    "fiber.attempt.committed",   // and the hook was not called yet
    "fiber.continue.written",    // a continuation is in the place of the row that is recovered
    "fiber.continue.committed",  //
    // the hook has succeeded, and the row has gone if it was not continued
    "fiber.recovered.written",
    "fiber.recovered.committed",  //
    "fiber.failed.written",       // the hook has failed: its error and the next moment are noted
    "fiber.failed.committed",     //
    "alarm.end.written",          // the call of an alarm has ended, and its row goes
    "alarm.end.committed",        //
    "call.answer.committed",      // the answer to a call with a key, with the writes of the call
    "destroy.condemned",  // the marker is on disk, the agent is in memory and its files are there
    "destroy.files_removed",     // its files are gone; its entry, its wake and the marker are there
    "object.hibernate.shut",     // an object's instance is gone, its database is open
    "object.hibernate.closed",   // its database is closed
    "schedule.claim.written",    // a run is claimed
    "schedule.claim.committed",  // and was not delivered yet
    "schedule.end.written",      // a run has ended: the row has gone, or has its next time
    "schedule.end.committed",    //
    "queue.claim.written",       // an item is claimed
    "queue.claim.committed",     // and was not delivered yet
    "queue.end.written",       // an item's delivery has ended: the row has gone, waits, or is dead
    "queue.end.committed",     //
    "notice.claim.written",    // a notification is claimed
    "notice.claim.committed",  // and has not left yet
    "notice.end.written",      // its callee has answered: the row has gone, waits, or is dead
    "notice.end.committed",    //
    "operation.started.written",     // the ledger's row of a run
    "operation.started.committed",   // and its function was not called yet
    "operation.dispatched.written",  // the request of an operation
    "operation.answered.committed",  // the head of the answer to it
    "operation.part.committed",      // a piece of the answer's body
    "operation.settled.written",     // its end, with the turn that uses it
    "operation.settled.committed",   //
    "migrate.written",    // an agent's file of an earlier version: its work is in today's tables
    "migrate.committed",  // and the file is of today's version
    "managed.start.written",     // the new record and its row
    "managed.start.committed",   //
    "managed.resume.written",    // the record runs again
    "managed.resume.committed",  //
    // the record is settled, or waits for its next try; the row has gone, or waits
    "managed.settle.written",
    "managed.settle.committed",  //
    "managed.tell.written",      // that the agent is told of a settled record is claimed
    "managed.tell.committed",    // and was not delivered yet
    "managed.cancel.written",    // the record is settled as aborted
    "managed.cancel.committed",  //
});

// The name of a place, checked when it is compiled.
class StopPoint {
 public:
  consteval StopPoint(const char* name) : name_(name) {  // NOLINT(google-explicit-constructor)
    if (std::ranges::find(kStopPoints, name_) == kStopPoints.end()) throw "no such stop point";
  }
  [[nodiscard]] constexpr std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

// What the variable asks for.
struct StopRequest {
  std::string name;
  unsigned visit = 1;  // counts from 1
};

// "name" or "name:visit". The error lists the names: a test with a name that is not there would
// prove nothing.
Result<StopRequest> parse_stop_request(std::string_view text);

// Whether the variable asks for something that there is; success if it is not set. A server refuses
// to start otherwise.
Result<void> check_stop_request();

namespace detail {
extern const bool kStopRequested;
void stop_here(std::string_view name);
}  // namespace detail

inline void stop_point(StopPoint point) {
  if (detail::kStopRequested) [[unlikely]]
    detail::stop_here(point.name());
}

// The places that a turn has passed and that are reached only when it is committed.
// Threads    One.
class StopPointsAtCommit {
 public:
  void add(StopPoint point) {
    if (detail::kStopRequested) [[unlikely]]
      passed_.push_back(point);
  }
  // The turn was committed.
  void committed() {
    if (detail::kStopRequested) [[unlikely]]
      for (const StopPoint point : std::exchange(passed_, {})) stop_point(point);
  }

 private:
  std::vector<StopPoint> passed_;
};

}  // namespace hearth
