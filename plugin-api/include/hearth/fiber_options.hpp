#pragma once
// Options of a new fiber, and filters for existing ones.

#include <hearth/ext/fibers.h>
#include <hearth/fiber_record.hpp>
#include <hearth/json.hpp>
#include <hearth/option.hpp>
#include <hearth/time.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

// The id or key names a record that is settled.
enum class FiberPolicy : std::uint32_t {
  kJoin = HEARTH_FIBER_JOIN,                     // that record is the answer
  kReject = HEARTH_FIBER_REJECT,                 // HostError(CONFLICT)
  kReplace = HEARTH_FIBER_REPLACE,               // that record is removed, and a new one begins
  kReplaceFailed = HEARTH_FIBER_REPLACE_FAILED,  // the answer if it completed, else replaced
};

// .policy = hearth::FiberPolicy::kReplace
class FiberPolicyOption {
 public:
  template <class Given>
  constexpr FiberPolicyOption(Given given)  // NOLINT(google-explicit-constructor): as a policy
      : value_(policy_of(given)) {}
  constexpr operator FiberPolicy() const noexcept {  // NOLINT(google-explicit-constructor): as one
    return value_;
  }

 private:
  template <class Given>
  static constexpr FiberPolicy policy_of(const Given& given) {
    constexpr bool kFits = std::same_as<Given, FiberPolicy>;
    static_assert(kFits,
                  "this option is a policy: write hearth::FiberPolicy::kJoin, kReject, kReplace or "
                  "kReplaceFailed");
    if constexpr (kFits)
      return given;
    else
      return {};
  }

  FiberPolicy value_;
};

struct FiberOptions {
  TextOption id = std::nullopt;   // nullopt: the host makes one
  TextOption key = std::nullopt;  // both: 1 to 256 bytes
  // Only for a function that is not listed: the data that a hook needs to begin it again.
  Json input = nullptr;
  Json metadata = nullptr;  // for people and lists
  FiberPolicyOption policy = FiberPolicy::kJoin;
  FlagOption keep_record = false;  // after its end, for callers that ask later
  // Work that a client waits for: it is recovered fibers.max_turn_recoveries (5) times in all, and
  // clients that speak the protocol get frames about it (hearth/ext/fibers.h, "Turns"). Not for a
  // fiber that another fiber waits for.
  FlagOption turn = false;
  // Of the fibers of a lane one runs at a time, in the order in which they were started, also after
  // a restart. The next one begins when this one has ended, its retries and recoveries included. 1
  // to 256 bytes; nullopt: no lane. Not for a fiber that another fiber waits for.
  TextOption lane = std::nullopt;
  NumberOption<int> max_retries = 0;  // how often the work begins again after a failure
  // A checkpoint that differs from the one before resets the count of max_retries, and that of a
  // turn's recoveries: they are bounds for work that does not get on.
  FlagOption reset_by_progress = false;
  // The wait before a retry doubles with each failure, plus up to a quarter at random.
  TimeOption retry_delay = std::chrono::seconds(1);
  TimeOption max_retry_delay = std::chrono::minutes(5);
};

// The filter of list_fibers() and delete_fibers(). A field with its default does not restrict.
struct FiberFilter {
  std::vector<FiberStatus> statuses = {};  // any of these
  std::string name = {};
  std::optional<Time> before = std::nullopt;  // created before
  std::string after = {};                     // list: an id: only fibers after it
  std::uint32_t limit = 0;                    // list: 1 to 100, 0: 50; delete: 1 to 500, 0: 100
  bool dead = false;                          // only those whose recovery was given up
};

}  // namespace hearth
