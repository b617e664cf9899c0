#pragma once
// The engine of durable work: a line holds the jobs of one kind, in the order of their times. It
// says when the next job is due, begins and counts its tries, gives it up, and follows the wall
// clock. Each kind has a line and a policy (see LinePolicy).

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "durable/retry_policy.hpp"
#include "durable/wake.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// By how much the wall clock was set since followed() was called: the difference of its reading and
// the steady clock's, which cannot be set, has changed by that.
class ClockJump {
 public:
  explicit ClockJump(const Clock& clock) : clock_(clock), wall_less_steady_(difference()) {}
  [[nodiscard]] std::int64_t ms() const { return difference() - wall_less_steady_; }
  void followed() { wall_less_steady_ = difference(); }

 private:
  [[nodiscard]] std::int64_t difference() const {
    const auto steady = std::chrono::duration_cast<std::chrono::milliseconds>(
        clock_.steady_now().time_since_epoch());
    return unix_millis(clock_.wall_now()) - steady.count();
  }

  const Clock& clock_;
  std::int64_t wall_less_steady_;
};

// Which jumps of the wall clock move the waits of a line. The line ignores all others.
enum class ClockRule {
  kSetBack,  // back by a second or more. A jump ahead ends waits early, at their times on disk.
  kBoth      // back or ahead by five seconds or more
};

// ---- tries that do not end ----------------------------------------------------------------------
//
// A try that does not end was cut off by one of two:
//
//   its own code      The record of the crash names the job (base/work_mark.hpp), and the next load
//                     counts it (Jobs::count_crash). After max_crashes the job is given up, before
//                     its class is suspect.
//   anything else     kill -9, a loss of power, a crash in other code: no fault of the work. Work
//                     that ends the process without a record, by _exit() or by taking all memory,
//                     is here too. So a job is given up after kMostInterruptions in a row.
//
// After the first of either kind the next try begins at once, and later a second after the load.
// This wait doubles with each crash. It doubles with each ten interruptions in a row too: an agent
// that its own work breaks, or a bad disk, interrupts without an end.
//
// Each try counts as an interruption when it begins, on disk. Its end, an interruption on purpose,
// and the record of a crash take that back.
inline constexpr int kMostCrashes = 2;  // the default of fibers.max_crashes; 0: no bound
inline constexpr int kMostInterruptions = 100;
inline constexpr int kInterruptionsPerDoubling = 10;

// Why no further try of the row begins; empty: one may.
template <class Row>
[[nodiscard]] std::string_view why_never_again(const Row& row, int max_crashes) {
  if (max_crashes > 0 && row.fatal_attempts >= max_crashes)
    return "its work has ended the process as often as fibers.max_crashes allows";
  if (row.interruptions >= kMostInterruptions) return "interrupted again and again without an end";
  return {};
}

// A job that was given up: no further try of it begins.
struct GivenUp {
  std::string id;
  std::string_view why;  // a literal, for logs and records

  friend bool operator==(const GivenUp&, const GivenUp&) = default;
};

// How the agent's code has ended a try.
enum class TryOutcome {
  kDone,
  kFailed,
  kHopeless,   // failed, and no further try could end better
  kNeedsCode,  // this version of the class cannot do it
};

// One kind of an agent's durable work, as DurableWork uses it.
//
// Threads    The agent's shard.  Failure  StorageError.
class WorkPart {
 public:
  // Releases the database. Afterwards only wake() may be called.
  virtual void close() = 0;
  // The instance ends on purpose: interrupts the work in progress, which does not count as a try.
  virtual void interrupt_on_purpose() = 0;
  // True if some work would probably begin now.
  [[nodiscard]] virtual bool due() const = 0;
  // When the agent must be awake again for this kind.
  // needs_person: since load(), work of it has died or begun to wait for code.
  [[nodiscard]] virtual Wake wake() const = 0;

 protected:
  ~WorkPart() = default;
};

// What a kind of jobs decides. JobLine calls these functions. A function that takes a Row& writes
// the row into the agent's open transaction. Row: Job, or the kind's own struct with an `id`.
template <class Row>
class LinePolicy {
 public:
  // The time of the first waiting row, Unix milliseconds; nothing: no row waits.
  [[nodiscard]] virtual std::optional<std::int64_t> first_moment() = 0;
  // The row to try next. JobLine calls this once the time of first_moment() has come.
  [[nodiscard]] virtual std::optional<Row> next_due() = 0;
  // Why no further try of the row may begin besides why_never_again(), a literal; empty: one may.
  [[nodiscard]] virtual std::string_view why_given_up(const Row& /*row*/) const { return {}; }
  // Ends the waiting of a row that is given up.
  virtual void give_up(Row& row, std::string_view why) = 0;
  // False: no try of the row begins now, and the policy has written its next time or removed it.
  virtual bool admit(Row& /*row*/) { return true; }
  // Counts a try of the row that is about to begin, so that a try that kills the process counts.
  virtual void claim(Row& row) = 0;
  // The host has interrupted the row's try: takes back its count, and the row waits again.
  virtual void give_back(Row& row) = 0;
  // The wall clock was set by so much: moves the waits that keep their length.
  virtual void follow(std::int64_t jump_ms) = 0;

 protected:
  ~LinePolicy() = default;
};

// A row is claimed while a try of it is in progress.
//
// state     leaves it by
// waiting   claim() -> claimed, or given up
// claimed   take(), after which the kind writes the end of the try (gone, waiting or dead);
//           give_back_all() -> waiting; a crash -> waiting, by the load() of the next instance
//
// Promises
//  P1 Claim first   claim() counts a try in the transaction that the caller commits before the try
//                   begins.
//  P2 Bounded       claim() gives up a row that why_never_again() or its policy allows no further
//                   try.
//  P3 On purpose    A try that give_back_all() has interrupted does not count.
//  P4 Lean          moment(), due() and wake() read the disk at most once after each changed().
//  P5 Clock         A jump of the wall clock that the line's ClockRule names changes the length of
//                   no wait that LinePolicy::follow() moves.
//
// Threads    The agent's shard.  Lifetime  The clock and the policy outlive it.
// Failure    StorageError, by the policy.
template <class Row>
class JobLine {
 public:
  using Claimed = std::map<std::string, Row, std::less<>>;

  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

  // `at_once`: how many tries may be in progress at a time. `max_crashes`: see kMostCrashes.
  JobLine(const Clock& clock, LinePolicy<Row>& policy, std::size_t at_once = kUnbounded,
          ClockRule rule = ClockRule::kSetBack, int max_crashes = kMostCrashes)
      : clock_(clock),
        policy_(policy),
        at_once_(at_once),
        rule_(rule),
        max_crashes_(max_crashes),
        jump_(clock) {}

  // ---- tries ----
  // The next due row that may begin, claimed. Nothing: there is none, or `at_once` tries are in
  // progress.
  std::optional<Row> claim() {
    follow_clock();
    while (look(), due()) {
      std::optional<Row> row = policy_.next_due();
      changed();
      if (!row) break;
      if (const std::string_view why = why_given_up(*row); !why.empty()) {
        policy_.give_up(*row, why);
        given_up_.push_back({row->id, why});
      } else if (policy_.admit(*row)) {
        policy_.claim(*row);
        hold(*row);
        return row;
      }
      changed();
    }
    return std::nullopt;
  }
  // Why claim() would give this row up; empty: it would not.
  [[nodiscard]] std::string_view why_given_up(const Row& row) const {
    const std::string_view why = why_never_again(row, max_crashes_);
    return why.empty() ? policy_.why_given_up(row) : why;
  }
  // The wait before the next try of a row whose last try was cut off. 0: there is none, or claim()
  // gives the row up.
  [[nodiscard]] std::chrono::milliseconds wait_after_cut(const Row& row, Random& random) const {
    const bool is_first = row.fatal_attempts + row.interruptions < 2;
    if (is_first || !why_given_up(row).empty()) return std::chrono::milliseconds(0);
    const int doublings = row.interruptions / kInterruptionsPerDoubling;
    return back_off(row.fatal_attempts + std::min(row.interruptions, 1) + doublings, kFirstWait,
                    kLongestWait, random);
  }
  // The kind has claimed this row without claim(). Replaces the row that is held under its id.
  void hold(Row row) {
    changed();
    std::string id = row.id;
    claimed_.insert_or_assign(std::move(id), std::move(row));
  }
  // The try of this row is over: the row as it was when it was claimed. Another call may have
  // changed or removed the row on disk since. Nothing: no try of it is in progress.
  std::optional<Row> take(std::string_view id) {
    const auto found = claimed_.find(id);
    if (found == claimed_.end()) return std::nullopt;
    std::optional<Row> row(std::move(found->second));
    claimed_.erase(found);
    changed();
    return row;
  }
  [[nodiscard]] const Claimed& claimed() const { return claimed_; }
  [[nodiscard]] bool is_claimed(std::string_view id) const { return claimed_.contains(id); }
  // The instance ends on purpose: interrupts all tries, which do not count then.
  void give_back_all() {
    if (claimed_.empty()) return;
    for (auto& [id, row] : std::exchange(claimed_, {})) policy_.give_back(row);
    changed();
  }
  // The rows that claim() has given up since the last call.
  std::vector<GivenUp> take_given_up() { return std::exchange(given_up_, {}); }

  // ---- moments ----
  // A row of the line was written: forgets the moment. The kind calls it after its own writes.
  void changed() { moment_.reset(); }
  // The policy cannot read the disk any more: moment() and wake() keep the moment of now.
  void close() noexcept { (void)moment(); }
  // The time of the first waiting row, Unix milliseconds; nothing: no row waits. It includes a
  // jump() that the rows on disk do not have yet. With kBoth, where a jump does not move all rows
  // alike, the moment after a jump is now: claim() then follows the clock first.
  // If storage fails, the moment is 0: a row may be due, and claim() meets the failure.
  [[nodiscard]] std::optional<std::int64_t> moment() const noexcept {
    const std::optional<std::int64_t> at = moment_ ? *moment_ : guess_moment();
    if (!at) return at;  // the end of each turn comes by here: no look at the clock
    const std::int64_t by = jump();
    if (by == 0) return at;
    return rule_ == ClockRule::kSetBack ? *at + by : now_ms();
  }
  // By how much the wall clock was set since the last follow_clock(), if the ClockRule names such a
  // jump; else 0. The same from look to look, though the clocks are not read at the same instant.
  [[nodiscard]] std::int64_t jump() const noexcept {
    constexpr std::int64_t kLeastBack = 1'000;
    constexpr std::int64_t kLeastBoth = 5'000;
    const std::int64_t by = jump_.ms();
    if (noticed_ != 0 && std::abs(by - noticed_) < kLeastBack) return noticed_;
    const bool counts =
        rule_ == ClockRule::kSetBack ? by <= -kLeastBack : by <= -kLeastBoth || by >= kLeastBoth;
    noticed_ = counts ? by : 0;
    return noticed_;
  }
  // Has the policy move the waits by jump().
  void follow_clock() {
    const std::int64_t by = jump();
    jump_.followed();
    noticed_ = 0;
    if (by == 0) return;
    policy_.follow(by);
    changed();
  }
  // As many tries are in progress as may be.
  [[nodiscard]] bool full() const { return claimed_.size() >= at_once_; }
  // True if claim() has a row to look at: moment() has come, and the line is not full().
  [[nodiscard]] bool due() const {
    if (full()) return false;
    const auto at = moment();
    return at && *at <= now_ms();
  }
  // For a kind whose due rows begin at once. Working: a try is in progress, or due. at_ms: the
  // moment, if it is in the future.
  [[nodiscard]] Wake wake() const {
    Wake wake;
    const auto at = moment();
    const bool has_come = at && *at <= now_ms();  // one look at the clock
    wake.working = !claimed_.empty() || (has_come && !full());
    if (!has_come) wake.at_ms = at;
    return wake;
  }

 private:
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  // Reads the moment, unless it is known. Throws StorageError.
  void look() {
    if (moment_ && !is_guess_) return;
    moment_ = policy_.first_moment();
    is_guess_ = false;
  }
  std::optional<std::int64_t> guess_moment() const noexcept {
    std::optional<std::int64_t> at;
    try {
      at = policy_.first_moment();
      is_guess_ = false;
    } catch (const StorageError&) {  // agent boundary: see moment()
      at = 0;
      is_guess_ = true;
    }
    moment_.emplace(at);
    return at;
  }

  const Clock& clock_;
  LinePolicy<Row>& policy_;
  const std::size_t at_once_;
  const ClockRule rule_;
  const int max_crashes_;
  ClockJump jump_;
  mutable std::int64_t noticed_ = 0;  // what jump() has said; 0: none
  Claimed claimed_;
  std::vector<GivenUp> given_up_;
  // The policy's first_moment(). Nothing: not read since the last change.
  mutable std::optional<std::optional<std::int64_t>> moment_;
  mutable bool is_guess_ = false;  // it could not be read
};

}  // namespace hearth::durable
