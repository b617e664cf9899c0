#pragma once
// Time zones: from an instant to the local time of a place, and back.

#include "base/error.hpp"

#include <cstdint>
#include <string_view>

// Declared here, so that this header does not include the library's.
namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): the name is the library's
}

namespace hearth::durable {

// One zone of the IANA database, as this machine has it (Debian's package tzdata). Small, copied
// freely.
//
// Instants are seconds since 1970-01-01T00:00Z. A local time is the number of seconds since
// 1970-01-01T00:00 on the same wall clock, as if that clock had never been changed.
//
// Promises
//  P1 UTC       "UTC" and the empty name need no database and cannot fail.
//  P2 Far ahead Years after 2037, the last that the database lists, follow the rules of the last
//               listed years.
//
// Threads    All members may be called from any thread.
class TimeZone {
 public:
  TimeZone() = default;  // UTC

  // Failure: kInvalidArgument: no zone has this name, which the message quotes. kUnavailable: this
  // machine has no database, or an unreadable one.
  static Result<TimeZone> find(std::string_view name);

  // A span around an instant in which the clock is not changed: [from, until). A longer one may
  // exist.
  struct Stretch {
    std::int64_t from = 0;
    std::int64_t until = 0;
    std::int64_t offset = 0;  // local time minus UTC
  };
  [[nodiscard]] Stretch stretch(std::int64_t instant) const;

  // The instant of a local time. If the local time comes twice: the first. If it is skipped: the
  // first instant after the gap.
  [[nodiscard]] std::int64_t instant(std::int64_t local) const;

 private:
  explicit TimeZone(const date::time_zone& zone) : zone_(&zone) {}

  const date::time_zone* zone_ = nullptr;  // null: UTC. The library never frees its zones
};

}  // namespace hearth::durable
