#pragma once
// The host's record of a fiber, and other data about fibers that do not run.

#include <hearth/ext/fibers.h>
#include <hearth/fields.hpp>
#include <hearth/time.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

// ext/fibers.h has the table of the statuses and their successors.
enum class FiberStatus : std::uint32_t {
  kPending = HEARTH_FIBER_PENDING,  // accepted; waits for its lane; or begins again at next_at
  kRunning = HEARTH_FIBER_RUNNING,  // its work runs
  kRecovering =
      HEARTH_FIBER_RECOVERING,  // interrupted; it is offered to on_fiber_recovered, or will be
  kInterrupted = HEARTH_FIBER_INTERRUPTED,  // settled: it was offered, and no work went on
  kCompleted = HEARTH_FIBER_COMPLETED,      // settled, with its result
  kError = HEARTH_FIBER_ERROR,      // settled, with its error; `dead` if recovery was given up
  kAborted = HEARTH_FIBER_ABORTED,  // settled: cancelled, with the reason
};

struct FiberRecord {
  std::string id;
  std::string name;
  FiberStatus status = FiberStatus::kPending;
  std::optional<std::string> key;
  Json input;
  Json metadata;
  Json snapshot;  // the last checkpoint
  Json result;
  std::optional<std::string> error;   // of an aborted one: the reason
  std::optional<std::string> reason;  // a word of the author's: Final, FiberOutcome
  bool dead = false;
  Time created_at;
  std::optional<Time> started_at;
  std::optional<Time> completed_at;
  int attempts = 0;  // recoveries begun since the last checkpoint
  int failures = 0;  // of the work
  int max_retries = 0;
  std::optional<Time> next_at;
  bool waits_for_code = false;  // this version of the class does not know its name
  bool brief = false;           // the record is removed at the end of the work
  std::optional<std::string> lane;

  // Only resolve_fiber() and revive_fiber() change it any more.
  [[nodiscard]] bool settled() const noexcept {
    return static_cast<std::uint32_t>(status) >= HEARTH_FIBER_INTERRUPTED;
  }
  // Its result as a T, see read_json(). Failure: Error, with the fiber's status if it has not
  // completed.
  template <class T>
  [[nodiscard]] T result_as() const;
};

// The outcome of a fiber that its function does not end: see settle_fiber() and resolve_fiber().
//
//     settle_fiber(fiber, FiberOutcome::completed(42));
struct FiberOutcome {
  FiberStatus status = FiberStatus::kInterrupted;
  Json result = nullptr;
  std::string error = {};
  std::string reason = {};  // a word for programs, which the record keeps; at most 256 bytes
  std::optional<Json> snapshot = std::nullopt;  // nullopt: as it was
  std::optional<Json> metadata = std::nullopt;

  static FiberOutcome completed(Json value = nullptr) {
    FiberOutcome outcome;
    outcome.status = FiberStatus::kCompleted;
    outcome.result = std::move(value);
    return outcome;
  }
  static FiberOutcome failed(std::string why, std::string reason = {}) {
    FiberOutcome outcome = ended(FiberStatus::kError, std::move(why));
    outcome.reason = std::move(reason);
    return outcome;
  }
  static FiberOutcome aborted(std::string why) {
    return ended(FiberStatus::kAborted, std::move(why));
  }
  // Kept as it is, to be resolved or revived later; a fiber without a record is removed.
  static FiberOutcome interrupted() { return {}; }

 private:
  static FiberOutcome ended(FiberStatus status, std::string why) {
    FiberOutcome outcome;
    outcome.status = status;
    outcome.error = std::move(why);
    return outcome;
  }
};

// An interrupted fiber, as on_fibers_recovered() gets it.
struct InterruptedFiber {
  std::string id;
  std::string name;
  Time created_at;
  int attempt = 1;
};

// In which order fibers are recovered, how many at once, and which are not.
struct RecoveryPlan {
  std::vector<std::string> order = {};  // ids; those not named come after these, oldest first
  int parallel = 1;                     // 1 to 100
  std::vector<std::string> skip = {};   // ids: let go, as FiberOutcome::interrupted() says
};

namespace detail {

inline constexpr std::array<std::pair<FiberStatus, std::string_view>, 7> kFiberStatuses = {
    {{FiberStatus::kPending, "pending"},
     {FiberStatus::kRunning, "running"},
     {FiberStatus::kRecovering, "recovering"},
     {FiberStatus::kInterrupted, "interrupted"},
     {FiberStatus::kCompleted, "completed"},
     {FiberStatus::kError, "error"},
     {FiberStatus::kAborted, "aborted"}}};

FiberRecord read_fiber(const Json& record);

std::string outcome_text(const FiberOutcome& outcome);

std::vector<InterruptedFiber> read_interrupted(std::string_view body);

}  // namespace detail

template <class T>
T FiberRecord::result_as() const {
  if (status != FiberStatus::kCompleted) {
    throw Error(HEARTH_E_CONFLICT, "fiber " + name + " is " +
                                       std::string(word_of(detail::kFiberStatuses, status)) +
                                       (error ? ": " + *error : std::string()));
  }
  return read_json<T>(result, "result");
}

// So that a method may return them: as the host's records, with times in Unix milliseconds.
void to_json(Json& json, const FiberRecord& fiber);

}  // namespace hearth
