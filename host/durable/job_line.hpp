#pragma once
// The engine of durable work: one line of jobs. It says when the next job is due, begins tries,
// counts and gives up, and follows the wall's clock. Each kind of jobs has a line and a policy.

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "durable/wake.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// By how much the wall's clock was set since the last look: the steady clock is never set.
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

// Which jumps of the wall's clock move the waits of a line. Smaller jumps are drift.
enum class ClockRule {
  kSetBack,  // by a second or more. A clock that is set ahead ends waits as the disk says.
  kBoth      // by five seconds or more, in either direction
};

// A job of which no further try begins.
struct GivenUp {
  std::string id;
  std::string_view why;  // a literal, for people

  friend bool operator==(const GivenUp&, const GivenUp&) = default;
};

// What a kind of jobs decides. JobLine calls these functions; those that change a row write it into
// the agent's open transaction. Row: Job, or the kind's own struct with an `id`.
template <class Row>
class LinePolicy {
 public:
  // When the first row that waits is due, Unix milliseconds; nothing: no row waits.
  [[nodiscard]] virtual std::optional<std::int64_t> first_moment() = 0;
  // The row that begins next. JobLine asks when first_moment() has come.
  [[nodiscard]] virtual std::optional<Row> next_due() = 0;
  // Why no further try of it begins; empty: one may begin.
  [[nodiscard]] virtual std::string_view why_given_up(const Row& row) const = 0;
  virtual void give_up(Row& row, std::string_view why) = 0;
  // False: no try of this row begins now. The policy has written when it is looked at again.
  virtual bool admit(Row& /*row*/) { return true; }
  // A try begins. It is counted before, so that a try that kills the process counts.
  virtual void claim(Row& row) = 0;
  // The host has interrupted a try: it does not count, and the row is due again.
  virtual void give_back(Row& row) = 0;
  // The wall's clock was set by so much: the waits that follow it move.
  virtual void follow(std::int64_t jump_ms) = 0;

 protected:
  ~LinePolicy() = default;
};

// state     leaves it by
// waiting   claim() -> claimed, or given up
// claimed   take(): the kind writes the end of the try (gone, waiting, dead); give_back_all() ->
//           waiting; a crash -> waiting, by the load() of the next instance
//
// Promises
//  P1 Claim first   claim() counts a try in the transaction that the caller commits before the try
//                   begins.
//  P2 Bounded       claim() gives up a row that its policy allows no further try.
//  P3 On purpose    A try that give_back_all() has interrupted counts for nothing.
//  P4 Lean          moment(), due() and wake() do not look at the disk again before changed().
//  P5 Clock         A jump of the wall's clock that counts changes no length of a wait.
//
// Threads    The agent's shard.  Lifetime  The clock and the policy outlive it.
// Failure    StorageError, by the policy.
template <class Row>
class JobLine {
 public:
  using Claimed = std::map<std::string, Row, std::less<>>;

  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

  // `at_once`: how many tries may be in progress.
  JobLine(const Clock& clock, LinePolicy<Row>& policy, std::size_t at_once = kUnbounded,
          ClockRule rule = ClockRule::kSetBack)
      : clock_(clock), policy_(policy), at_once_(at_once), rule_(rule), jump_(clock) {}

  // ---- tries ----
  // The next row that is due, claimed; nothing if no try may begin.
  std::optional<Row> claim() {
    follow_clock();
    while (due()) {
      std::optional<Row> row = policy_.next_due();
      changed();
      if (!row) break;
      if (const std::string_view why = policy_.why_given_up(*row); !why.empty()) {
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
  // The kind has claimed this row by itself.
  void hold(Row row) {
    changed();
    std::string id = row.id;
    claimed_.insert_or_assign(std::move(id), std::move(row));
  }
  // The row as it was claimed, whose try is over; nothing: no try of it is in progress. Another
  // call may have changed or removed the row on disk since.
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
  // The instance goes on purpose: its tries are interrupted, and are not in progress any more.
  void give_back_all() {
    for (auto& [id, row] : std::exchange(claimed_, {})) policy_.give_back(row);
    changed();
  }
  // Since the last call.
  std::vector<GivenUp> take_given_up() { return std::exchange(given_up_, {}); }

  // ---- moments ----
  // A row of the line was written.
  void changed() { moment_.reset(); }
  // The policy can look at the disk no more: wake() goes on saying what it says now. Of a database
  // that fails it says that nothing waits.
  void close() noexcept {
    try {
      (void)moment();
    } catch (const StorageError&) {  // agent boundary: the agent is known to be broken
      moment_.emplace();
    }
  }
  // When the first row that waits is due, in the wall's time of now.
  [[nodiscard]] std::optional<std::int64_t> moment() const {
    if (!moment_) moment_ = policy_.first_moment();
    const std::int64_t by = jump();
    if (by == 0 || !*moment_) return *moment_;
    return rule_ == ClockRule::kSetBack ? **moment_ + by : now_ms();
  }
  // By how much the clock was set since the line has followed it; 0: by nothing that counts.
  [[nodiscard]] std::int64_t jump() const {
    constexpr std::int64_t kLeastBack = 1'000;
    constexpr std::int64_t kLeastBoth = 5'000;
    const std::int64_t by = jump_.ms();
    const bool counts =
        rule_ == ClockRule::kSetBack ? by <= -kLeastBack : by <= -kLeastBoth || by >= kLeastBoth;
    return counts ? by : 0;
  }
  void follow_clock() {
    const std::int64_t by = jump();
    jump_.followed();
    if (by == 0) return;
    policy_.follow(by);
    changed();
  }
  // True if claim() would find a row.
  [[nodiscard]] bool due() const {
    if (claimed_.size() >= at_once_) return false;
    const auto at = moment();
    return at && *at <= now_ms();
  }
  // Of a line whose due rows begin in this turn: it works while a try is in progress or due.
  [[nodiscard]] Wake wake() const {
    Wake wake;
    wake.working = !claimed_.empty() || due();
    if (const auto at = moment(); at && *at > now_ms()) wake.at_ms = at;
    return wake;
  }

 private:
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  const Clock& clock_;
  LinePolicy<Row>& policy_;
  const std::size_t at_once_;
  const ClockRule rule_;
  ClockJump jump_;
  Claimed claimed_;
  std::vector<GivenUp> given_up_;
  // Nothing: not known since the last change.
  mutable std::optional<std::optional<std::int64_t>> moment_;
};

}  // namespace hearth::durable
