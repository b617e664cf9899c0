#include "server/egress_budget.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace hearth::server {
namespace {

using extensions::EgressLimits;

constexpr std::string_view kRequests = "fetch.requests";
constexpr std::string_view kBytes = "fetch.bytes";
constexpr std::uint64_t kPortions = 16;  // of a limit
constexpr std::string_view kUsedUp = "the class has reached its limit";
constexpr std::string_view kTooLong = "the body has more bytes than the class has left";

std::chrono::milliseconds window_length(std::string_view counter) {
  return counter == kRequests ? std::chrono::minutes(1) : std::chrono::hours(24);
}

std::int64_t window_of(std::string_view counter, WallTime time) {
  return unix_millis(time) / window_length(counter).count();
}

std::uint64_t portion_of(std::uint64_t limit) {
  return std::max<std::uint64_t>(limit / kPortions, 1);
}

}  // namespace

EgressBudget::EgressBudget(const std::filesystem::path& file, const Clock& clock, Logger& logger)
    : clock_(clock), logger_(logger), store_(file) {
  const MutexLock lock(mutex_);
  for (const storage::ClassCount& each : store_.class_counts()) {
    const auto counter = each.counter == kRequests ? kRequests : kBytes;
    const auto used = static_cast<std::uint64_t>(each.used);
    counts_[{each.agent_class, counter}] = {
        .window = each.window, .used = used, .reserved = used, .wanted = used};
  }
}

EgressBudget::~EgressBudget() {
  stop();
}

EgressBudget::Count& EgressBudget::count(const std::string& agent_class, std::string_view counter) {
  Count& found = counts_[{agent_class, counter}];
  const std::int64_t window = window_of(counter, clock_.wall_now());
  if (found.window != window) found = {.window = window};
  return found;
}

Error EgressBudget::exhausted(std::string_view why, std::string_view counter,
                              std::uint64_t limit) const {
  const std::int64_t length = window_length(counter).count();
  const std::int64_t left = length - unix_millis(clock_.wall_now()) % length;
  const std::string seconds = std::to_string((left + 999) / 1000);
  const std::string what = counter == kRequests
                               ? "egress.limits.requests_per_minute is " + std::to_string(limit)
                               : "egress.limits.bytes_per_day is " + std::to_string(limit);
  return Error{counter == kRequests ? Errc::kLimitExceeded : Errc::kTooLarge,
               std::string(why) + ", " + what + "; there is more in " + seconds + " s"};
}

// Reserves when half a portion is left, so that the next portion is there in time.
void EgressBudget::reserve_ahead(Count& count, std::uint64_t limit, std::uint64_t needed) {
  const std::uint64_t portion = portion_of(limit);
  const std::uint64_t soon = count.used + needed;
  const bool has_enough = soon + portion / 2 < count.wanted || count.wanted >= limit;
  if (has_enough) return;
  count.wanted = std::min(std::max(soon, count.wanted) + portion, limit);
  begin_writing();
}

std::optional<Result<void>> EgressBudget::judge(const std::string& agent_class,
                                                const EgressLimits& limits, std::uint64_t body) {
  struct Limit {
    std::string_view counter;
    std::uint64_t limit;
    std::uint64_t needed;  // at least one, so that a used-up limit refuses the request
    std::uint64_t used;
  };
  bool is_reserved = true;
  const std::array<Limit, 2> all = {{
      {kBytes, limits.bytes_per_day, std::max<std::uint64_t>(body, 1), body},
      {kRequests, limits.requests_per_minute, 1, 1},
  }};
  for (const auto& [counter, limit, needed, used] : all) {
    if (limit == 0) continue;
    Count& its = count(agent_class, counter);
    if (its.used >= limit) return exhausted(kUsedUp, counter, limit);
    if (needed > limit - its.used) return exhausted(kTooLong, counter, limit);
    reserve_ahead(its, limit, needed == 1 ? 0 : needed);
    is_reserved = is_reserved && its.used + needed <= its.reserved;
  }
  if (!is_reserved) return std::nullopt;
  for (const auto& [counter, limit, needed, used] : all) {
    if (limit == 0) continue;
    Count& its = count(agent_class, counter);
    its.used += used;
    reserve_ahead(its, limit, 0);
  }
  return Result<void>();
}

Result<void> EgressBudget::enter(const std::string& agent_class, const EgressLimits& limits) {
  const MutexLock lock(mutex_);
  std::uint32_t& running = running_[agent_class];
  if (running >= limits.concurrent) {
    return Error{Errc::kLimitExceeded,
                 "egress.limits.concurrent is " + std::to_string(limits.concurrent) +
                     ": so many requests of the class are in progress; there is room when one of "
                     "them ends"};
  }
  ++running;
  return {};
}

void EgressBudget::leave(const std::string& agent_class) {
  const MutexLock lock(mutex_);
  --running_[agent_class];
}

std::optional<Result<void>> EgressBudget::ask(const std::string& agent_class,
                                              const EgressLimits& limits, std::uint64_t body,
                                              Answer later) {
  const MutexLock lock(mutex_);
  auto judged = judge(agent_class, limits, body);
  if (!judged) waiting_.push_back({agent_class, limits, body, std::move(later)});
  return judged;
}

void EgressBudget::give_back(const std::string& agent_class, const EgressLimits& limits,
                             std::uint64_t body, WallTime asked) {
  const MutexLock lock(mutex_);
  if (limits.bytes_per_day != 0) take_off(agent_class, kBytes, body, asked);
  if (limits.requests_per_minute != 0) take_off(agent_class, kRequests, 1, asked);
}

// Does nothing if a new window has begun: the amount was counted in the one before.
void EgressBudget::take_off(const std::string& agent_class, std::string_view counter,
                            std::uint64_t amount, WallTime asked) {
  Count& its = count(agent_class, counter);
  if (its.window == window_of(counter, asked)) its.used -= std::min(its.used, amount);
}

Result<void> EgressBudget::spend(const std::string& agent_class, const EgressLimits& limits,
                                 std::uint64_t bytes) {
  if (limits.bytes_per_day == 0) return {};
  const MutexLock lock(mutex_);
  Count& its = count(agent_class, kBytes);
  its.used += bytes;
  reserve_ahead(its, limits.bytes_per_day, 0);
  if (its.used > limits.bytes_per_day) return exhausted(kUsedUp, kBytes, limits.bytes_per_day);
  return {};
}

// ---- on the writer's thread ---------------------------------------------------------------------

void EgressBudget::begin_writing() {
  dirty_ = true;
  if (writing_) return;
  writing_ = writer_.run([this](bool cancelled) {
    if (!cancelled) write();
  });
}

void EgressBudget::write() {
  for (;;) {
    std::vector<storage::ClassCount> rows;
    {
      const MutexLock lock(mutex_);
      if (!std::exchange(dirty_, false)) {
        writing_ = false;
        return;
      }
      for (const auto& [key, each] : counts_) {
        if (each.wanted > each.reserved)
          rows.push_back({.agent_class = key.first,
                          .counter = std::string(key.second),
                          .window = each.window,
                          .used = static_cast<std::int64_t>(each.wanted)});
      }
    }
    try {
      store_.store(rows);
    } catch (const StorageError& failure) {
      logger_.write_limited(LogLevel::kError, "fetch.limits_unwritten", {"budget"},
                            {{"reason", std::string_view(failure.what())}});
      answer_waiting(Error{Errc::kUnavailable, "what the class has used cannot be recorded"});
      continue;
    }
    {
      const MutexLock lock(mutex_);
      for (const storage::ClassCount& row : rows) {
        const auto counter = row.counter == kRequests ? kRequests : kBytes;
        Count& its = counts_[{row.agent_class, counter}];
        if (its.window == row.window) its.reserved = static_cast<std::uint64_t>(row.used);
      }
    }
    answer_waiting(std::nullopt);
  }
}

// Requests whose share is not reserved yet stay in the queue: the next write reserves it.
void EgressBudget::answer_waiting(std::optional<Error> failure) {
  std::vector<std::pair<Answer, Result<void>>> answers;
  {
    const MutexLock lock(mutex_);
    std::vector<Waiting> all = std::exchange(waiting_, {});
    if (failure) {  // the next request tries to write again
      for (auto& [key, each] : counts_) each.wanted = each.reserved;
    }
    for (Waiting& each : all) {
      auto judged =
          failure ? Result<void>(*failure) : judge(each.agent_class, each.limits, each.body);
      if (judged) {
        answers.emplace_back(std::move(each.answer), *std::move(judged));
      } else {
        waiting_.push_back(std::move(each));
      }
    }
  }
  for (const auto& [answer, outcome] : answers) answer(outcome);
}

void EgressBudget::stop() {
  writer_.stop();
  std::vector<storage::ClassCount> rows;
  {
    const MutexLock lock(mutex_);
    waiting_.clear();
    for (auto& [key, each] : counts_) {
      if (each.used == each.reserved) continue;
      each.reserved = each.wanted = each.used;
      rows.push_back({.agent_class = key.first,
                      .counter = std::string(key.second),
                      .window = each.window,
                      .used = static_cast<std::int64_t>(each.used)});
    }
  }
  if (rows.empty()) return;
  try {
    store_.store(rows);
  } catch (const StorageError& failure) {
    logger_.write(LogLevel::kError, "fetch.limits_unwritten",
                  {{"reason", std::string_view(failure.what())}});
  }
}

}  // namespace hearth::server
