#pragma once
// The operations of an agent that are not settled: the open ones, which run or are interrupted, and
// the unknown ones.

#include "base/clock.hpp"
#include "durable/operation_fibers.hpp"
#include "durable/operation_records.hpp"
#include "durable/operation_requests.hpp"
#include "durable/wake.hpp"

#include <deque>
#include <vector>

namespace hearth::durable {

// An interrupted operation that ends now. `was_sent` false: it acts by its request, and has sent
// none, so it is not executed (P9). True: it is given up.
struct LostOperation {
  OperationRow row;
  bool was_sent = true;
};

// P12 Given up  An interrupted operation that will not be begun again becomes unknown and is told;
//               if its effect is kRead or kIdempotent, its row is removed instead.
//
//   of a fiber's work     when all fibers of the work are over; dead ones are over. Of an operation
//                         with a key, it is the work of the fiber that has begun it last
//   keyed                 at its horizon; at once if the clock was set back to before it began, by
//                         more than a tenth of its horizon or kMostClockSkew
//   unsafe                at once
//   other, of no fiber    kLongestInterruption after it began; at once if the clock was set back to
//                         more than that before
//
// An operation that can go on with its answer (P10) is given up neither at its horizon nor as an
// unsafe one; without a fiber it has at least kLongestInterruption. wake() plans these moments. A
// revived fiber, or other code, may still begin an operation that was given up. Then begin() gives
// kProbe, or kRun for a keyed operation whose key the other side still knows.
//
// Threads, Failure   As OperationTable. It only reads, and what it is given outlives it.
class OpenOperations {
 public:
  OpenOperations(OperationTable& table, OperationAnswers& answers, OperationFibers& fibers,
                 const RunningOperations& running, const Clock& clock)
      : table_(table), answers_(answers), fibers_(fibers), running_(running), clock_(clock) {}

  // Takes over the rows of an earlier instance. take_lost() follows.
  void load();
  // An operation runs.
  void began(const OperationRow& row);
  // A run of it was cut off, and the operation may be begun again. `fiber`: 0, or that of the run.
  void cut_off(const OperationRow& row, FiberHandle fiber);
  // Those that are lost now. The caller ends them.
  [[nodiscard]] std::vector<LostOperation> take_lost();
  // The moment to give up an operation may have come.
  [[nodiscard]] bool has_lost() const {
    return must_look_ || (next_ms_ && *next_ms_ <= unix_millis(clock_.wall_now()));
  }
  // The last read of the rows: from now on wake() is exact, so that operations cost no writes for
  // it.
  void close();

  // There may be one, or an unknown operation.
  [[nodiscard]] bool may_exist() const { return may_exist_; }
  // Working: one is lost, or one runs that a restart would give up. at_ms: when the next one is
  // given up, or earlier.
  [[nodiscard]] Wake wake() const;

 private:
  // Its work may still run, and go on with a stored answer.
  [[nodiscard]] bool goes_on(const OperationRow& row);
  // Sets next_ms_. `lost`: for those which are lost now, and so have no next moment.
  void look(std::vector<LostOperation>* lost);

  OperationTable& table_;
  OperationAnswers& answers_;
  OperationFibers& fibers_;
  const RunningOperations& running_;
  const Clock& clock_;
  bool may_exist_ = false;
  // No operation is given up before this, unless its fibers end; nothing: none at all.
  std::optional<std::int64_t> next_ms_;
  bool must_look_ = false;  // an operation was cut off whose fibers may be over already
};

// The last process has crashed while the agent was told of an operation. Before load().
void count_crash(OperationTable& table, const EndedProcess& ended);

// P4 Told     An unknown operation is told (next_untold()) once in each instance until told() says
//             that it was heard, at most kMostTellings times.
// P4: A telling that crashes the process counts for half of them.
//
// Durable, Threads, Failure   As OperationTable. What it is given outlives it.
class UnknownOperations {
 public:
  static constexpr int kMostTellings = 10;
  static constexpr std::size_t kMostStanding = 20;

  UnknownOperations(OperationTable& table, OperationRecords& records)
      : table_(table), records_(records) {}

  // Takes over the rows of an earlier instance. Once, before any other member.
  void load();
  // The row becomes unknown.
  void add(const OperationRow& row, std::string_view why);
  // The row is about to get another state.
  void leave(const OperationRow& row);

  [[nodiscard]] bool has_untold() const { return !untold_.empty() && !telling_; }
  // The agent's code is being told of one, or will be.
  [[nodiscard]] bool must_tell() const { return !untold_.empty() || telling_; }
  // The next one to tell the agent's code of. Nothing: none, or one is being told.
  std::optional<UnknownOperation> next_untold();
  void told(std::string_view id, bool was_heard);

  [[nodiscard]] std::int64_t count() const { return count_; }
  // The newest kMostStanding, the oldest of them first. Without records.
  [[nodiscard]] std::vector<UnknownOperation> standing();

 private:
  OperationTable& table_;
  OperationRecords& records_;
  std::int64_t count_ = 0;
  std::deque<std::int64_t> untold_;  // rows to tell in this instance
  bool telling_ = false;
};

}  // namespace hearth::durable
