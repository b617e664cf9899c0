#pragma once
// How often lines of one kind may be written.

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

// Promises  Each line of a kind is either admitted or counted, and the next one admitted is told
//           the count.
// Bounded   kMaxKinds kinds are told apart; all others count as one.
// Threads   All.
class LogRate {
 public:
  static constexpr std::size_t kMaxKinds = 1024;

  // How many lines of this kind were suppressed since the last that was admitted. None: this one is
  // suppressed, too.
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
