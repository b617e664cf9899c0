#pragma once
// Limits how often lines of one kind are written.

#include "base/clock.hpp"
#include "base/mutex.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// `burst` lines at once, and `per_second` more each second.
struct LogLimit {
  double burst;
  double per_second;
};

// Promises  Each line of a kind is either admitted or counted, and the next admitted line gets the
//           count.
// Bounded   kMaxKinds kinds are kept apart; all others count as one kind.
// Threads   All.
class LogRate {
 public:
  static constexpr std::size_t kMaxKinds = 1024;

  // The number of lines of this kind that were suppressed since the last admitted one. Nothing:
  // this line is suppressed too.
  [[nodiscard]] std::optional<std::uint64_t> admit(std::string_view kind, LogLimit limit,
                                                   SteadyTime now);

 private:
  struct Kind {
    double left;
    SteadyTime since;
    std::uint64_t suppressed;
  };

  Mutex mutex_;
  std::map<std::string, Kind, std::less<>> kinds_ GUARDED_BY(mutex_);
};

}  // namespace hearth
