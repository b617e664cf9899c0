#pragma once
// Named places in the server where a test can stop the process, to kill it exactly there.
//
//     HEARTH_STOP_AT=fiber.stash.committed      the first time that this place is reached
//     HEARTH_STOP_AT=fiber.stash.committed:3    the third time
//
// For tests only (tests/fault); the variable is not set on a server in production. When the process
// reaches the place it writes the line "stopped at NAME" to standard error and stops all of its
// threads (SIGSTOP). A test that waits for the line may look at the files, and then kill the
// process (SIGKILL) or continue it (SIGCONT).
//
// Cost       One load and one branch that is never taken, when the variable is not set.
// State      The variable is read once, into a constant, before main(). Places are deep inside an
//            agent, and a parameter for them in every constructor would be harder to read. Only the
//            count of visits changes; it is private to stop_here().
// Threads    Any. Visits of all threads are counted together.

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// Every place. "written": the rows are only in the agent's open transaction. "committed": the rows
// are on disk, and no answer or event has left. Where the effect waits for the end of its turn,
// "committed" is right after that turn's commit.
inline constexpr auto kStopPoints = std::to_array<std::string_view>({
    // the wake index has an earlier wake, the agent's rows are not committed
    "commit.index_written",
    // the agent's rows are committed, the wake index still has the earlier wake
    "commit.index_late",
    "fetch.start.committed",    // the turn of a request, before any of it is sent
    "fiber.stash.written",      // the checkpoint, and what the turn wrote before it
    "fiber.stash.committed",    //
    "fiber.attempt.written",    // one more attempt of recovery is counted
    "fiber.attempt.committed",  // and the hook was not called yet
    // the hook has succeeded; the row is deleted if it was not continued
    "fiber.recovered.written",
    "fiber.recovered.committed",  //
    "fiber.failed.written",       // the hook has failed: its error and the next time are stored
    "fiber.failed.committed",     //
    "alarm.end.written",          // the call of an alarm has ended, and its row is deleted
    "alarm.end.committed",        //
    "call.answer.committed",      // the answer to a call with a key, with the writes of the call
    "destroy.condemned",  // the marker is on disk, the agent is in memory and its files are there
    "destroy.files_removed",     // its files are gone; its entry, its wake and the marker are there
    "object.hibernate.shut",     // an object's instance is gone, its database is open
    "object.hibernate.closed",   // its database is closed
    "schedule.claim.written",    // a run is claimed
    "schedule.claim.committed",  // and was not delivered yet
    "schedule.end.written",      // a run has ended: the row is deleted, or has its next time
    "schedule.end.committed",    //
    "queue.claim.written",       // an item is claimed
    "queue.claim.committed",     // and was not delivered yet
    "queue.end.written",       // an item's delivery has ended: the row is deleted, waiting or dead
    "queue.end.committed",     //
    "notice.claim.written",    // a notification is claimed
    "notice.claim.committed",  // and has not left yet
    "notice.end.written",      // its callee has answered: the row is deleted, waiting or dead
    "notice.end.committed",    //
    "operation.started.written",     // the ledger's row of a run
    "operation.started.committed",   // and its function was not called yet
    "operation.dispatched.written",  // the request of an operation
    "operation.answered.committed",  // the head of the answer to it
    "operation.part.committed",      // a piece of the answer's body
    "operation.settled.written",     // its end, with the turn that uses it
    "operation.settled.committed",   //
    "managed.start.written",         // the new record and its row
    "managed.start.committed",       //
    "managed.resume.written",        // the record runs again
    "managed.resume.committed",      //
    // the record is settled or waits for a retry; the row is deleted or waits
    "managed.settle.written",
    "managed.settle.committed",  //
    "managed.tell.written",      // the event that tells the agent of a settled record is claimed
    "managed.tell.committed",    // and was not delivered yet
    "managed.cancel.written",    // the record is settled as aborted
    "managed.cancel.committed",  //
});

// The name of a place, checked by the compiler.
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

// "name" or "name:visit". An unknown name is an error, because its test would prove nothing. The
// error lists the names.
Result<StopRequest> parse_stop_request(std::string_view text);

// Fails if the variable is set and is not a valid request. The server then refuses to start.
Result<void> check_stop_request();

namespace detail {
extern const bool kStopRequested;
void stop_here(std::string_view name);
}  // namespace detail

inline void stop_point(StopPoint point) {
  if (detail::kStopRequested) [[unlikely]]
    detail::stop_here(point.name());
}

// The places of a turn that the process reaches when the turn is committed.
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
